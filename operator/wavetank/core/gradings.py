"""Grading, as a part of ``decide``: what Jobs reported into records, and sealed ends into Jobs."""

from collections.abc import Iterable
from enum import Enum, auto

from wavetank.core.actions import DeleteJob, GradeMember, StartGrading
from wavetank.core.causes import Cause
from wavetank.core.identity import AttemptKey
from wavetank.core.lifecycle import Stage
from wavetank.core.notes import Notes, Sealed
from wavetank.core.observed import FailedGrading, Graded, JobSeen, Record, Stages

BATCH_SIZE = 16
"""Rollouts in one verifier Job: measured as worth a factor of two against one Job each."""

BATCH_WAIT_SECONDS = 2.0
"""How long a sealed rollout waits for company before it is graded in a smaller Job."""

GRADING_TRIES = 3
"""A rollout whose grading gave no valid record so often is unscored."""

JOB_SLACK_SECONDS = 600.0
"""Beyond the verifiers' own time: the Pod's deadline lies 300 s above it, and it may end slowly."""

JOB_START_SECONDS = 900.0
"""How long a verifier Job waits for its Pod to start before it is made anew: on another node
perhaps, or with an image that is there by now."""

PENDING_SECONDS = 5.0
"""Between looks at records that the store does not give out yet."""


class _JobState(Enum):
    GOES_ON = auto()
    OVER = auto()
    """It says no more: a member without a record has had its try."""
    UNFIT = auto()
    """It never came to grading: it is made anew, and no try is counted."""


def _state_of(notes: Notes, job: JobSeen) -> _JobState:
    """Return what to expect of a Job, and note when that may change."""
    if job.pending:
        # The store has what it reported: an outage delays a reward, and never takes it.
        notes.wake_at.append(notes.now + PENDING_SECONDS)
        return _JobState.GOES_ON
    if job.finished:
        return _JobState.UNFIT if job.store_away else _JobState.OVER
    if job.started_at is None:
        until, then = job.created_at + JOB_START_SECONDS, _JobState.UNFIT
    else:
        seconds = notes.seen.limits.verifier_seconds * len(job.members)
        until, then = job.started_at + seconds + JOB_SLACK_SECONDS, _JobState.OVER
    if notes.now >= until:
        return then
    notes.wake_at.append(until)
    return _JobState.GOES_ON


def harvest_jobs(notes: Notes) -> None:
    """Turn reported gradings into records, and missing ones into counted tries."""
    # Jobs that reported come first: of two for one rollout, the one that still runs can wait.
    for job in sorted(notes.seen.jobs, key=lambda job: not job.graded):
        graded = {record.key: record for record in job.graded}
        state = _state_of(notes, job)
        if job.problem and state is not _JobState.OVER:
            notes.problems.append(job.problem)
        if state is _JobState.UNFIT:
            notes.unfit.add(job.uid)
        for key in job.members:
            sealed = notes.sealed.get(key.ordinal)
            if sealed is None or sealed.key != key:
                continue
            record = graded.get(key)
            if record is not None and record.seal == sealed.seal.digest:
                _record(notes, sealed, record)
            elif state is _JobState.OVER:
                _count_try(notes, job, key)
            else:
                notes.stages[key.ordinal] = Stage.GRADING
                del notes.sealed[key.ordinal]


def _record(notes: Notes, sealed: Sealed, graded: Graded) -> None:
    del notes.sealed[sealed.key.ordinal]
    notes.entries.append(
        Record(
            sealed.key,
            reward=graded.reward,
            cause=graded.cause,
            agent_cause=sealed.agent_cause,
            scores=graded.scores,
            seal=graded.seal,
            grader=graded.grader,
            stages=_stages(sealed, notes.now),
        )
    )
    notes.stages[sealed.key.ordinal] = Stage.RECORDED


def _stages(sealed: Sealed, now: float) -> Stages:
    """Return how long each stage took, as far as Pod and seal tell."""
    created = None if sealed.pod is None else sealed.pod.created_at
    scheduled = None if sealed.pod is None else sealed.pod.scheduled_at
    started, ended = sealed.seal.started_at, sealed.seal.ended_at
    return Stages(
        queue=_between(created, scheduled),
        start=_between(scheduled, started),
        act=_between(started, ended),
        grade=_between(ended, now),
    )


