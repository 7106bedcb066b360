"""Local Runs of example 01: the same table as on a cluster, however often they are cut short."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from wavetank.testing.local import Machine, until

pytestmark = [pytest.mark.component, pytest.mark.timeout(600)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "01-crm"
EXPECTED: dict[str, Any] = json.loads((EXAMPLE / "expected-results.json").read_text())
BENCH = EXAMPLE / "crm-bench"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "data")


def run(agent: str) -> tuple[str | Path, ...]:
    """The command that runs the example, named as its Runs in a cluster are."""
    name = f"crm-{agent.partition(':')[0]}"
    options = ("--local", "-k", "3", "--parallelism", "2", "--agent", agent, "--name", name)
    return ("benchmarks", "run", BENCH, *options)


def keys(ledger: str) -> list[str]:
    return [line.partition(" ")[0] for line in ledger.splitlines()]


async def test_the_example_gives_the_table_of_the_cluster(machine: Machine) -> None:
    ended = await machine.wavetank(*run("scripted:partial"), "--json")

    assert ended.code == 0, ended.err
    printed = json.loads(ended.out)
    found = await machine.results("crm-scripted", "--runs")
    assert printed["benchmark"] == "crm"
    assert printed["runs"] == [{k: v for k, v in found.items() if k != "rollouts"}]
    expected = EXPECTED["scripted:partial"]
    assert {key: found[key] for key in expected} == expected
    assert all(Path(row["evidence"], "snapshot").is_file() for row in found["rollouts"])
    assert sorted(p.name for p in machine.home("crm-scripted").iterdir()) == [
        *("ledger-g0.jsonl", "lock", "plan.json", "run.json", "store"),
    ]


async def test_after_kill_9_the_same_command_repeats_no_graded_rollout(machine: Machine) -> None:
    process = await machine.start(*run("oracle"))
    await until(lambda: len(keys(machine.ledger("crm-oracle"))) >= 3)
    process.send_signal(signal.SIGKILL)
    await process.communicate()
    before, sealed = machine.ledger("crm-oracle"), machine.seals("crm-oracle")
    recorded = {f"{key}/1": sealed[f"{key}/1"] for key in keys(before)}
    await until(lambda: not machine.busy(), 20)

    ended = await machine.wavetank(*run("oracle"))

    after = machine.ledger("crm-oracle")
    assert ended.code == 0, ended.err
    assert len(keys(before)) < 15
    assert after.startswith(before)
    assert sorted(map(int, keys(after))) == list(range(15))
    assert machine.seals("crm-oracle").items() >= recorded.items()
    expected = EXPECTED["oracle"]
    found = await machine.results(BENCH)
    assert {key: found[key] for key in expected} == expected


async def test_ctrl_c_loses_nothing_that_was_graded(machine: Machine) -> None:
    process = await machine.start(*run("nop"))
    await until(lambda: len(keys(machine.ledger("crm-nop"))) >= 1)
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    before = machine.ledger("crm-nop")
    stopped = await machine.results("crm-nop")

    ended = await machine.wavetank(*run("nop"))
    again = await machine.wavetank(*run("nop"))

    words = "It is stopped. What was graded is kept; the same command goes on.\nInterrupted.\n"
    assert (process.returncode, machine.busy()) == (130, [])
    assert err.decode().endswith(words)
    assert stopped["state"] == "Suspended"
    assert machine.ledger("crm-nop").startswith(before)
    assert sorted(map(int, keys(machine.ledger("crm-nop")))) == list(range(15))
    expected = EXPECTED["nop"]
    found = await machine.results("crm-nop")
    assert {key: found[key] for key in expected} == expected
    # Once all is recorded the same command just shows it.
    assert (again.code, again.out) == (0, ended.out)


async def test_two_runs_at_once_do_not_meet(machine: Machine) -> None:
    task = ("--task", "close_ticket", "--local", "-k", "2")
    both = [
        machine.wavetank("benchmarks", "run", BENCH, *task, "--agent", agent, "--name", agent)
        for agent in ("oracle", "nop")
    ]

    oracle, nop = await asyncio.gather(*both)

    assert (oracle.code, nop.code) == (0, 0)
    assert (await machine.results("oracle"))["reward"]["mean"] == 1.0
    assert (await machine.results("nop"))["reward"]["mean"] == pytest.approx(1 / 3)
    compared = await machine.wavetank("benchmarks", "compare", "nop", "oracle")
    assert compared.out == (
        "A  nop  nop, k=2  Complete\n"
        "B  oracle  oracle, k=2  Complete\n"
        "task               A       B  B less A\n"
        "close_ticket  0.3333  1.0000   +0.6667\n"
        "B less A          +0.6667 over 1 task (better in 1, worse in 0)\n"
        "category tickets  +0.6667 over 1 task (better in 1, worse in 0)\n"
        "difficulty easy   +0.6667 over 1 task (better in 1, worse in 0)\n"
    )


async def test_the_same_run_twice_at_once_is_refused(machine: Machine) -> None:
    process = await machine.start(*run("nop"))
    await until(lambda: (machine.home("crm-nop") / "plan.json").exists())

    second = await machine.wavetank(*run("nop"))
    process.send_signal(signal.SIGINT)
    await process.communicate()

    assert (second.code, second.out) == (1, "")
    assert second.err == (
        "Run crm-nop: another process runs it now. Wait for its end, or end it.\n"
    )
