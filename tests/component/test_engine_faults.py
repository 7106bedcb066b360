"""Local Runs in which something goes wrong: whose fault it is told, and never a made-up zero."""

import json
from pathlib import Path

import pytest

from wavetank.testing.bundles import DESK, HANDLERS, write_bundle
from wavetank.testing.local import Machine

pytestmark = [pytest.mark.component, pytest.mark.timeout(300)]

SLOW_CONFIG = """\
[world]
name = "slow"

[[tasks]]
id = "close_ticket"
prompt = "Close ticket T-7."
verifiers = ["ticket_closed"]
timeout_seconds = 2
"""
SLOW_TOOL = '''

@tool
def wait(world: World, seconds: int) -> int:
    """Take some time."""
    import time

    time.sleep(seconds)
    return seconds
'''
CHANCE_TOOL = '''

@tool
def roll(world: World, id: str) -> dict:
    """Write what chance and the clock say."""
    told = f"{world.random.random()} at {world.now().isoformat()}"
    return world.update("crm_tickets", {"id": id}, {"close_reason": told})[0]
'''
CLOSE = {"tool": "update_ticket", "arguments": {"id": "T-7", "status": "closed"}}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "data")


def desk(folder: Path, **files: object) -> Path:
    """Write the desk with other files, named by their path with ``__`` for ``/``."""
    changed = {path.replace("__", "/"): content for path, content in files.items()}
    return write_bundle(folder / "desk", {**DESK, **changed})


def run(folder: Path, *more: str) -> tuple[str | Path, ...]:
    agent = () if "--agent" in more else ("--agent", "oracle")
    return ("benchmarks", "run", folder, "--local", *agent, *more)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("raise RuntimeError('no such service')", "RuntimeError: no such service"),
        ("import os; os._exit(3)", "exit code 3"),
    ],
    ids=["raises", "exits"],
)
async def test_a_world_that_crashes_at_import_is_refused_and_never_scored(
    machine: Machine, tmp_path: Path, line: str, told: str
) -> None:
    folder = desk(tmp_path, **{"tools__handlers.py": f"{HANDLERS}\n\n{line}\n"})

    refused = await machine.wavetank(*run(folder))
    allowed = await machine.wavetank(*run(folder, "--allow-faults", "--name", "broken"))

    assert (refused.code, refused.out) == (1, "")
    assert "tools/handlers.py" in refused.err
    assert told in refused.err
    assert refused.err.endswith("benchmark crm: mend it, or give --allow-faults.\n")
    assert allowed.code == 0, allowed.err
    found = await machine.results("broken", "--runs")
    assert found["reward"]["mean"] is None
    assert (found["reward"]["lowerBound"], found["reward"]["upperBound"]) == (0.0, 1.0)
    assert found["unscoredByCause"] == [{"cause": "WorldFailed", "count": 1}]
    assert [row["attempts"] for row in found["rollouts"]] == [2]
    assert [path.name for path in machine.home("broken").parent.iterdir()] == ["broken"]


async def test_an_agent_that_is_too_slow_is_graded_where_its_time_ended(
    machine: Machine, tmp_path: Path
) -> None:
    folder = desk(
        tmp_path,
        **{
            "gateway-env.toml": SLOW_CONFIG,
            "tools__handlers.py": HANDLERS + SLOW_TOOL,
            "scripts__late__close_ticket.json": [
                CLOSE,
                {"tool": "wait", "arguments": {"seconds": 60}},
            ],
        },
    )

    ended = await machine.wavetank(*run(folder, "--agent", "scripted:late", "--name", "late"))

    assert ended.code == 0, ended.err
    (row,) = (await machine.results("late", "--runs"))["rollouts"]
    assert (row["reward"], row["agentCause"], row["cause"]) == (1.0, "AgentTimeout", None)
    assert 1.9 < row["seconds"] < 10
    shown = await machine.wavetank("runs", "evidence", "late", "close_ticket", "0")
    assert "end     deadline: deadline\n" in shown.out
    assert shown.out.endswith("reward  1.0000 AgentTimeout\n")


async def test_an_agent_that_fails_is_graded_and_says_so(machine: Machine, tmp_path: Path) -> None:
    wrong = [{"tool": "update_ticket", "arguments": {"id": "T-99", "status": "closed"}}]
    folder = desk(tmp_path, **{"scripts__wrong__close_ticket.json": wrong})

    await machine.wavetank(*run(folder, "--agent", "scripted:wrong", "--name", "wrong"))

    (row,) = (await machine.results("wrong", "--runs"))["rollouts"]
    assert (row["reward"], row["agentCause"], row["attempts"]) == (0.0, "AgentFailed", 1)


async def test_a_verifier_that_cannot_run_leaves_its_words(
    machine: Machine, tmp_path: Path
) -> None:
    folder = desk(tmp_path, **{"verifiers__ticket_closed.sql": "SELECT x FROM nowhere"})

    await machine.wavetank(*run(folder, "--allow-faults", "--name", "null"))

    (row,) = (await machine.results("null", "--runs"))["rollouts"]
    assert (row["reward"], row["cause"]) == (None, "VerifierFailed")
    assert "no such table: nowhere" in row["message"]


