"""Grading on the author's machine, in a process of its own: ``python -m wavetank.worlds.grading.local``.

Verifiers run in limited children of that process, as in a verifier Job; a process that serves or
plays sessions has threads, and must not be forked.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from wavetank.api.wire import Part, Score
from wavetank.bundles.world import JsonValue, ReadWorld, read
from wavetank.core.causes import Cause
from wavetank.core.errors import BugError
from wavetank.worlds.grading.grade import grade_state, reward_of
from wavetank.worlds.grading.members import MemberLostError

_LOST_CODE = 3


class EndState(Part):
    """An end state to grade."""

    task: str
    folder: Path
    """The unpacked snapshot."""


class Asked(Part):
    """What to grade, and by what."""

    main: Path
    linked: Mapping[str, Path]
    states: list[EndState]


class Graded(Part):
    """What came out for one end state."""

    task: str
    reward: float | None
    cause: Cause | None = None
    """The first one in the task's order; None when there is a reward."""
    scores: list[Score]


def grade_apart(main: Path, linked: Mapping[str, Path], states: Sequence[EndState]) -> list[Graded]:
    """Return what came out for each end state, in order.

    Raises:
        MemberLostError: If the process or one of its children was killed from outside.
    """
    asked = Asked(main=main, linked=linked, states=list(states))
    # -P: the folder that people stand in holds none of our modules.
    done = subprocess.run(  # noqa: S603 - this package's own module
        [sys.executable, "-P", "-m", __name__],
        input=asked.model_dump_json().encode(),
        capture_output=True,
        check=False,
    )
    if done.returncode in (_LOST_CODE, -9):
        raise MemberLostError
    if done.returncode != 0:
        raise BugError(f"the grading process failed: {done.stderr.decode(errors='replace')}")
    return [Graded.model_validate_json(line) for line in done.stdout.splitlines()]


def graded(world: ReadWorld, state: EndState) -> Graded:
    """Grade one end state by children of this process.

    Raises:
        MemberLostError: If a child was killed from outside.
    """
    scores = grade_state(world, state.task, state.folder)
    reward, cause = reward_of(scores)
    return Graded(task=state.task, reward=reward, cause=cause, scores=scores)


def grades_document(graded: Graded) -> dict[str, JsonValue]:
    """Return what ``POST /v1/grade`` answers: the reward, each score, and why one is missing."""
    rewards: dict[str, JsonValue] = {each.name: _plain(each.value) for each in graded.scores}
    document: dict[str, JsonValue] = {"reward": _plain(graded.reward), "rewards": rewards}
    if graded.cause is not None:
        document["cause"] = graded.cause.value
        document["unscored"] = {
            each.name: {"cause": str(each.cause), "message": each.message}
            for each in graded.scores
            if each.cause is not None
        }
    return document


def write_session(folder: Path, task: str, final_answer: str | None, calls: int) -> None:
    """Write the ``session.json`` of a state that is graded while its session goes on."""
    told = {"task": task, "finalAnswer": final_answer, "calls": calls, "end": "closed"}
    (folder / "session.json").write_text(json.dumps(told))


def _plain(value: float | None) -> float | int | None:
    return int(value) if value is not None and value.is_integer() else value


def main() -> int:
    """Grade what stdin asks for, a line of stdout for each; return the exit code."""
    asked = Asked.model_validate_json(sys.stdin.buffer.read())
    world = read(asked.main, asked.linked)
    try:
        for state in asked.states:
            line = graded(world, state).model_dump_json()
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    except MemberLostError:
        return _LOST_CODE
    return 0


if __name__ == "__main__":
    sys.exit(main())
