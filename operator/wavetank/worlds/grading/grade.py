"""The ``grade`` container of a verifier or check Job: ``python -m wavetank.worlds.grading.grade``.

It holds no token and reaches nothing: it waits until judge has laid out bundles and end states,
grades each member in child processes with limits, and leaves a record each. What it wrote before
it died counts. It imports everything it needs before it waits, so that children are forks of a
warm process.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from wavetank.api.wire import GradeMember, GradeRecord, GradeSpec, Score, SessionEnd
from wavetank.bundles.world import Half, ReadWorld, read
from wavetank.core.causes import Cause
from wavetank.core.reward import task_reward
from wavetank.worlds.grading import exchange, members
from wavetank.worlds.grading.check import check
from wavetank.worlds.grading.exchange import Job
from wavetank.worlds.grading.settings import Folders, folders
from wavetank.worlds.grading.sql import SECONDS_PER_VERIFIER, SessionFacts, failed
from wavetank.worlds.grading.states import states_of

_HALVES = frozenset({Half.AGENT, Half.GRADER})


def main() -> int:
    """Grade what judge asks for; return the exit code."""
    # As a container's first process: without a handler the signal would be ignored.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    place = folders()
    exchange.hold(place.outbox)
    started = place.outbox / exchange.STARTED
    started.touch()
    if not _wait(place):
        return 1
    job = Job.model_validate_json((place.inbox / exchange.JOB).read_bytes())
    folders_of_links = {alias: exchange.bundle_folder(place.inbox, alias) for alias in job.aliases}
    main_folder = exchange.bundle_folder(place.inbox, "")
    if job.grade is not None:
        world = read(main_folder, folders_of_links, _HALVES)
        grade_all(place, job.grade, world, on_answer=started.touch)
    elif job.check is not None:
        result = check(job.check, main_folder, folders_of_links, on_step=started.touch)
        exchange.write(place.outbox / exchange.CHECK, result.canonical())
    (place.outbox / exchange.DONE).touch()
    return 0


def _wait(place: Folders) -> bool:
    """Wait for judge's files; return False when judge died before they were complete."""
    while not (place.inbox / exchange.READY).exists():
        if exchange.is_abandoned(place.inbox):
            return False
        time.sleep(exchange.LOOK_SECONDS)
    return True


def grade_all(
    place: Folders, spec: GradeSpec, world: ReadWorld, on_answer: Callable[[], None]
) -> None:
    """Grade every member and write its record; a member that was lost has none."""
    grader = spec.bundles.digest()
    for member in spec.members:
        folder = exchange.member_folder(place.inbox, member.ordinal, member.attempt)
        if not folder.exists():
            continue  # judge could not get it, and says so
        try:
            scores = grade_state(world, member.task, folder, spec.seconds_per_verifier, on_answer)
        except members.MemberLostError:
            continue
        record = record_of(member, grader, scores)
        name = f"{exchange.member_name(member.ordinal, member.attempt)}.json"
        exchange.write(place.outbox / name, record.canonical())


def record_of(member: GradeMember, grader: str, scores: list[Score]) -> GradeRecord:
    """Return a member's record: its scores and the reward that follows from them."""
    reward, cause = reward_of(scores)
    return GradeRecord(
        ordinal=member.ordinal,
        attempt=member.attempt,
        task=member.task,
        seal=member.seal,
        grader=grader,
        reward=reward,
        cause=cause,
        scores=scores,
    )


def reward_of(scores: list[Score]) -> tuple[float | None, Cause | None]:
    """Return the mean of the scores, or None with the first cause in the task's order.

    A task without a single verifier, which only a faulty bundle has, cannot be graded.
    """
    if not scores:
        return None, Cause.VERIFIER_FAILED
    return task_reward([(score.value, score.cause) for score in scores])


def grade_state(
    world: ReadWorld,
    task_id: str,
    snapshot: Path,
    seconds: float = SECONDS_PER_VERIFIER,
    on_answer: Callable[[], None] = lambda: None,
) -> list[Score]:
    """Return the scores of one end state, in the task's order; none for a task that is unknown.

    Args:
        world: The bundles, with the graders' half.
        task_id: The task that the session was about.
        snapshot: The unpacked snapshot.
        seconds: How long one verifier may take.
        on_answer: Called after each score.

    Raises:
        MemberLostError: If a child was killed from outside.
    """
    task = world.task(task_id)
    if task is None:
        return []
    session = _session(snapshot / "session.json", task_id)
    if isinstance(session, str):
        return [failed(str(key), session) for key in task.graders]
    record = snapshot / "trajectory.jsonl"
    # Only without a call may it be missing: else a check must not take it for one without.
    trajectory = record if session.calls or record.exists() else None
    states = states_of(world, snapshot / "worlds", session, trajectory)
    return members.score_all(world, task.graders, states, seconds, on_answer)


def _session(path: Path, task_id: str) -> SessionFacts | str:
    """Return what a snapshot says of its session, or why it cannot be graded."""
    try:
        told = json.loads(path.read_bytes())
        answer = told["finalAnswer"]
        session = SessionFacts(
            task=str(told["task"]),
            # Whatever the agent wrote must not keep it from being graded: JSON can name halves of
            # characters, SQLite cannot hold them.
            final_answer=None if answer is None else str(answer).encode(errors="replace").decode(),
            calls=int(told["calls"]),
            end=SessionEnd(told["end"]),
        )
    except (OSError, ValueError, TypeError, KeyError) as error:
        return f"session.json of the snapshot cannot be read: {type(error).__name__} {error}"
    if session.task != task_id:
        return f"the snapshot is of task {session.task!r}, not of {task_id!r}"
    return session


if __name__ == "__main__":
    sys.exit(main())
