"""Whole rollouts on this machine: the world server, the wrapper and an agent, the graders."""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

from wavetank.bundles.pack import unpack
from wavetank.bundles.world import ReadWorld
from wavetank.cli.authoring import fault
from wavetank.cli.settings import agent_environment
from wavetank.worlds.grading.local import EndState, Graded, grade_apart
from wavetank.worlds.grading.members import MemberLostError
from wavetank.worlds.local import served
from wavetank.worlds.session import Opening
from wavetank.worlds.tools import load

_DEADLINE_SECONDS = 300
"""Of a task that names none."""


@dataclass(frozen=True)
class Rollout:
    """What to play."""

    task: str
    agent: str
    """``oracle`` or ``nop``."""


@dataclass(frozen=True)
class Played:
    """A rollout that is over."""

    rollout: Rollout
    grades: Graded
    log: str
    """What the agent printed."""


def play(world: ReadWorld, rollouts: Sequence[Rollout]) -> list[Played]:
    """Play rollouts one after another, then grade their end states.

    Args:
        world: A bundle without a fault, with its solutions.
        rollouts: What to play.

    Raises:
        SpecError: When the graders were killed from outside.
    """
    linked = {alias: each.root for alias, each in world.linked.items()}
    with tempfile.TemporaryDirectory(prefix="wavetank-") as name, redirect_stdout(sys.stderr):
        folders = [Path(name) / str(number) for number in range(len(rollouts))]
        asyncio.run(_play_all(world, rollouts, folders))
        states = [
            EndState(task=rollout.task, folder=folder / "end")
            for rollout, folder in zip(rollouts, folders, strict=True)
        ]
        try:
            grades = grade_apart(world.main.root, linked, states)
        except MemberLostError as error:
            words = "the process of a verifier was killed: is there enough memory? Try again."
            raise fault(str(world.main.root), words) from error
        logs = [_log(folder / "agent.log") for folder in folders]
    return [Played(*each) for each in zip(rollouts, grades, logs, strict=True)]


async def _play_all(world: ReadWorld, rollouts: Sequence[Rollout], folders: Sequence[Path]) -> None:
    for rollout, folder in zip(rollouts, folders, strict=True):
        folder.mkdir()
        await _play(world, rollout, folder)
        unpack(folder / "snapshot.tar.zst", folder / "end")


async def _play(world: ReadWorld, rollout: Rollout, folder: Path) -> None:
    task = world.task(rollout.task)
    if task is None:
        raise LookupError(rollout.task)
    # Handlers anew for each session: what one leaves in their module must not reach the next.
    opening = Opening(world, task, load(world), seed=0)
    opening = replace(opening, deadline_seconds=task.timeout_seconds or _DEADLINE_SECONDS)
    module = "replay" if rollout.agent == "oracle" else "nop"
    solution = world.main.root / "solutions" / f"{rollout.task}.json"
    async with served(opening, folder) as local:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "wavetank.agents.wrapper", "--"),
            *(sys.executable, "-P", "-m", f"wavetank.agents.{module}"),
            env=agent_environment(local.url, solution.resolve()),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        await process.wait()


def _log(file: Path) -> str:
    return file.read_text() if file.exists() else ""
