"""Every example on one's own machine: it validates, and its agents get what its page says."""

import json
from pathlib import Path
from typing import Any

import pytest

from wavetank.testing.local import Machine

pytestmark = [pytest.mark.component, pytest.mark.timeout(300)]

EXAMPLES = Path(__file__).parents[2] / "examples"
BENCHES = {
    "01-crm": "crm-bench",
    "02-calendar": "calendar-bench",
    "03-warehouse": "warehouse-bench",
}
AGENTS = ("oracle", "nop", "scripted:partial")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "data")


def expected(example: str) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((EXAMPLES / example / "expected-results.json").read_text())
    return results


def test_every_example_is_here():
    assert [path.name for path in sorted(EXAMPLES.glob("[0-9]*"))] == list(BENCHES)


@pytest.mark.parametrize("example", BENCHES)
async def test_oracle_solves_an_example_and_nop_passes_nowhere(machine: Machine, example: str):
    bench = EXAMPLES / example / BENCHES[example]

    ended = await machine.wavetank("benchmarks", "validate", bench, "--json")

    assert ended.code == 0, ended.out + ended.err


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    "example", [name for name in BENCHES if expected(name)["oracle"]["k"] == 1]
)
async def test_a_local_run_gives_the_expected_results(machine: Machine, example: str, agent: str):
    # Example 01's Runs have k=3; test_engine.py plays them.
    wanted = expected(example)[agent]
    options = ("--local", "-k", "1", "--agent", agent, "--name", wanted["name"], "--json")

    ended = await machine.wavetank(
        "benchmarks", "run", EXAMPLES / example / BENCHES[example], *options
    )

    assert ended.code == 0, ended.err
    found = json.loads(ended.out)["runs"][-1]
    assert {key: found[key] for key in wanted} == wanted
