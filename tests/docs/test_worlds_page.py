"""The tables of docs/worlds.md against the code that they tell of."""

import inspect
import re
from pathlib import Path

from wavetank.agents import wrapper
from wavetank.bundles.world import FieldType, Task
from wavetank.worlds import World
from wavetank.worlds.grading.sql import SECONDS_PER_VERIFIER, SessionFacts
from wavetank.worlds.session import ErrorKind

MODULES = ("benchmarks", "worlds", "checks")
PAGE = (Path(__file__).parents[2] / "docs" / "worlds.md").read_text()


def first_cells(heading: str) -> list[str]:
    """What stands in backticks in the first column of the table with this heading."""
    rows = PAGE.partition(f"\n| {heading} |")[2].split("\n\n")[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_the_types_are_those_of_the_schema():
    told = re.search(r"The types are (.*?)\. A field", PAGE, re.DOTALL)

    assert told is not None
    assert set(re.findall(r"`(\w+)`", told[1])) == set(FieldType)


def test_the_methods_are_those_of_a_world():
    real = {
        name
        for name, member in inspect.getmembers(World, inspect.isfunction)
        if not name.startswith("_")
    }

    assert {name.partition("(")[0] for name in first_cells("of a `World`")} == real | {"random"}


def test_the_fields_of_a_task_are_those_that_are_read():
    assert set(first_cells("field")) == set(Task.__dataclass_fields__)


def test_the_session_table_has_these_columns():
    assert first_cells("column") == list(SessionFacts.__dataclass_fields__)


def test_the_time_of_a_verifier_is_as_told():
    assert f"| nothing within {SECONDS_PER_VERIFIER:g} seconds of computing |" in PAGE


def test_error_types_are_those_of_the_server():
    told = set(re.findall(r"`([A-Z]\w+)`", PAGE.partition("\n| status | error types |")[2]))

    assert set(ErrorKind) <= told


def test_the_environment_is_what_the_wrapper_gives():
    source = inspect.getsource(wrapper)

    assert set(first_cells("variable")) == set(re.findall(r'"(WAVETANK_\w+)":', source))


def test_the_reasons_of_ready_are_those_that_are_given():
    folder = Path(__file__).parents[2] / "operator" / "wavetank" / "controller"
    sources = "".join((folder / f"{name}.py").read_text() for name in MODULES)
    table = PAGE.partition("\n| `Ready` | reason |")[2].split("\n\n")[0]
    told = {word for row in table.splitlines() for word in re.findall(r"`([A-Z]\w+)`", row)}

    given = set(re.findall(r'(?:NotChecked|Says)\(\s*"(?:Ready", \w+, ")?([A-Z]\w+)"', sources))
    given |= set(re.findall(r'_say_faults\([^"]*"(\w+)"', sources))
    assert told - {"Ready"} == given - {"Ready"}
