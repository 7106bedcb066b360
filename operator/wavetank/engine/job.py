"""Grading and checking, as two processes: what a verifier Job and a check Job are in a cluster.

``judge`` has the token and fetches, ``grade`` has none and runs the verifiers in children with
limits; they meet in two folders.
"""

import asyncio
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ValidationError

from wavetank.api.execution import graded_of
from wavetank.api.plan import Plan
from wavetank.api.wire import (
    CHECK_ENV,
    GRADE_ENV,
    TOKEN_FILE_ENV,
    CheckReport,
    CheckResult,
    CheckSpec,
    GradeRecords,
    GradeReport,
    GradeSpec,
)
from wavetank.core.causes import Cause
from wavetank.core.errors import ClusterError
from wavetank.core.identity import AttemptKey
from wavetank.core.observed import JobSeen
from wavetank.engine import storing
from wavetank.engine.pod import Surroundings
from wavetank.engine.processes import Process, Processes, Program
from wavetank.manifests.verifier import BACKSTOP_SECONDS, JUDGE_SECONDS_ENV


@dataclass
class LocalJob:
    """The grading of some sealed ends. ``start`` it, look at it by ``seen``, and ``end`` it."""

    around: Surroundings
    plan: Plan
    spec: GradeSpec
    try_number: int
    seconds: float
    """Until the judge reports what there is."""
    token: str
    store: Path
    """Folder of the store, which has records that are too large for a message."""
    folder: Path
    """Scratch of its own."""
    _state: JobSeen = field(init=False)
    _working: "asyncio.Task[None] | None" = None

    def __post_init__(self) -> None:
        self._state = JobSeen(
            name=self.folder.name,
            uid=self.folder.name,
            members=tuple(AttemptKey(each.ordinal, each.attempt) for each in self.spec.members),
            try_number=self.try_number,
            created_at=self.around.now(),
        )

    def start(self) -> None:
        """Start the work."""
        self._working = self.around.tasks.create_task(self._work())

    def seen(self) -> JobSeen:
        """Return what is to be seen of it."""
        return self._state

    async def end(self) -> None:
        """End what is left of its processes, and remove what they made for themselves."""
        if self._working is not None:
            self._working.cancel()
            with suppress(asyncio.CancelledError):
                await self._working
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    async def _work(self) -> None:
        self._state = replace(self._state, started_at=self.around.now())
        settings = {GRADE_ENV: self.spec.canonical().decode()}
        ended = await _judged(
            self.around.processes, self.folder, settings, self.token, self.seconds
        )
        self._state = self._reported(ended)
        self.around.changed()

    def _reported(self, ended: "_Ended") -> JobSeen:
        try:
            report = GradeReport.model_validate_json(ended.message)
        except ValidationError:
            words = f"the judge ended with exit code {ended.code}"
            return replace(self._state, finished=True, timed_out=ended.timed_out, problem=words)
        return replace(
            self._state,
            finished=True,
            store_away=report.cause is Cause.STORE_UNAVAILABLE,
            graded=graded_of(self.plan, report, self._records(report), self._state.members),
            problem=report.message,
        )

    def _records(self, report: GradeReport) -> GradeRecords:
        if report.records is not None:
            return GradeRecords(records=report.records)
        kept = storing.read(self.store, f"/v1/runs/{self.plan.run}/grades/{report.sha256}")
        try:
            return GradeRecords.model_validate_json(kept or b"")
        except ValidationError:
            return GradeRecords(records=[])


async def check(
    processes: Processes, spec: CheckSpec, token: str, store: Path, folder: Path
) -> CheckResult:
    """Return what the check of a benchmark finds.

    Args:
        processes: Where to start them.
        spec: What to check.
        token: For the judge.
        store: Folder of the store.
        folder: Scratch, removed at the end.

    Raises:
        ClusterError: If no check was possible.
    """
    settings = {CHECK_ENV: spec.canonical().decode()}
    try:
        ended = await _judged(processes, folder, settings, token, _CHECK_SECONDS)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    try:
        report = CheckReport.model_validate_json(ended.message)
        path = f"/v1/checks/{spec.uid}/{spec.generation}/{report.sha256}"
        if report.cause is None:
            return CheckResult.model_validate_json(storing.read(store, path) or b"")
        words = report.message
    except ValidationError:
        words = f"the judge ended with exit code {ended.code}"
    raise ClusterError(f"the benchmark could not be checked: {words}")


async def _end_of(judge: Process, grade: Process) -> int:
    """Return judge's exit code; after grade's end it is told to report what there is.

    By itself it knows that grade is dead only if that has lived long enough to hold its lock.
    """
    ends = {asyncio.create_task(each.wait()) for each in (judge, grade)}
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(ends, timeout=_REPORT_SECONDS)
    finally:
        for end in ends:
            end.cancel()
    return await judge.stop(_PUT_SECONDS)


_REPORT_SECONDS = 5.0
"""For a judge to see for itself that grade is done; a loaded machine is slow to start it."""
_PUT_SECONDS = 60.0
"""For a judge that is told to stop to bring its report into the store."""
_CHECK_SECONDS = 600.0
"""As in a cluster."""


@dataclass(frozen=True)
class _Ended:
    """How the judge ended."""

    code: int
    message: bytes
    timed_out: bool


async def _judged(
    processes: Processes, folder: Path, settings: dict[str, str], token: str, seconds: float
) -> _Ended:
    """Let judge and grade do their work in a folder; both are gone afterwards."""
    inbox, outbox, message = folder / "in", folder / "out", folder / "message"
    for place in (inbox, outbox):
        place.mkdir(parents=True)
    key = folder / "token"
    key.touch(mode=0o600)
    key.write_text(token)
    places = {"WAVETANK_IN": str(inbox), "WAVETANK_OUT": str(outbox)}
    for_judge = {
        **settings,
        **places,
        TOKEN_FILE_ENV: str(key),
        "WAVETANK_TERMINATION_LOG": str(message),
        JUDGE_SECONDS_ENV: str(seconds),
    }
    started: Sequence[Program] = (
        Program("worlds.grading.judge", folder / "judge", for_judge),
        Program("worlds.grading.grade", folder / "grade", places),
    )
    running = []
    timed_out = False
    try:
        for program in started:
            running.append(await processes.start(program))
        judge, grade = running
        try:
            async with asyncio.timeout(seconds + BACKSTOP_SECONDS):
                code = await _end_of(judge, grade)
        except TimeoutError:
            timed_out, code = True, await judge.kill()
    except OSError as error:
        return _Ended(1, str(error).encode(), timed_out=False)
    finally:
        for process in running:
            await process.kill()
    return _Ended(code, message.read_bytes() if message.exists() else b"", timed_out)
