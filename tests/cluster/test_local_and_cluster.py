"""One bundle, run by the embedded engine and by the operator: the same table."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from wavetank.testing.command import wavetank
from wavetank.testing.local import Machine

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600), pytest.mark.usefixtures("operator")]

BENCH = Path(__file__).parents[2] / "examples" / "01-crm" / "crm-bench"
AGENTS = {"oracle": "oracle", "nop": "nop", "partial": "scripted:partial"}


def comparable(results: Mapping[str, Any]) -> dict[str, Any]:
    """A Run's results without what is of the place and the moment."""
    own = {"attempt", "attempts", "evidence", "seconds"}
    rows = [{k: v for k, v in row.items() if k not in own} for row in results["rollouts"]]
    return {**results, "name": None, "rollouts": rows}


async def test_a_bundle_gives_the_same_table_here_and_there(
    namespace: str, kubeconfig: Path, tmp_path: Path
) -> None:
    machine = Machine(tmp_path / "data")
    there = ("-n", namespace, "--kubeconfig", kubeconfig)
    pushed = await wavetank("benchmarks", "push", BENCH, *there)
    assert pushed.code == 0, pushed.out + pushed.err

    for name, agent in AGENTS.items():
        how = ("--agent", agent, "-k", "2", "--name")
        ran = await wavetank("benchmarks", "run", "crm", *how, name, "--wait", *there)
        assert ran.code == 0, ran.err
        here = f"{name}-here"
        ran = await machine.wavetank("benchmarks", "run", BENCH, "--local", *how, here)
        assert ran.code == 0, ran.err
        shown = await wavetank("benchmarks", "results", name, "--runs", "--json", *there)
        (of_cluster,) = json.loads(shown.out)["runs"]

        of_machine = await machine.results(here, "--runs")
        compared = await machine.wavetank("benchmarks", "compare", name, here, "--json", *there)

        assert comparable(of_machine) == comparable(of_cluster)
        document = json.loads(compared.out)
        assert document["sameBenchmark"] is True
        assert (document["difference"]["n"], document["difference"]["mean"]) == (5, 0.0)
