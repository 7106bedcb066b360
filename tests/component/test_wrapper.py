"""The wrapper and the agents without a model, as processes, acting on a real world container."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from wavetank.api.wire import Seal, SessionEnd, WorldMessage
from wavetank.testing.bundles import DESK, write_bundle
from wavetank.testing.store import RunningStore, running_store
from wavetank.testing.worlds import RunningWorld, a_session, push, wait_until

WRAPPER = [sys.executable, "-m", "wavetank.agents.wrapper", "--"]
REPLAY = [sys.executable, "-m", "wavetank.agents.replay"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStore]:
    with running_store(tmp_path_factory.mktemp("store") / "data") as running:
        yield running


@pytest.fixture
def started() -> Iterator[list[RunningWorld]]:
    worlds: list[RunningWorld] = []
    yield worlds
    for world in worlds:
        if world.process and not world.ended():
            world.process.kill()
            world.process.wait()


async def a_world(
    store: RunningStore,
    started: list[RunningWorld],
    tmp_path: Path,
    deadline_seconds: int = 60,
    attempt: list[int] = [0],  # noqa: B006 - the store outlives a test: no attempt comes twice
) -> RunningWorld:
    attempt[0] += 1
    bundles = await push(store, {"": write_bundle(tmp_path / "crm", DESK)})
    session = a_session(store, bundles, deadline_seconds=deadline_seconds, attempt=attempt[0])
    world = RunningWorld(tmp_path / "world", session, store.token())
    started.append(world)
    world.start()
    return world


def wrapped(
    world: RunningWorld, command: list[str], **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WRAPPER, *command],
        env={**os.environ, "WAVETANK_WORLD_URL": world.url, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def seal_of(world: RunningWorld) -> Seal:
    seal = (world.message or WorldMessage()).seal
    assert seal is not None
    return seal


def solution(tmp_path: Path, steps: list[object]) -> str:
    file = tmp_path / "calls.json"
    file.write_text(json.dumps(steps))
    return str(file)


async def test_the_oracle_replays_its_solution_and_leaves_a_final_answer(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    steps = DESK["solutions/close_ticket.json"]
    assert isinstance(steps, list)

    done = wrapped(world, REPLAY, WAVETANK_SOLUTION_FILE=solution(tmp_path, steps))

    assert (done.returncode, done.stdout, done.stderr) == (0, "replay: 1 calls made\n", "")
    seal = seal_of(world)
    assert (seal.end, seal.reason, seal.exit_code, seal.calls) == (
        SessionEnd.CLOSED,
        "completed",
        0,
        1,
    )


async def test_a_replayed_call_that_fails_ends_the_agent_with_its_reason(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    steps: list[object] = [
        {"tool": "list_tickets"},
        {"tool": "update_ticket", "arguments": {"id": "T-9", "status": "closed"}},
    ]

    done = wrapped(world, REPLAY, WAVETANK_SOLUTION_FILE=solution(tmp_path, steps))

    assert done.returncode == 1
    assert done.stdout == (
        "replay: call 2 of 2, update_ticket: 422 ToolError: there is no ticket T-9\n"
    )
    assert seal_of(world).reason == "exit code 1"


async def test_the_agent_finds_its_task_in_its_environment(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    script = (
        'echo "$WAVETANK_TASK $WAVETANK_MCP_URL $WAVETANK_WORLD_URL"; cat "$WAVETANK_PROMPT_FILE"; '
        'echo; cat "$WAVETANK_INSTRUCTIONS_FILE"; test -n "$WAVETANK_DEADLINE"; '
        'echo Done. > "$WAVETANK_OUTPUT_DIR/final_answer.txt"'
    )

    done = wrapped(world, ["sh", "-ec", script])

    assert done.returncode == 0
    assert done.stdout == (
        f"close_ticket {world.url}/mcp {world.url}\n"
        "Close ticket T-7 and record the reason as 'duplicate'.\n"
        "You work at a support desk."
    )


async def test_an_agent_that_fails_is_reported_with_its_exit_code(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)

    done = wrapped(world, ["sh", "-c", "exit 3"])

    seal = seal_of(world)
    assert (done.returncode, seal.end, seal.reason, seal.exit_code) == (
        3,
        SessionEnd.CLOSED,
        "exit code 3",
        3,
    )


async def test_a_command_that_is_not_there_is_exit_code_127(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)

    done = wrapped(world, ["no-such-agent"])

    assert done.returncode == 127
    assert "'no-such-agent': No such file or directory" in done.stderr
    assert seal_of(world).exit_code == 127


async def test_an_agent_that_ignores_sigterm_is_killed_after_the_deadline(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path, deadline_seconds=2)
    began = time.monotonic()

    done = wrapped(world, ["sh", "-c", "trap '' TERM; echo busy; while true; do sleep 0.1; done"])

    seconds = time.monotonic() - began
    seal = seal_of(world)
    assert (done.returncode, done.stdout) == (124, "busy\n")
    assert (seal.end, seal.reason, seal.exit_code) == (SessionEnd.DEADLINE, "deadline", 137)
    assert 6 < seconds < 20


async def test_the_agent_starts_with_no_signal_blocked_or_ignored(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)

    done = wrapped(world, ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"])

    _, blocked, _, ignored = done.stdout.split()
    # 32 and 33 are the C library's own.
    ours = (1 << 31) - 1
    assert (int(blocked, 16) & ours, int(ignored, 16) & ours) == (0, 0)


async def test_what_an_agent_started_ends_with_it(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    script = "sleep 600 & echo $!; (sleep 600 & echo $!); exit 0"

    done = wrapped(world, ["sh", "-c", script])

    children = [int(line) for line in done.stdout.split()]
    assert (done.returncode, len(children)) == (0, 2)
    assert [pid for pid in children if is_alive(pid)] == []


async def test_without_a_world_the_exit_code_is_125(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    world.stop(signal.SIGKILL)
    world.start()

    done = wrapped(world, ["true"])

    assert done.returncode == 125
    assert "the world does not start the session: 409 WorldFailed" in done.stderr


async def test_a_world_killed_while_the_agent_acts_is_no_success(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    process = subprocess.Popen(
        [*WRAPPER, "sh", "-c", "echo acting; sleep 2"],
        env={**os.environ, "WAVETANK_WORLD_URL": world.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: httpx.get(f"{world.url}/v1/session").json()["state"] == "open")
    world.stop(signal.SIGKILL)

    _, errors = process.communicate(timeout=60)

    assert process.returncode == 125
    assert "the world does not answer" in errors


async def test_a_wrapper_told_to_stop_ends_the_agent_and_closes_nothing(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    with subprocess.Popen(
        [*WRAPPER, "sh", "-c", "echo $$; exec sleep 600"],
        env={**os.environ, "WAVETANK_WORLD_URL": world.url},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        agent = int(process.stdout.readline())

        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)

    assert process.returncode == 143
    assert not is_alive(agent)
    assert httpx.get(f"{world.url}/v1/session").json()["state"] == "open"


async def test_a_pipe_in_place_of_the_final_answer_is_not_read(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)

    done = wrapped(world, ["sh", "-c", 'mkfifo "$WAVETANK_OUTPUT_DIR/final_answer.txt"'])

    assert done.returncode == 0
    assert seal_of(world).end is SessionEnd.CLOSED


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace takes root")
async def test_as_process_1_it_ends_what_left_the_group_and_reaps_what_was_orphaned(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    # An orphan that ends at once, one that ignores SIGTERM in a session of its own; then count the
    # zombies. Without the kill the namespace would last as long as its sleep.
    script = (
        "(sleep 0.1 &); setsid sh -c 'trap \"\" TERM; sleep 600' & sleep 1; "
        "ps -e -o stat= | grep -c Z; exit 4"
    )

    began = time.monotonic()
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", *WRAPPER, "sh", "-c", script],
        env={**os.environ, "WAVETANK_WORLD_URL": world.url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (4, "0\n", "")
    assert time.monotonic() - began < 30
    assert seal_of(world).exit_code == 4


@pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace takes root")
async def test_as_process_1_it_takes_sigterm(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    with subprocess.Popen(
        ["unshare", "--pid", "--fork", "--mount-proc", *WRAPPER, "sh", "-c", "echo; sleep 600"],
        env={**os.environ, "WAVETANK_WORLD_URL": world.url},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (wrapper,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()

        os.kill(int(wrapper), signal.SIGTERM)
        process.wait(timeout=20)

    assert process.returncode == 143
