"""Ledger entries as they stand in a ConfigMap: key and JSON, both ways. Pure.

| key | entry |
| - | - |
| ``<ordinal>`` | the rollout's record |
| ``<ordinal>.a<attempt>`` | a failed attempt |
| ``<ordinal>.a<attempt>.g<try>`` | a try at grading that gave no record |
"""

import re
from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from wavetank.api.moments import rfc3339, seconds
from wavetank.api.wire import (
    Durations,
    FailedAttempt,
    FailedGradingEntry,
    LedgerRecord,
    Score,
    Wire,
)
from wavetank.core.actions import Entry
from wavetank.core.errors import BugError
from wavetank.core.identity import AttemptKey, rollout_and_place
from wavetank.core.observed import (
    FailedGrading,
    Failure,
    Ledger,
    Record,
    ScoreSeen,
    Stages,
)

RECORD_LIMIT = 4_000
"""Bytes of one record."""

FIRST_FAILURE_LIMIT = 560
FAILURE_LIMIT = 240
"""Bytes of what failed, the first attempt or try and further ones. With a record, 19 failed attempts
and 3 tries at grading for each of 100 rollouts, a shard stays below a ConfigMap's 1 MiB. The last
failure's words are in the record too."""

_KEY = re.compile(r"(\d+)(?:\.a(\d+)(?:\.g(\d+))?)?")


class LedgerDamaged(BugError):
    """The ledger is not as Wavetank wrote it: nothing more may be built on it."""


def key_of(entry: Entry) -> str:
    """Return the key under which an entry lives.

    >>> from wavetank.core.causes import Cause
    >>> key_of(Failure(AttemptKey(7, 2), Cause.EVICTED, "", 0.0))
    '7.a2'
    """
    ordinal, attempt = entry.key.ordinal, entry.key.attempt
    if isinstance(entry, Record):
        return str(ordinal)
    if isinstance(entry, Failure):
        return f"{ordinal}.a{attempt}"
    return f"{ordinal}.a{attempt}.g{entry.try_number}"


def encode(entry: Entry, task_ids: Sequence[str], now: float) -> str:
    """Return an entry as JSON of at most ``RECORD_LIMIT`` bytes."""
    rollout, place = rollout_and_place(entry.key.ordinal, len(task_ids))
    task = task_ids[place]
    if isinstance(entry, Record):
        return _encode_record(entry, task, rollout, now)
    if isinstance(entry, Failure):
        failed = FailedAttempt(
            task=task, cause=entry.cause, message=entry.message[:500], failed_at=rfc3339(entry.at)
        )
        return _fitting(failed, entry.key.attempt)
    grading = FailedGradingEntry(task=task, cause=entry.cause, message=entry.message[:500])
    return _fitting(grading, entry.try_number)


def _fitting(entry: FailedAttempt | FailedGradingEntry, number: int) -> str:
    """Return what failed as JSON, its message cut until the whole fits."""
    limit = FIRST_FAILURE_LIMIT if number == 1 else FAILURE_LIMIT
    text = _json(entry)
    while len(text.encode()) > limit and entry.message:
        entry = entry.model_copy(update={"message": entry.message[: len(entry.message) * 3 // 4]})
        text = _json(entry)
    return text


def _encode_record(record: Record, task: str, rollout: int, now: float) -> str:
    stages = record.stages
    document = LedgerRecord(
        task=task,
        rollout=rollout,
        attempt=record.key.attempt,
        reward=record.reward,
        cause=record.cause,
        agent_cause=record.agent_cause,
        scores=_scores(record, 300),
        seal=record.seal,
        grader=record.grader,
        durations=Durations(
            queue=stages.queue, start=stages.start, act=stages.act, grade=stages.grade
        ),
        recorded_at=rfc3339(now),
        message=record.message[:500],
    )
    # Messages are for people: they are cut before anything that counts would be.
    for longest in (60, 0):
        if len(_json(document).encode()) <= RECORD_LIMIT:
            return _json(document)
        document = document.model_copy(update={"scores": _scores(record, longest)})
    if len(_json(document).encode()) <= RECORD_LIMIT:
        return _json(document)
    # The reward is the mean of all of them; a Run must not stop because a task has too many.
    words = f"the scores of {len(record.scores)} verifiers do not fit into the ledger."
    scoreless = {"scores": [], "message": f"{words} {record.message}"[:500]}
    return _json(document.model_copy(update=scoreless))


def _scores(record: Record, longest: int) -> list[Score]:
    return [
        Score(name=s.name, value=s.value, cause=s.cause, message=s.message[:longest])
        for s in record.scores
    ]


def _json(document: Wire) -> str:
    return document.model_dump_json(by_alias=True, exclude_defaults=True)


def decode(where: str, key: str, text: str) -> Entry:
    """Return the entry that a key and its JSON hold.

    Raises:
        LedgerDamaged: If they are not of the form that ``encode`` writes.
    """
    match = _KEY.fullmatch(key)
    try:
        if match is None:
            raise LedgerDamaged(f"{where} key {key!r}: no ledger entry has such a key")
        ordinal = int(match[1])
        if match[2] is None:
            return _record(ordinal, LedgerRecord.model_validate_json(text))
        attempt = AttemptKey(ordinal, int(match[2]))
        if match[3] is None:
            failed = FailedAttempt.model_validate_json(text)
            return Failure(attempt, failed.cause, failed.message, seconds(failed.failed_at) or 0.0)
        grading = FailedGradingEntry.model_validate_json(text)
        return FailedGrading(attempt, int(match[3]), grading.cause, grading.message)
    except ValidationError as error:
        first = error.errors()[0]
        raise LedgerDamaged(
            f"{where} key {key!r}: {'.'.join(map(str, first['loc']))}: {first['msg']}. It was "
            f"changed by hand; restore it, or delete the Run and apply it again."
        ) from error


def _record(ordinal: int, document: LedgerRecord) -> Record:
    durations = document.durations
    return Record(
        AttemptKey(ordinal, document.attempt),
        reward=document.reward,
        cause=document.cause,
        agent_cause=document.agent_cause,
        scores=tuple(ScoreSeen(s.name, s.value, s.cause, s.message) for s in document.scores),
        seal=document.seal,
        grader=document.grader,
        stages=Stages(durations.queue, durations.start, durations.act, durations.grade),
        message=document.message,
    )


def ledger_of(entries: Iterable[Entry]) -> Ledger:
    """Return entries sorted into a ledger."""
    records: dict[int, Record] = {}
    failures: dict[int, list[Failure]] = {}
    gradings: dict[int, list[FailedGrading]] = {}
    for entry in entries:
        ordinal = entry.key.ordinal
        if isinstance(entry, Record):
            records[ordinal] = entry
        elif isinstance(entry, Failure):
            failures.setdefault(ordinal, []).append(entry)
        else:
            gradings.setdefault(ordinal, []).append(entry)
    return Ledger(
        records=records,
        failures={n: tuple(sorted(f, key=lambda item: item.key)) for n, f in failures.items()},
        failed_gradings={
            n: tuple(sorted(g, key=lambda item: (item.key, item.try_number)))
            for n, g in gradings.items()
        },
    )
