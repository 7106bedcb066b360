"""The operator's mind: from what was seen of a Run to what to do now. Pure, and level-based.

Called by the controller for every look at a Run. Nothing here remembers anything: the same
observation gives the same decision, so a restarted or second operator decides alike.

The order within one decision: what must be written to the ledger comes first; a Pod or Job is
deleted only when the *observed* ledger already holds what it said, hence in a later look.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from wavetank.core.actions import (
    Action,
    Decision,
    DeleteJob,
    DeletePod,
    Entry,
    GradeMember,
    StartGrading,
    StartRollout,
    WriteLedger,
)
from wavetank.core.causes import Cause
from wavetank.core.identity import AttemptKey
from wavetank.core.lifecycle import Stage
from wavetank.core.observed import (
    FailedGrading,
    Failure,
    Graded,
    JobSeen,
    PodSeen,
    Record,
    RunSeen,
    Stages,
)
from wavetank.core.retries import may_try_again, not_before
from wavetank.core.verdicts import Verdict, judge_pod, judge_seal

BATCH_SIZE = 16
"""Rollouts in one verifier Job: measured as worth a factor of two against one Job each."""

BATCH_WAIT_SECONDS = 2.0
"""How long a sealed rollout waits for company before it is graded in a smaller Job."""

GRADING_TRIES = 3
"""A rollout whose grading gave no valid record so often is unscored."""

JOB_SLACK_SECONDS = 300.0
"""Beyond the verifier's own time: what a Job's Pod may take to start and to end."""


@dataclass
class _Notes:
    """What a decision gathers on its way."""

    seen: RunSeen
    now: float
    entries: list[Entry] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    stages: dict[int, Stage] = field(default_factory=dict)
    sealed: dict[int, tuple[AttemptKey, Verdict, PodSeen | None]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    wake_at: list[float] = field(default_factory=list)
    new_failures: dict[int, Failure] = field(default_factory=dict)

    def failures(self, ordinal: int) -> tuple[Failure, ...]:
        """Return the ledger's failures of a rollout and the one found in this look."""
        known = self.seen.ledger.failures.get(ordinal, ())
        new = self.new_failures.get(ordinal)
        return known if new is None else (*known, new)


def decide(seen: RunSeen, now: float) -> Decision:
    """Return what to do about a Run at ``now`` (seconds, the API server's clock)."""
    notes = _Notes(seen, now)
    _judge_attempts(notes)
    _close_exhausted(notes)
    _harvest_jobs(notes)
    _start_gradings(notes)
    _start_rollouts(notes)
    _clean_up(notes)
    actions = ([WriteLedger(tuple(notes.entries))] if notes.entries else []) + notes.actions
    complete = len(seen.ledger.records) >= seen.total
    return Decision(
        actions=tuple(actions),
        stages=notes.stages,
        problem=notes.problems[0] if notes.problems else "",
        look_again_after=_wait(notes),
        complete=complete,
    )


def _wait(notes: _Notes) -> float | None:
    later = [moment for moment in notes.wake_at if moment > notes.now]
    return max(min(later) - notes.now, 0.1) if later else None


def _is_over(seen: RunSeen, key: AttemptKey) -> bool:
    """Tell whether the ledger already holds all that an attempt had to say."""
    if key.ordinal in seen.ledger.records:
        return True
    failures = seen.ledger.failures.get(key.ordinal, ())
    return any(failure.key == key for failure in failures)


def _judge_attempts(notes: _Notes) -> None:
    """Sort every open attempt into stages; note failures as ledger entries."""
    seen = notes.seen
    pods = {pod.key: pod for pod in seen.pods}
    keys = {*pods, *seen.seals, *seen.vanished, *seen.refused}
    for key in sorted(keys):
        if key.ordinal >= seen.total or _is_over(seen, key):
            continue
        pod = pods.get(key)
        verdict = _judge(notes, key, pod)
        if verdict.look_again_at is not None:
            notes.wake_at.append(verdict.look_again_at)
        if verdict.cause is not None:
            failure = Failure(key, verdict.cause, verdict.message, notes.now)
            notes.new_failures[key.ordinal] = failure
            notes.entries.append(failure)
            continue
        if verdict.stage is Stage.STARTING and verdict.message:
            notes.problems.append(verdict.message)
        notes.stages[key.ordinal] = verdict.stage
        if verdict.stage is Stage.ENDED:
            notes.sealed[key.ordinal] = (key, verdict, pod)


