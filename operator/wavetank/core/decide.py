"""The operator's mind: from what was seen of a Run to what to do now. Pure, and level-based.

Called by the controller for every look at a Run. Nothing here remembers anything: the same
observation gives the same decision, so a restarted or second operator decides alike.

The order within one decision: what must be written to the ledger comes first; a Pod or Job is
deleted only when the *observed* ledger already holds what it said, hence in a later look.
"""

from wavetank.core import gradings
from wavetank.core.actions import Decision, DeletePod, StartRollout, WriteLedger
from wavetank.core.causes import Cause
from wavetank.core.identity import AttemptKey
from wavetank.core.lifecycle import Stage
from wavetank.core.notes import Notes, Sealed
from wavetank.core.observed import Failure, PodSeen, Record, RunSeen
from wavetank.core.retries import may_try_again, not_before
from wavetank.core.verdicts import Verdict, judge_pod, judge_seal, judge_vanished


def decide(seen: RunSeen, now: float) -> Decision:
    """Return what to do about a Run at ``now`` (seconds, the API server's clock)."""
    notes = Notes(seen, now)
    _judge_attempts(notes)
    _close_exhausted(notes)
    gradings.harvest_jobs(notes)
    gradings.close_ungraded(notes)
    if notes.is_blocked:
        notes.problems.insert(0, seen.blocked_by)
        notes.wake_at.append(seen.blocked_until)
    else:
        gradings.start_gradings(notes)
        _start_rollouts(notes)
    _delete_pods(notes)
    gradings.delete_jobs(notes)
    actions = ([WriteLedger(tuple(notes.entries))] if notes.entries else []) + notes.actions
    complete = len(seen.ledger.records) >= seen.total
    return Decision(
        actions=tuple(actions),
        stages=notes.stages,
        problem=notes.problems[0] if notes.problems else "",
        look_again_after=_wait(notes),
        complete=complete,
    )


def _wait(notes: Notes) -> float | None:
    later = [moment for moment in notes.wake_at if moment > notes.now]
    return max(min(later) - notes.now, 0.1) if later else None


def _judge_attempts(notes: Notes) -> None:
    """Sort every open attempt into stages; note failures as ledger entries."""
    seen = notes.seen
    pods = {pod.key: pod for pod in seen.pods}
    keys = {*pods, *seen.seals, *seen.vanished, *seen.refused}
    for key in sorted(keys):
        if key.ordinal >= seen.total or seen.ledger.is_over(key):
            continue
        pod = pods.get(key)
        verdict = _judge(notes, key, pod)
        if verdict.look_again_at is not None:
            notes.wake_at.append(verdict.look_again_at)
        if verdict.cause is not None:
            failure = Failure(key, verdict.cause, verdict.message, notes.now)
            notes.new_failures.setdefault(key.ordinal, []).append(failure)
            notes.entries.append(failure)
            continue
        if verdict.stage is Stage.STARTING and verdict.message:
            notes.problems.append(verdict.message)
        notes.stages[key.ordinal] = verdict.stage
        if verdict.seal is not None:
            notes.sealed[key.ordinal] = Sealed(key, verdict.seal, verdict.agent_cause, pod)


def _judge(notes: Notes, key: AttemptKey, pod: PodSeen | None) -> Verdict:
    if pod is not None:
        return judge_pod(pod, notes.seen.limits, notes.now)
    seal, last = notes.seen.seals.get(key), notes.seen.last_seen.get(key)
    if seal is not None:
        return judge_seal(seal, last, is_proven=_was_sent_to_grading(notes.seen, key))
    refusal = notes.seen.refused.get(key)
    if refusal is not None:
        return Verdict(Stage.PLANNED, cause=Cause.POD_REFUSED, message=refusal)
    return judge_vanished(last)


def _was_sent_to_grading(seen: RunSeen, key: AttemptKey) -> bool:
    """Tell whether somebody saw this attempt's Pod end well: only such ends are graded."""
    tries = seen.ledger.failed_gradings.get(key.ordinal, ())
    return any(item.key == key for item in tries) or any(key in job.members for job in seen.jobs)


def _close_exhausted(notes: Notes) -> None:
    """Record as unscored every rollout whose attempts are used up."""
    seen = notes.seen
    for ordinal in sorted({*seen.ledger.failures, *notes.new_failures}):
        if ordinal in seen.ledger.records or ordinal in notes.stages or ordinal >= seen.total:
            continue
        failures = notes.failures(ordinal)
        last = failures[-1]
        if may_try_again(failures, seen.limits.max_attempts):
            if not notes.busy:
                # With others under way it is no trouble of the Run's, it waits for its turn.
                notes.problems.append(f"{last.cause}: {last.message}")
            continue
        notes.entries.append(Record(last.key, reward=None, cause=last.cause, message=last.message))
        notes.stages[ordinal] = Stage.RECORDED


def _start_rollouts(notes: Notes) -> None:
    """Fill the free slots with planned rollouts, lowest ordinal first."""
    seen = notes.seen
    if seen.suspended:
        return
    free = seen.limits.parallelism - notes.busy
    for ordinal in range(seen.total):
        if free <= 0:
            return
        if ordinal in seen.ledger.records or ordinal in notes.stages:
            continue
        # One that failed in this look waits too: its failure comes into the ledger first.
        failures = notes.failures(ordinal)
        due = not_before(failures)
        if due > notes.now:
            notes.wake_at.append(due)
            continue
        made = [seen.attempts_before.get(ordinal, 0), *(each.key.attempt for each in failures)]
        notes.actions.append(StartRollout(AttemptKey(ordinal, max(made) + 1)))
        notes.stages[ordinal] = Stage.STARTING
        free -= 1


def _delete_pods(notes: Notes) -> None:
    """Delete the Pods of which the ledger holds all that they had to say."""
    for pod in notes.seen.pods:
        if pod.delete_requested_at is None and notes.seen.ledger.is_over(pod.key):
            notes.actions.append(DeletePod(pod.name, pod.uid))