async def test_what_has_no_score_is_run_again_on_demand(machine: Machine, tmp_path: Path) -> None:
    flag = tmp_path / "mended"
    line = (
        f"import pathlib\n\nif not pathlib.Path({str(flag)!r}).exists():\n    raise OSError('down')"
    )
    folder = desk(tmp_path, **{"tools__handlers.py": f"{HANDLERS}\n\n{line}\n"})
    command = run(folder, "--allow-faults", "--name", "again", "--retry-unscored")

    await machine.wavetank(*command)
    before = machine.ledger("again")
    flag.touch()
    mended = await machine.wavetank(*command)
    settled = await machine.wavetank(*command)

    assert mended.code == 0, mended.err
    found = await machine.results("again", "--runs")
    assert found["reward"]["mean"] == 1.0
    (row,) = found["rollouts"]
    assert (row["attempt"], row["attempts"]) == (3, 3)
    assert machine.ledger("again") == before
    assert [line.split(" ")[0] for line in machine.ledger("again", 1).splitlines()] == ["0"]
    # There is nothing left to run again.
    assert settled.out == mended.out
    assert machine.ledger("again", 2) == ""


async def test_a_higher_k_adds_rollouts_and_a_lower_one_takes_none(
    machine: Machine, tmp_path: Path
) -> None:
    folder = desk(tmp_path)

    await machine.wavetank(*run(folder, "-k", "1", "--name", "grows"))
    first = machine.ledger("grows")
    await machine.wavetank(*run(folder, "-k", "2", "--name", "grows"))
    second = machine.ledger("grows")
    await machine.wavetank(*run(folder, "-k", "1", "--name", "grows"))

    assert second.startswith(first)
    assert len(second.splitlines()) == 2
    assert machine.ledger("grows") == second
    assert (await machine.results("grows"))["k"] == 2


async def test_the_same_seed_and_calls_give_the_same_bytes(
    machine: Machine, tmp_path: Path
) -> None:
    calls = [
        {"tool": "roll", "arguments": {"id": "T-7"}},
        {"tool": "roll", "arguments": {"id": "T-8"}},
        {"tool": "list_tickets", "arguments": {}},
    ]
    folder = desk(
        tmp_path,
        **{
            "tools__handlers.py": HANDLERS + CHANCE_TOOL,
            "scripts__dice__close_ticket.json": calls,
        },
    )

    ends = []
    for name in ("one", "two"):
        await machine.wavetank(*run(folder, "--agent", "scripted:dice", "--name", name, "-k", "2"))
        for rollout in ("0", "1"):
            out = tmp_path / f"{name}-{rollout}"
            command = ("runs", "evidence", name, "close_ticket", rollout, "-o", out)
            ended = await machine.wavetank(*command)
            assert ended.code == 0, ended.err
            ends.append((out / "worlds" / "main.sqlite").read_bytes())
    of_one, again_of_one, of_two, again_of_two = ends

    assert (of_one, again_of_one) == (of_two, again_of_two)
    assert of_one != again_of_one  # each rollout has chances of its own


async def test_changed_files_make_another_run(machine: Machine, tmp_path: Path) -> None:
    folder = desk(tmp_path)
    await machine.wavetank(*run(folder))
    (folder / "verifiers" / "ticket_closed.sql").write_text("SELECT 0.5")

    ended = await machine.wavetank(*run(folder))
    named = await machine.wavetank(*run(folder, "--name", "mine"))
    (folder / "verifiers" / "ticket_closed.sql").write_text("SELECT 0.25")
    taken = await machine.wavetank(*run(folder, "--name", "mine"))

    assert (ended.code, named.code, taken.code) == (0, 0, 1)
    assert "Run mine: there is a local Run of this name" in taken.err
    listed = await machine.wavetank("benchmarks", "results", folder, "--json")
    runs = json.loads(listed.out)["runs"]
    assert sorted(each["reward"]["mean"] for each in runs) == [0.5, 0.5, 1.0]


@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        (("--task", "nothing*"), 1, "--task: none of the tasks of crm is chosen."),
        (("--agent", "scripted:none"), 1, "agent scripted:none: it has nothing to replay for"),
        (("--agent", "clever"), 2, "--agent: give oracle, nop or scripted:<name>"),
        (("-n", "bench"), 2, "--local uses no cluster"),
    ],
    ids=["no task", "no script", "no agent", "a namespace"],
)
async def test_a_run_that_cannot_be_is_refused_and_leaves_nothing(
    machine: Machine, tmp_path: Path, more: tuple[str, ...], code: int, told: str
) -> None:
    ended = await machine.wavetank(*run(desk(tmp_path), *more))

    assert (ended.code, ended.out) == (code, "")
    assert told in ended.err
    assert not list(machine.data.glob("wavetank/runs/*"))


async def test_a_folder_that_holds_no_benchmark_is_refused(
    machine: Machine, tmp_path: Path
) -> None:
    ended = await machine.wavetank(*run(tmp_path))

    assert (ended.code, ended.out) == (1, "")
    assert "it holds no benchmark" in ended.err


async def test_a_benchmark_that_never_ran_has_no_results(machine: Machine, tmp_path: Path) -> None:
    folder = desk(tmp_path)

    ended = await machine.wavetank("benchmarks", "results", folder)

    start = f"wavetank benchmarks run {folder} --local --agent oracle"
    assert ended.out == f"Benchmark {folder} has no Runs yet. Start one: {start}\n"
