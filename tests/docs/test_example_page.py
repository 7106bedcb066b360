"""The tables of each example's README against its expected results."""

import json
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("[0-9]*"))


def expected(example: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((example / "expected-results.json").read_text())
    return results


def rows(example: Path, first: str) -> list[list[str]]:
    """The cells of the README's table whose heading starts with a column."""
    lines = (example / "README.md").read_text().partition(f"\n| {first} |")[2]
    body = lines.split("\n\n")[0].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in body]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_runs_are_as_expected(example: Path):
    told = [[name, agent, *figures] for name, agent, _, *figures in rows(example, "Run")]

    assert told == [
        [
            run["name"],
            agent,
            f"{run['reward']['mean']:.4f}",
            "{low:.4f} to {high:.4f}".format(**run["reward"]["interval95"]),
            f"{run['passRate']:.4f}",
            f"{run['coverage']['rollouts']:.4f}",
        ]
        for agent, run in expected(example).items()
    ]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_tasks_are_as_expected(example: Path):
    told = rows(example, "task | oracle")
    runs = expected(example)

    assert told == [
        [task["id"], *(f"{run['tasks'][place]['mean']:.4f}" for run in runs.values())]
        for place, task in enumerate(runs["oracle"]["tasks"])
    ]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_page_lists_each_task_with_its_difficulty(example: Path):
    told = [first for first, *_ in rows(example, "task | asks for")]

    assert told == [
        f"{task['id']}` ({task['difficulty']})" for task in expected(example)["oracle"]["tasks"]
    ]
