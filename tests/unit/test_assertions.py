"""What holds of the rows of an end state, and what does not."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from wavetank.api.wire import Score
from wavetank.bundles.world import (
    Assertion,
    Assertions,
    Comparison,
    Condition,
    Entity,
    Field,
    FieldType,
    JsonValue,
    Mode,
)
from wavetank.core.causes import Cause
from wavetank.worlds.grading import assertions, sql
from wavetank.worlds.tables import definition

EVENTS = Entity(
    "events",
    (
        Field("id", FieldType.STRING),
        Field("title", FieldType.STRING, nullable=True),
        Field("seats", FieldType.INTEGER, nullable=True),
        Field("price", FieldType.NUMBER),
        Field("open", FieldType.BOOLEAN),
        Field("starts_at", FieldType.DATETIME),
        Field("notes", FieldType.JSON, nullable=True),
    ),
)
ROWS = [
    ("E-1", "Standup", 4, 0.0, 1, "2026-03-02T09:00:00Z", '["daily", 1, {"a": [true]}]'),
    ("E-2", "Board", None, 10.0, 0, "2026-03-02T11:30:00+02:00", '{"level": 1}'),
    ("E-3", None, 12, 99.5, 1, "whenever", None),
    ("E-4", "Deep", 1, 1.0, 1, "2026-03-03", "[" * 950 + "]" * 950),
]
SESSION = sql.SessionFacts(task="t", final_answer=None, calls=0, end="closed")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[sql.EndState]:
    path = tmp_path / "main.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(definition(EVENTS))
        database.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", ROWS)
    with sql.opened(path, [EVENTS], SESSION) as opened:
        yield opened


def conditions(given: Mapping[str, JsonValue]) -> tuple[Condition, ...]:
    return tuple(
        Condition(name, Comparison(comparison), operand)
        for name, wanted in given.items()
        for comparison, operand in (wanted if isinstance(wanted, dict) else {"is": wanted}).items()
    )


def asserted(
    where: Mapping[str, JsonValue],
    expect: Mapping[str, JsonValue],
    count: Sequence[int | None] = (),
) -> Assertion:
    least, most = count or (1, None)
    return Assertion("events", conditions(where), conditions(expect), least or 0, most)


def score(state: sql.EndState, *assertion: Assertion, mode: Mode = Mode.ALL) -> Score:
    return assertions.score("it", Assertions(mode, assertion), state, [EVENTS])


def found(state: sql.EndState, where: Mapping[str, JsonValue]) -> list[str]:
    """The events that match."""
    return [
        row[0]
        for row in ROWS
        if score(state, asserted({"id": row[0], **where}, {}, (1, 1))).value == 1.0
    ]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({}, ["E-1", "E-2", "E-3", "E-4"]),
        ({"title": "Board"}, ["E-2"]),
        ({"title": "board"}, []),
        ({"title": None}, ["E-3"]),
        ({"title": {"in": ["Board", None]}}, ["E-2", "E-3"]),
        ({"title": {"contains": "a"}}, ["E-1", "E-2"]),
        ({"title": {"matches": "^[BD]"}}, ["E-2", "E-4"]),
        ({"title": {"matches": "eep$"}}, ["E-4"]),
        ({"title": {"gt": "Board", "lt": "Standup"}}, ["E-4"]),
        ({"seats": 4}, ["E-1"]),
        ({"seats": {"in": [4.0]}}, ["E-1"]),
        ({"seats": {"gt": 1}}, ["E-1", "E-3"]),
        ({"seats": {"lt": 4}}, ["E-4"]),
        ({"price": 10}, ["E-2"]),
        ({"price": {"in": [0, 99.5]}}, ["E-1", "E-3"]),
        ({"open": True}, ["E-1", "E-3", "E-4"]),
        ({"open": False}, ["E-2"]),
        ({"open": {"in": [1]}}, []),
        ({"starts_at": "2026-03-02T10:00:00+01:00"}, ["E-1"]),
        ({"starts_at": {"in": ["2026-03-02T09:30:00Z"]}}, ["E-2"]),
        ({"starts_at": {"gt": "2026-03-02T09:15:00Z"}}, ["E-2", "E-4"]),
        ({"starts_at": {"lt": "2026-03-02T09:30:00"}}, ["E-1"]),
        ({"starts_at": {"matches": "02T09"}}, ["E-1"]),
        ({"notes": None}, ["E-3"]),
        ({"notes": {"contains": "daily"}}, ["E-1"]),
        ({"notes": {"contains": 1}}, ["E-1"]),
        ({"notes": {"contains": True}}, []),
        ({"notes": {"contains": {"a": [True]}}}, ["E-1"]),
        ({"notes": {"contains": {"a": [1]}}}, []),
        ({"notes": {"in": [{"level": 1.0}]}}, ["E-2"]),
        ({"notes": {"in": [{"level": True}]}}, []),
    ],
    ids=str,
)
def test_a_condition_is_met_by_these_rows(
    state: sql.EndState, where: Mapping[str, JsonValue], ids: list[str]
) -> None:
    assert found(state, where) == ids


@pytest.mark.parametrize(
    ("assertion", "holds"),
    [
        (asserted({"id": "E-1"}, {"title": "Standup"}), True),
        (asserted({"id": "E-1"}, {"title": "Standup", "seats": 5}), False),
        # No row: nothing is as expected.
        (asserted({"id": "E-9"}, {"title": "Standup"}), False),
        # Several rows: each must be as expected.
        (asserted({"open": True}, {"id": {"matches": "^E-"}}), True),
        (asserted({"open": True}, {"title": {"contains": ""}}), False),
        (asserted({"open": True}, {}, (3, 3)), True),
        (asserted({"open": True}, {}, (2, 2)), False),
        (asserted({"open": True}, {}, (4, None)), False),
        (asserted({"open": True}, {}, (0, 2)), False),
        (asserted({"id": "E-9"}, {}, (0, 0)), True),
    ],
)
def test_an_assertion_holds_or_not(state: sql.EndState, assertion: Assertion, holds: bool) -> None:
    assert score(state, assertion) == Score(name="it", value=float(holds))


GOOD, BAD = asserted({"id": "E-1"}, {"seats": 4}), asserted({"id": "E-1"}, {"seats": 5})


@pytest.mark.parametrize(
    ("mode", "of", "value"),
    [
        (Mode.ALL, (GOOD, GOOD), 1.0),
        (Mode.ALL, (GOOD, BAD), 0.0),
        (Mode.FRACTION, (GOOD, BAD), 0.5),
        (Mode.FRACTION, (GOOD, BAD, BAD), 1 / 3),
        (Mode.FRACTION, (BAD,), 0.0),
    ],
)
def test_the_mode_makes_the_score(
    state: sql.EndState, mode: Mode, of: tuple[Assertion, ...], value: float
) -> None:
    assert score(state, *of, mode=mode).value == value


def test_a_file_with_a_fault_is_not_scored(state: sql.EndState) -> None:
    assert assertions.score("it", None, state, [EVENTS]) == Score(
        name="it",
        value=None,
        cause=Cause.VERIFIER_FAILED,
        message="there is a fault in the file: check the bundle",
    )
