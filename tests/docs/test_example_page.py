"""The tables of the example's README against its expected results."""

import json
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "01-crm"
PAGE = (EXAMPLE / "README.md").read_text()
EXPECTED = json.loads((EXAMPLE / "expected-results.json").read_text())


def rows(first: str) -> list[list[str]]:
    """The cells of the table whose heading starts with a column."""
    lines = PAGE.partition(f"\n| {first} |")[2].split("\n\n")[0].splitlines()
    return [[cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in lines[2:]]


def test_the_runs_are_as_expected():
    told = [[name, agent, *figures] for name, agent, _, *figures in rows("Run")]

    assert told == [
        [
            run["name"],
            agent,
            f"{run['reward']['mean']:.4f}",
            "{low:.4f} to {high:.4f}".format(**run["reward"]["interval95"]),
            f"{run['passRate']:.4f}",
            f"{run['coverage']['rollouts']:.4f}",
        ]
        for agent, run in EXPECTED.items()
    ]


def test_the_tasks_are_as_expected():
    told = rows("task | oracle")

    assert told == [
        [task["id"], *(f"{run['tasks'][place]['mean']:.4f}" for run in EXPECTED.values())]
        for place, task in enumerate(EXPECTED["oracle"]["tasks"])
    ]
