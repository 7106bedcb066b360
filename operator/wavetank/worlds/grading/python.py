"""Runs a verifier that is Python, in a child process of its own, behind a fence.

The child says one line and is gone. Its parent believes no more of that line than a score of the
verifier that was asked: what else people's code could write there, it could have returned. What the
agent wrote reaches that code as values only; nothing here executes any of it.
"""

import os
import random
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from wavetank.api.wire import Score
from wavetank.bundles.world.source import FUNCTION
from wavetank.core.causes import RULES, CauseGroup
from wavetank.worlds.boundary import Escaped, guarded
from wavetank.worlds.grading import fence, sql
from wavetank.worlds.grading.child import Send
from wavetank.worlds.grading.evidence import Trajectory, World
from wavetank.worlds.grading.settings import forget_environment
from wavetank.worlds.grading.states import States
from wavetank.worlds.grading.validate import RefusedRecordError, require_sound
from wavetank.worlds.tables import SqlValue
from wavetank.worlds.tools import imported, line_in

SQLITE_HEAP_MIB = 320
"""Two of the largest states: a check may ask the own world and a linked one."""

_NAME = "verifier"
"""Of the score that a child sends; only its parent knows what it is about."""


def verify(path: Path, alias: str, states: States, seconds: float, send: Send) -> None:
    """Be the child: run ``verify(world, trajectory)`` of a file and send its score.

    Args:
        path: The file.
        alias: The linked world that it is a verifier of; empty for the own world.
        states: What it is asked about.
        seconds: How long copying one state may take.
        send: Sends the one line.
    """
    _shut_in()
    with ExitStack() as stack:
        world = World(states, alias, seconds, stack)

        def answer() -> object:
            module = imported(path, "wavetank_verifier")
            return vars(module)[FUNCTION](world, Trajectory(states))

        found = guarded(answer)
        if isinstance(found, Escaped):
            score = sql.failed(_NAME, f"{line_in(path, found)}{found.last_line}")
        else:
            score = _score(found.value)
        send(score.canonical())


def score_of(name: str, line: bytes) -> Score:
    """Return the score of the verifier that was asked, as its child told it."""
    try:
        score = Score.model_validate_json(line, strict=True)
        require_sound(score)
    except (ValidationError, RefusedRecordError):
        return sql.failed(name, "its process said something that is no score")
    if score.cause is not None and RULES[score.cause].group is not CauseGroup.VERIFIER:
        return sql.failed(name, "its process said something that is no score")
    return score.model_copy(update={"name": name})


def _shut_in() -> None:
    """Leave nothing of the parent to the code that follows but the pipe and a copy of memory."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    os.close(nowhere)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    forget_environment()
    # Modules come from Python itself and from what is installed, never from the working folder.
    sys.path[:] = [each for each in sys.path if each not in ("", str(Path.cwd()))]
    random.seed(0)
    fence.close()


def _score(value: object) -> Score:
    if value is None:
        return sql.missing(_NAME, f"{FUNCTION} returned None")
    if isinstance(value, bool):
        return Score(name=_NAME, value=float(value))
    # What is neither a number nor None is told and refused there.
    return sql.score_of(_NAME, 1, [[cast(SqlValue, value)]])
