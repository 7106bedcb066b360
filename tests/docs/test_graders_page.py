"""What docs/worlds.md tells of assertions and Python checks, against the code and example 01."""

import inspect
import json
import re
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest

from wavetank.bundles.world import Comparison, linked_folders, read
from wavetank.bundles.world.extras import read_verifiers
from wavetank.bundles.world.place import Place, Sink
from wavetank.worlds import database
from wavetank.worlds.grading import evidence, members, python
from wavetank.worlds.grading.child import Limits
from wavetank.worlds.grading.sql import BUSY_FACTOR, SECONDS_PER_VERIFIER, SessionFacts
from wavetank.worlds.grading.states import states_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "worlds.md").read_text()
EXAMPLE = ROOT / "examples" / "01-crm" / "crm-bench"


def first_cells(heading: str) -> list[str]:
    rows = PAGE.partition(f"\n| {heading} |")[2].split("\n\n")[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`(\w+)[^`]*`", row.split("|")[1])]


def block(heading: str, language: str) -> str:
    section = PAGE.partition(f"\n### {heading}\n")[2]
    found = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("ending", "text", "untouched", "closed"),
    [
        (".json", block("Assertions", "json"), 1 / 3, 2 / 3),
        (".py", block("Python", "python"), 0.0, 0.5),
        (".sql", block("SQL", "sql"), 0.0, 1.0),
    ],
)
def test_the_examples_of_the_page_grade_example_01(
    tmp_path: Path, ending: str, text: str, untouched: float, closed: float
) -> None:
    world = read(EXAMPLE, linked_folders(EXAMPLE))
    folder = tmp_path / "bundle" / "verifiers"
    folder.mkdir(parents=True)
    (folder / f"it{ending}").write_text(text)
    sink = Sink()
    found = read_verifiers(tmp_path / "bundle", Place(sink, "verifiers"), world.main.entities)
    assert sink.findings == []
    question = members.Question("it", "", found["it"])

    with closing(database.create(world.worlds)) as databases:
        for name, statement in (
            ("untouched", None),
            (
                "closed",
                "UPDATE crm_tickets SET status = 'closed', close_reason = 'a duplicate', "
                "updated_at = '2026-03-02T09:00:01Z' WHERE id = 'T-7'",
            ),
        ):
            transaction = databases.begin()
            if statement:
                transaction.execute("", statement)
            transaction.commit()
            databases.dump(tmp_path / name)

    def score(name: str) -> float | None:
        states = states_of(world, tmp_path / name, SessionFacts("t", None, 0, "closed"))
        [answer] = members.ask([question], states, SECONDS_PER_VERIFIER)
        return answer.value

    assert (score("untouched"), score("closed")) == (untouched, closed)


def test_the_comparisons_are_those_that_are_read() -> None:
    assert set(first_cells("comparison")) == set(Comparison) - {Comparison.IS}


def test_what_a_check_is_given_is_told() -> None:
    methods = {
        name
        for name, _ in inspect.getmembers(evidence.World, inspect.isfunction)
        if not name.startswith("_")
    }
    states = states_of(read(EXAMPLE, {}), EXAMPLE, SessionFacts("t", None, 0, "closed"))
    trajectory = {name for name in dir(evidence.Trajectory(states)) if not name.startswith("_")}

    assert set(first_cells("of the end state")) == methods
    assert set(first_cells("of the trajectory")) == trajectory
    assert set(first_cells("of a call")) == {each.name for each in fields(evidence.Call)}


def test_the_limits_of_a_check_are_as_told() -> None:
    limits = Limits(seconds=1, wall_seconds=1)
    waiting = int(SECONDS_PER_VERIFIER * BUSY_FACTOR * 1.05)

    assert (
        f"{limits.address_space_mib} MiB of address space, of which copies of states may take "
        f"{python.SQLITE_HEAP_MIB}; after\n{SECONDS_PER_VERIFIER:g} seconds of computing, or "
        f"{waiting} of waiting"
    ) in PAGE


def test_the_form_of_a_file_is_json() -> None:
    assert set(json.loads(block("Assertions", "json"))) == {"mode", "assertions"}