def _judge(notes: _Notes, key: AttemptKey, pod: PodSeen | None) -> Verdict:
    if pod is not None:
        return judge_pod(pod, notes.seen.limits, notes.now)
    seal = notes.seen.seals.get(key)
    if seal is not None:
        return judge_seal(seal, None)
    refusal = notes.seen.refused.get(key)
    if refusal is not None:
        return Verdict(Stage.PLANNED, cause=Cause.POD_REFUSED, message=refusal)
    return Verdict(
        Stage.PLANNED, cause=Cause.POD_DELETED, message="its Pod is gone and left no sealed end"
    )


def _close_exhausted(notes: _Notes) -> None:
    """Record as unscored every rollout whose attempts are used up."""
    seen = notes.seen
    for ordinal in sorted({*seen.ledger.failures, *notes.new_failures}):
        if ordinal in seen.ledger.records or ordinal in notes.stages or ordinal >= seen.total:
            continue
        failures = notes.failures(ordinal)
        last = failures[-1]
        if may_try_again(failures, seen.limits.max_attempts):
            notes.problems.append(f"{last.cause}: {last.message}")
            continue
        notes.entries.append(Record(last.key, reward=None, cause=last.cause, message=last.message))
        notes.stages[ordinal] = Stage.RECORDED


def _harvest_jobs(notes: _Notes) -> None:
    """Turn reported gradings into records, and missing ones into counted tries."""
    # Jobs that reported come first: of two for one rollout, the one that still runs can wait.
    for job in sorted(notes.seen.jobs, key=lambda job: not job.graded):
        graded = {record.key: record for record in job.graded}
        overdue = job.created_at + notes.seen.limits.verifier_seconds + JOB_SLACK_SECONDS
        over = (job.finished and not job.pending) or notes.now >= overdue
        if not over:
            notes.wake_at.append(overdue)
            if job.problem:
                notes.problems.append(job.problem)
        for key in job.members:
            if key.ordinal not in notes.sealed or notes.sealed[key.ordinal][0] != key:
                continue
            record = graded.get(key)
            if record is not None and record.seal == _seal_of(notes, key):
                _record(notes, record)
            elif not over:
                notes.stages[key.ordinal] = Stage.GRADING
                del notes.sealed[key.ordinal]
            else:
                _count_try(notes, job, key)


def _seal_of(notes: _Notes, key: AttemptKey) -> str:
    seal = notes.sealed[key.ordinal][1].seal
    return "" if seal is None else seal.digest


def _record(notes: _Notes, graded: Graded) -> None:
    key, verdict, pod = notes.sealed.pop(graded.key.ordinal)
    notes.entries.append(
        Record(
            key,
            reward=graded.reward,
            cause=graded.cause,
            agent_cause=verdict.agent_cause,
            scores=graded.scores,
            seal=graded.seal,
            grader=graded.grader,
            stages=_stages(verdict, pod, notes.now),
        )
    )
    notes.stages[key.ordinal] = Stage.RECORDED


def _stages(verdict: Verdict, pod: PodSeen | None, now: float) -> Stages:
    """Return how long each stage took, as far as Pod and seal tell."""
    created = None if pod is None else pod.created_at
    scheduled = None if pod is None else pod.scheduled_at
    started = None if verdict.seal is None else verdict.seal.started_at
    ended = None if verdict.seal is None else verdict.seal.ended_at
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


def _tries(notes: _Notes, key: AttemptKey) -> tuple[FailedGrading, ...]:
    known = notes.seen.ledger.failed_gradings.get(key.ordinal, ())
    return tuple(item for item in known if item.key == key)


def _count_try(notes: _Notes, job: JobSeen, key: AttemptKey) -> None:
    """Note that a finished Job gave no record for a member; give up after the last try."""
    if any(item.try_number == job.try_number for item in _tries(notes, key)):
        return
    cause = Cause.VERIFIER_TIMEOUT if job.timed_out else Cause.VERIFIER_FAILED
    words = job.problem or "the verifier ended without a record for this rollout"
    notes.entries.append(FailedGrading(key, job.try_number, cause, words))
    notes.stages[key.ordinal] = Stage.GRADING
    del notes.sealed[key.ordinal]


