"""The tables of docs/runs.md against the code that they tell of."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from wavetank.api.run import MUTABLE, RunSpec
from wavetank.core import gradings, identity, retries
from wavetank.core.causes import RULES, Retry

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "operator" / "wavetank"
PAGE = (ROOT / "docs" / "runs.md").read_text()
AGAIN = {
    Retry.NEVER: "never",
    Retry.ONCE: "once",
    Retry.UP_TO_MAX_ATTEMPTS: "up to maxAttempts",
}


def table(mark: str) -> list[list[str]]:
    """The rows of the table that follows a comment which starts with ``mark``."""
    _, _, rest = PAGE.partition(f"<!-- {mark}:")
    lines = rest.split("\n\n")[1].splitlines()
    return [[cell.strip().replace("`", "") for cell in line.split("|")[1:-1]] for line in lines[2:]]


def test_the_causes_are_those_of_the_code():
    told = {cause: tuple(rest) for cause, _, *rest in table("causes")}

    assert told == {
        cause.value: (rule.group.value, AGAIN[rule.retry], "yes" if rule.graded else "no")
        for cause, rule in RULES.items()
    }
    assert all(meaning for _, meaning, *_ in table("causes"))


def test_causes_are_graded_exactly_when_their_reward_counts():
    # The page has one column for both.
    assert all(rule.graded is rule.reward_valid for rule in RULES.values())


def test_causes_that_nothing_gives_are_told_as_such():
    sources = [path.read_text() for path in PACKAGE.rglob("*.py") if path.name != "causes.py"]
    unused = {c.value for c in RULES if not any(f"Cause.{c.name}" in text for text in sources)}

    sentence = next(line for line in PAGE.splitlines() if line.startswith("Nothing gives "))
    assert set(re.findall(r"`(\w+)`", sentence)) == unused


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        inner = field.annotation
        opened = isinstance(inner, type) and issubclass(inner, BaseModel)
        if opened and inner.__name__ != "Resources":
            yield from fields(inner, f"{path}.")  # type: ignore[arg-type]
        else:
            yield path, "required" if field.is_required() else field.get_default()


def test_the_fields_are_those_of_the_model():
    told = {name: default for name, default, _ in table("fields")}
    real = dict(fields(RunSpec))

    assert told.keys() == real.keys()
    numbers = {
        name: text for name, text in told.items() if re.fullmatch(r"\d+|required|false", text)
    }
    assert numbers == {name: str(real[name]).lower() for name in numbers}


def test_what_may_change_is_what_the_page_says():
    sentence = next(line for line in PAGE.splitlines() if line.startswith("All but "))

    assert set(re.findall(r"`(\w+)`", sentence)) == MUTABLE


@pytest.mark.parametrize(
    "sentence",
    [
        f"A verifier Job takes up to {gradings.BATCH_SIZE} sealed ends, waiting "
        f"{gradings.BATCH_WAIT_SECONDS:g} seconds for company",
        f"planned again, {retries.BACKOFF_SECONDS:g} seconds later, then "
        f"{2 * retries.BACKOFF_SECONDS:g}, {4 * retries.BACKOFF_SECONDS:g}, at most "
        f"{retries.MAX_BACKOFF_SECONDS:g}, until",
        f"graded again alone, {['no', 'one', 'two', 'three'][gradings.GRADING_TRIES]} tries in all",
        f"; {identity.SHARD_SIZE} rollouts each |",
    ],
    ids=["batches", "back-off", "tries", "shards"],
)
def test_numbers_are_those_of_the_code(sentence: str):
    assert sentence in PAGE.replace("\n   ", " ").replace("\n", " ")


def test_the_reasons_of_conditions_are_those_that_are_given():
    sources = "".join(
        (PACKAGE / "controller" / f"{name}.py").read_text()
        for name in ("planning", "reporting", "runs")
    )
    rows = [line for line in PAGE.partition("| condition |")[2].split("\n\n")[0].splitlines()[2:]]
    told = {
        word
        for row in rows
        for word in re.findall(r"`([A-Z]\w+)`", row.partition("|")[2].partition("|")[2])
    }

    assert {word for word in told if f'"{word}"' not in sources} == set()