def _between(earlier: float | None, later: float | None) -> float | None:
    """Return the seconds between two moments; clocks of two machines may disagree: never below 0.

    >>> _between(2.0, 5.0)
    3.0
    """
    if earlier is None or later is None:
        return None
    return max(round(later - earlier, 3), 0.0)


def _tries(notes: Notes, key: AttemptKey) -> tuple[FailedGrading, ...]:
    known = notes.seen.ledger.failed_gradings.get(key.ordinal, ())
    return tuple(item for item in known if item.key == key)


def _count_try(notes: Notes, job: JobSeen, key: AttemptKey) -> None:
    """Note that a finished Job gave no record for a member; give up after the last try."""
    if any(item.try_number == job.try_number for item in _tries(notes, key)):
        return
    cause = Cause.VERIFIER_TIMEOUT if job.timed_out else Cause.VERIFIER_FAILED
    words = job.problem or "the verifier ended without a record for this rollout"
    notes.entries.append(FailedGrading(key, job.try_number, cause, words))
    notes.stages[key.ordinal] = Stage.GRADING
    del notes.sealed[key.ordinal]


def close_ungraded(notes: Notes) -> None:
    """Record as unscored every sealed rollout whose tries at grading are used up."""
    for ordinal, sealed in sorted(notes.sealed.items()):
        tries = _tries(notes, sealed.key)
        if len(tries) < GRADING_TRIES:
            continue
        notes.entries.append(
            Record(
                sealed.key,
                reward=None,
                cause=tries[-1].cause,
                agent_cause=sealed.agent_cause,
                seal=sealed.seal.digest,
                stages=_stages(sealed, notes.now),
                message=tries[-1].message,
            )
        )
        notes.stages[ordinal] = Stage.RECORDED
        del notes.sealed[ordinal]


def start_gradings(notes: Notes) -> None:
    """Send sealed rollouts to verifier Jobs: together at first, alone after a failed try."""
    fresh: list[GradeMember] = []
    for ordinal, sealed in sorted(notes.sealed.items()):
        member = GradeMember(sealed.key, sealed.seal.digest, sealed.seal.snapshot)
        tries = _tries(notes, sealed.key)
        if tries:
            notes.actions.append(StartGrading((member,), len(tries) + 1))
            notes.stages[ordinal] = Stage.GRADING
        else:
            fresh.append(member)
    for batch in _batches(notes, fresh):
        notes.actions.append(StartGrading(batch, 1))
        for member in batch:
            notes.stages[member.key.ordinal] = Stage.GRADING


def _batches(notes: Notes, fresh: list[GradeMember]) -> Iterable[tuple[GradeMember, ...]]:
    """Cut sealed rollouts into full Jobs; a smaller one goes when its oldest member waited enough."""
    for start in range(0, len(fresh), BATCH_SIZE):
        batch = tuple(fresh[start : start + BATCH_SIZE])
        since = [notes.seen.ended_seen.get(member.key, notes.now) for member in batch]
        due = min(since) + BATCH_WAIT_SECONDS
        if len(batch) == BATCH_SIZE or notes.now >= due or _nothing_else_runs(notes):
            yield batch
        else:
            notes.wake_at.append(due)


def _nothing_else_runs(notes: Notes) -> bool:
    """Tell whether waiting is pointless: no rollout is on its way to join the batch."""
    if notes.busy:
        return False
    settled = set(notes.seen.ledger.records) | set(notes.stages)
    return len(settled) >= notes.seen.total


def delete_jobs(notes: Notes) -> None:
    """Delete the Jobs that have no more to say."""
    for job in notes.seen.jobs:
        is_unfit = job.uid in notes.unfit
        if is_unfit or all(_is_over(notes, job, key) for key in job.members):
            notes.actions.append(DeleteJob(job.name, job.uid))


def _is_over(notes: Notes, job: JobSeen, key: AttemptKey) -> bool:
    """Tell whether the ledger holds a member's record, or that this try gave none."""
    if notes.seen.ledger.is_over(key):
        return True
    return any(item.try_number == job.try_number for item in _tries(notes, key))
