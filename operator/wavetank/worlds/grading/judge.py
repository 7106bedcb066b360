"""The ``judge`` container of a verifier or check Job: ``python -m wavetank.worlds.grading.judge``.

It holds the store token and runs nothing that people or agents wrote. It fetches bundles and end
states, hands them to grade, waits for the records, validates each, and reports in its termination
message. The operator takes rewards from there only.
"""

import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from wavetank.api.wire import (
    MESSAGE_LIMIT,
    CheckReport,
    CheckSpec,
    GradeRecord,
    GradeRecords,
    GradeReport,
    GradeSpec,
    Wire,
    digest_of,
)
from wavetank.core.causes import Cause
from wavetank.store.client import StoreClient, StoreRefused, StoreUnavailable, until
from wavetank.worlds.grading import exchange, validate
from wavetank.worlds.grading.fetch import FetchError, fetch_bundles, fetch_members
from wavetank.worlds.grading.settings import JudgeSettings, judge_settings
from wavetank.worlds.grading.sql import BUSY_FACTOR, printable

_MESSAGE = 800
"""Characters of a report's message. As ASCII in JSON, escapes included, they stay below 1,600
bytes: with the records less than the 4,096 of which the kubelet keeps the tail only."""
_IDLE_SECONDS = 120
"""On top of a verifier's time on a busy node: how long grade may show no progress."""
_NOTHING = digest_of(b"")


class Judge:
    """One Job's judge: its settings, its store, and the moment by which it reports."""

    def __init__(self, settings: JudgeSettings, store: StoreClient) -> None:
        loop = asyncio.get_running_loop()
        self._folders = settings.folders
        self._store = store
        self._clock = loop.time
        self._deadline = loop.time() + settings.seconds
        self._stop = asyncio.Event()
        # At the Pod's deadline or deletion: report what there is.
        loop.add_signal_handler(signal.SIGTERM, self._stop.set)

    async def grade(self, spec: GradeSpec) -> GradeReport:
        """Have the members graded and return the report."""
        bundles = [*spec.bundles.agent, *spec.bundles.grader]
        inbox = self._folders.inbox
        try:
            await fetch_bundles(self._store, bundles, inbox, self._deadline)
            problems = await fetch_members(self._store, spec, inbox, self._deadline)
        except (FetchError, StoreUnavailable) as error:
            return _nothing_graded(error)
        problems += await self._wait(
            exchange.Job(grade=spec, aliases=_aliases(spec)), spec.seconds_per_verifier
        )
        records, refused = self._records(spec)
        report = _report(records, [*problems, *refused])
        if report.records is not None:
            return report
        path = f"/v1/runs/{spec.run}/grades/{report.sha256}"
        problem = await self._put(path, GradeRecords(records=records))
        return report if problem is None else _nothing_graded(problem)

    async def check(self, spec: CheckSpec) -> CheckReport:
        """Have the bundles checked and return the report."""
        bundles = [*spec.bundles.agent, *spec.bundles.grader, *spec.bundles.solutions]
        try:
            await fetch_bundles(self._store, bundles, self._folders.inbox, self._deadline)
        except StoreUnavailable as error:
            return _no_check(Cause.STORE_UNAVAILABLE, str(error))
        except FetchError as error:
            return _no_check(Cause.VERIFIER_FAILED, str(error))
        problems = await self._wait(exchange.Job(check=spec, aliases=_aliases(spec)), 20)
        try:
            raw = exchange.read_untrusted(
                self._folders.outbox / exchange.CHECK, validate.RESULT_LIMIT
            )
            if raw is None:
                return _no_check(Cause.VERIFIER_FAILED, "; ".join(problems) or "it left no result")
            result = validate.accepted_check(raw, spec)
        except (exchange.RefusedFileError, validate.RefusedRecordError) as error:
            return _no_check(Cause.VERIFIER_FAILED, f"the result is refused: {error}")
        path = f"/v1/checks/{spec.uid}/{spec.generation}/{result.digest()}"
        problem = await self._put(path, result)
        if problem is not None:
            return _no_check(Cause.STORE_UNAVAILABLE, str(problem))
        return CheckReport(sha256=result.digest())

    async def _wait(self, job: exchange.Job, seconds_per_step: float) -> list[str]:
        """Hand the job to grade and wait for its end; return why it did not come to one."""
        exchange.write(self._folders.inbox / exchange.JOB, job.canonical())
        exchange.write(self._folders.inbox / exchange.READY, b"")
        outbox = self._folders.outbox
        patience = BUSY_FACTOR * seconds_per_step + _IDLE_SECONDS
        seen, seen_at = None, self._clock()
        while not (outbox / exchange.DONE).exists():
            now = self._clock()
            progress = _moment(self._folders.outbox)
            if progress != seen:
                seen, seen_at = progress, now
            if exchange.is_abandoned(outbox):
                return [] if (outbox / exchange.DONE).exists() else ["grade died"]
            if progress is not None and now - seen_at > patience:
                return [f"grade made no progress for {patience:g} s"]
            if self._stop.is_set():
                return ["judge was told to stop before grade was done"]
            if now > self._deadline:
                return ["grade was not done in time"]
            await asyncio.sleep(exchange.LOOK_SECONDS)
        return []

    def _records(self, spec: GradeSpec) -> tuple[list[GradeRecord], list[str]]:
        """Return the members' records that hold, in the order asked, and why others do not."""
        grader = spec.bundles.digest()
        records, problems = [], []
        for member in spec.members:
            name = exchange.member_name(member.ordinal, member.attempt)
            try:
                raw = exchange.read_untrusted(
                    self._folders.outbox / f"{name}.json", validate.RECORD_LIMIT
                )
                if raw is not None:
                    records.append(validate.accepted(raw, member, grader))
            except (exchange.RefusedFileError, validate.RefusedRecordError) as error:
                problems.append(f"the record of {name} is refused: {error}")
        return records, problems

    async def _put(self, path: str, document: Wire) -> StoreUnavailable | StoreRefused | None:
        """Put a document, however long the store is away; return why that did not work."""
        try:
            await until(self._deadline, lambda: self._store.put(path, document.canonical()))
        except (StoreUnavailable, StoreRefused) as error:
            return error
        return None