def _start_gradings(notes: _Notes) -> None:
    """Send sealed rollouts to verifier Jobs: together at first, alone after a failed try."""
    if notes.seen.blocked_until > notes.now:
        return
    fresh: list[GradeMember] = []
    for ordinal in sorted(notes.sealed):
        key, verdict, pod = notes.sealed[ordinal]
        tries = _tries(notes, key)
        seal = verdict.seal
        if seal is None:
            continue
        member = GradeMember(key, seal.digest, seal.snapshot)
        if len(tries) >= GRADING_TRIES:
            _give_up(notes, key, verdict, pod)
        elif tries:
            notes.actions.append(StartGrading((member,), len(tries) + 1))
            notes.stages[ordinal] = Stage.GRADING
        else:
            fresh.append(member)
    for batch in _batches(notes, fresh):
        notes.actions.append(StartGrading(batch, 1))
        for member in batch:
            notes.stages[member.key.ordinal] = Stage.GRADING


def _give_up(notes: _Notes, key: AttemptKey, verdict: Verdict, pod: PodSeen | None) -> None:
    last = _tries(notes, key)[-1]
    notes.entries.append(
        Record(
            key,
            reward=None,
            cause=last.cause,
            agent_cause=verdict.agent_cause,
            seal=None if verdict.seal is None else verdict.seal.digest,
            stages=_stages(verdict, pod, notes.now),
            message=last.message,
        )
    )
    notes.stages[key.ordinal] = Stage.RECORDED


def _batches(notes: _Notes, fresh: list[GradeMember]) -> Iterable[tuple[GradeMember, ...]]:
    """Cut sealed rollouts into full Jobs; a smaller one goes when its oldest member waited enough."""
    for start in range(0, len(fresh), BATCH_SIZE):
        batch = tuple(fresh[start : start + BATCH_SIZE])
        since = [notes.seen.ended_seen.get(member.key, notes.now) for member in batch]
        due = min(since) + BATCH_WAIT_SECONDS
        if len(batch) == BATCH_SIZE or notes.now >= due or _nothing_else_runs(notes):
            yield batch
        else:
            notes.wake_at.append(due)


def _nothing_else_runs(notes: _Notes) -> bool:
    """Tell whether waiting is pointless: no rollout is on its way to join the batch."""
    busy = {Stage.STARTING, Stage.ACTING}
    if any(stage in busy for stage in notes.stages.values()):
        return False
    settled = set(notes.seen.ledger.records) | set(notes.stages)
    return len(settled) >= notes.seen.total


def _start_rollouts(notes: _Notes) -> None:
    """Fill the free slots with planned rollouts, lowest ordinal first."""
    seen = notes.seen
    if seen.suspended:
        return
    busy = {Stage.STARTING, Stage.ACTING}
    free = seen.limits.parallelism - sum(stage in busy for stage in notes.stages.values())
    if seen.blocked_until > notes.now:
        notes.problems.insert(0, seen.blocked_by)
        notes.wake_at.append(seen.blocked_until)
        return
    for ordinal in range(seen.total):
        if free <= 0:
            return
        if ordinal in seen.ledger.records or ordinal in notes.stages:
            continue
        if ordinal in notes.new_failures:
            # Its failure must be in the ledger before the next attempt exists.
            notes.wake_at.append(notes.now + 0.1)
            continue
        failures = notes.failures(ordinal)
        due = not_before(failures)
        if due > notes.now:
            notes.wake_at.append(due)
            continue
        attempt = max((failure.key.attempt for failure in failures), default=0) + 1
        notes.actions.append(StartRollout(AttemptKey(ordinal, attempt)))
        notes.stages[ordinal] = Stage.STARTING
        free -= 1


def _clean_up(notes: _Notes) -> None:
    """Delete the Pods and Jobs that the ledger no longer needs."""
    seen = notes.seen
    for pod in seen.pods:
        if pod.delete_requested_at is None and _is_over(seen, pod.key):
            notes.actions.append(DeletePod(pod.name, pod.uid))
    for job in seen.jobs:
        if all(_grading_is_over(notes, job, key) for key in job.members):
            notes.actions.append(DeleteJob(job.name, job.uid))


def _grading_is_over(notes: _Notes, job: JobSeen, key: AttemptKey) -> bool:
    """Tell whether the ledger holds a member's record, or that this try gave none."""
    if _is_over(notes.seen, key):
        return True
    return any(item.try_number == job.try_number for item in _tries(notes, key))
