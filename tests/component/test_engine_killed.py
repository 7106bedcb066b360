"""Local Runs whose processes are killed, at whatever moment: nothing is lost, nothing twice."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from wavetank.testing.bundles import DESK, HANDLERS, write_bundle
from wavetank.testing.local import Machine, until

pytestmark = [pytest.mark.component, pytest.mark.timeout(600)]

WAIT_TOOL = '''

@tool
def wait(world: World, seconds: float) -> float:
    """Take some time."""
    import time

    time.sleep(seconds)
    return seconds
'''
CLOSE = {"tool": "update_ticket", "arguments": {"id": "T-7", "status": "closed"}}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "data")


def waits(folder: Path, seconds: float) -> Path:
    """Write a desk whose agent takes some time before it closes the ticket."""
    calls = [{"tool": "wait", "arguments": {"seconds": seconds}}, CLOSE]
    own = {"tools/handlers.py": HANDLERS + WAIT_TOOL, "solutions/close_ticket.json": calls}
    return write_bundle(folder / "desk", {**DESK, **own})


def programs(machine: Machine, module: str) -> list[int]:
    """The processes of a Run that run one of Wavetank's programs."""
    wanted = f"\0-m\0wavetank.{module}\0".encode()
    return [pid for pid in machine.busy() if wanted in _command(pid)]


def agents(machine: Machine) -> list[int]:
    """The processes of agents; their wrappers bear the same command, after their own."""
    found = programs(machine, "agents.replay")
    return [pid for pid in found if b"wavetank.agents.wrapper" not in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def trajectories(machine: Machine, name: str) -> list[Path]:
    """The records of sessions that are under way, as soon as a call was made in them."""
    found = machine.home(name).glob("work/*/*/trajectory.jsonl")
    return [path for path in found if path.stat().st_size]


async def test_a_world_that_is_killed_costs_an_attempt_and_no_rollout(
    machine: Machine, tmp_path: Path
) -> None:
    folder = waits(tmp_path, 3)
    command = ("benchmarks", "run", folder, "--local", "--agent", "oracle", "--name", "hit")
    process = await machine.start(*command)

    await until(lambda: bool(agents(machine)))
    (world,) = programs(machine, "worlds")
    os.kill(world, signal.SIGKILL)
    await process.communicate()

    (row,) = (await machine.results("hit", "--runs"))["rollouts"]
    assert (row["reward"], row["attempt"], row["attempts"]) == (1.0, 2, 2)
    assert '"cause":"WorldFailed"' in machine.ledger("hit")
    assert machine.busy() == []


async def test_an_agent_that_is_killed_is_graded_as_it_left_things(
    machine: Machine, tmp_path: Path
) -> None:
    folder = waits(tmp_path, 3)
    command = ("benchmarks", "run", folder, "--local", "--agent", "oracle", "--name", "hit")
    process = await machine.start(*command)

    await until(lambda: bool(agents(machine)))
    os.kill(agents(machine)[0], signal.SIGKILL)
    await process.communicate()

    (row,) = (await machine.results("hit", "--runs"))["rollouts"]
    assert (row["reward"], row["agentCause"], row["attempts"]) == (0.0, "AgentFailed", 1)


@pytest.mark.parametrize("program", ["worlds.grading.grade", "worlds.grading.judge"])
async def test_graders_that_are_killed_are_started_again(
    machine: Machine, tmp_path: Path, program: str
) -> None:
    folder = waits(tmp_path, 0)
    command = ("benchmarks", "run", folder, "--local", "--agent", "oracle", "--name", "hit")
    process = await machine.start(*command)

    # The first grader is the check's, which is over when the plan is there.
    await until((machine.home("hit") / "plan.json").exists)
    await until(lambda: bool(programs(machine, program)))
    os.kill(programs(machine, program)[0], signal.SIGKILL)
    await process.communicate()

    (row,) = (await machine.results("hit", "--runs"))["rollouts"]
    assert (row["reward"], row["attempts"]) == (1.0, 1)
    assert [line.partition(" ")[0] for line in machine.ledger("hit").splitlines()] == [
        "0.a1.g1",
        "0",
    ]


async def test_an_engine_that_is_killed_again_and_again_comes_to_its_end(
    machine: Machine, tmp_path: Path
) -> None:
    folder = waits(tmp_path, 0.2)
    options = ("--local", "--agent", "oracle", "--name", "hit", "-k", "8", "--parallelism", "2")
    command = ("benchmarks", "run", folder, *options)
    # By what it has just done: planned, begun a session, sealed an end, recorded, and so on.
    moments = [
        (machine.home("hit") / "plan.json").exists,
        lambda: bool(trajectories(machine, "hit")),
        lambda: bool(machine.seals("hit")),
        lambda: len(machine.ledger("hit").splitlines()) >= 1,
        lambda: bool(programs(machine, "worlds.grading.judge")),
        lambda: len(machine.ledger("hit").splitlines()) >= 5,
    ]

    before, seals = "", dict[str, int]()
    for moment in moments:
        process = await machine.start(*command)
        await until(moment)
        process.kill()
        await process.communicate()
        ledger, sealed = machine.ledger("hit"), machine.seals("hit")
        assert ledger.startswith(before)
        recorded = [f"{line.partition(' ')[0]}/1" for line in before.splitlines()]
        assert all(sealed[attempt] == seals[attempt] for attempt in recorded)
        before, seals = ledger, sealed
    ended = await machine.wavetank(*command)

    assert ended.code == 0, ended.err
    after = machine.ledger("hit")
    assert after.startswith(before)
    assert sorted(line.partition(" ")[0] for line in after.splitlines()) == list("01234567")
    found = await machine.results("hit", "--runs")
    assert [row["attempt"] for row in found["rollouts"]] == [1] * 8
    assert found["reward"]["mean"] == 1.0
    await asyncio.wait_for(_quiet(machine), 20)


async def _quiet(machine: Machine) -> None:
    await until(lambda: not machine.busy(), 20)