def _moment(outbox: Path) -> int | None:
    """Return when grade last showed that it works, None before its start."""
    try:
        return (outbox / exchange.STARTED).lstat().st_mtime_ns
    except FileNotFoundError:
        return None


def _aliases(spec: GradeSpec | CheckSpec) -> list[str]:
    return sorted({ref.alias for ref in spec.bundles.agent if ref.alias})


def _report(records: Sequence[GradeRecord], problems: Sequence[str]) -> GradeReport:
    document = GradeRecords(records=list(records))
    fits = len(document.canonical()) <= MESSAGE_LIMIT
    return GradeReport(
        sha256=document.digest(),
        n=len(records),
        records=document.records if fits else None,
        message=_words("; ".join(problems)),
    )


def _nothing_graded(error: Exception) -> GradeReport:
    """Return a report without records; while the store is away, no verifier is to blame."""
    is_away = isinstance(error, StoreUnavailable)
    cause = Cause.STORE_UNAVAILABLE if is_away else None
    return _report([], [str(error)]).model_copy(update={"cause": cause})


def _no_check(cause: Cause, message: str) -> CheckReport:
    return CheckReport(sha256=_NOTHING, cause=cause, message=_words(message))


def _words(text: str) -> str:
    return printable(text.encode("ascii", "backslashreplace").decode(), _MESSAGE)


async def run(settings: JudgeSettings) -> None:
    """Do what the settings ask for, and leave the report in the termination log."""
    exchange.hold(settings.folders.inbox)
    # Read at each request: the kubelet renews the file when the Secret changes.
    token = settings.token_file
    async with StoreClient(settings.task.store, lambda: token.read_text().strip()) as store:
        judge = Judge(settings, store)
        report: Wire
        if isinstance(settings.task, GradeSpec):
            report = await judge.grade(settings.task)
        else:
            report = await judge.check(settings.task)
        settings.termination_log.write_bytes(report.canonical())


def main() -> int:
    """Run judge as its environment says; return the exit code."""
    asyncio.run(run(judge_settings()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
