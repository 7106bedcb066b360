"""What an answer means, and what a statement may ask. See test_sql_verifier_hostile for attacks."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavetank.api.wire import Score
from wavetank.bundles.world import Entity, Field, FieldType
from wavetank.core.causes import Cause
from wavetank.worlds import tables
from wavetank.worlds.grading import sql
from wavetank.worlds.tables import definition

TICKETS = Entity(
    "crm_tickets",
    (
        Field("id", FieldType.STRING),
        Field("status", FieldType.STRING),
        Field("priority", FieldType.INTEGER, nullable=True),
        Field("weight", FieldType.NUMBER, nullable=True),
        Field("labels", FieldType.JSON, nullable=True),
    ),
    key=("id",),
)
SESSION = sql.SessionFacts(task="close", final_answer="Done: 7", calls=3, end="closed")


def write_state(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(definition(TICKETS))
        database.executemany(
            "INSERT INTO crm_tickets VALUES (?, ?, ?, ?, ?)",
            [
                ("T-6", "open", 1, 0.25, '["vip", "late"]'),
                ("T-7", "closed", 2, 0.5, "[]"),
                ("T-8", "open", None, None, None),
            ],
        )
    return path


@pytest.fixture
def state(tmp_path: Path) -> Iterator[sql.EndState]:
    with sql.opened(write_state(tmp_path / "main.sqlite"), [TICKETS], SESSION) as opened:
        yield opened


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        (
            "-- one of the public page\nSELECT CASE WHEN COUNT(*) > 0 THEN 1.0 ELSE 0.0 END "
            "FROM \"crm_tickets\" WHERE id = 'T-7' AND status = 'closed'; -- done\n",
            1.0,
        ),
        ("SELECT AVG(status = 'open') FROM crm_tickets", 2 / 3),
        ("SELECT 0", 0.0),
        ("VALUES (1)", 1.0),
        ("WITH t AS (SELECT * FROM CRM_TICKETS) SELECT COUNT(*) = 3 FROM t", 1.0),
        ("SELECT calls = 3 AND end = 'closed' AND task = 'close' FROM _session", 1.0),
        ("SELECT final_answer LIKE '%7%' FROM _session", 1.0),
        ("SELECT COUNT(*) > 0 FROM crm_tickets, json_each(labels) WHERE value = 'vip'", 1.0),
        ("SELECT labels ->> '$[1]' = 'late' FROM crm_tickets WHERE id = 'T-6'", 1.0),
        ("SELECT julianday('2026-01-02') - julianday('2026-01-01')", 1.0),
        ("SELECT strftime('%Y', '2026-01-02') = '2026'", 1.0),
        ("SELECT MAX(rowid) = 3 FROM crm_tickets", 1.0),
        (
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 10) "
            "SELECT MAX(x) = 10 FROM n",
            1.0,
        ),
        (
            "SELECT weight FROM (SELECT weight, rank() OVER (ORDER BY id) r FROM crm_tickets)"
            " WHERE r = 2",
            0.5,
        ),
    ],
)
def test_a_number_in_0_to_1_is_the_score(state: sql.EndState, statement: str, value: float) -> None:
    assert state.score("v", statement) == Score(name="v", value=value)


@pytest.mark.parametrize(
    ("statement", "cause", "message"),
    [
        (
            "SELECT 1 FROM crm_tickets WHERE id = 'T-9'",
            Cause.REWARD_MISSING,
            "the statement answered no row",
        ),
        ("SELECT NULL", Cause.REWARD_MISSING, "the statement answered NULL"),
        (
            "SELECT priority FROM crm_tickets WHERE id = 'T-8'",
            Cause.REWARD_MISSING,
            "the statement answered NULL",
        ),
        ("SELECT 9e999 - 9e999", Cause.REWARD_MISSING, "the statement answered NULL"),
        ("SELECT 'yes'", Cause.REWARD_INVALID, "not a number in 0..1: 'yes'"),
        ("SELECT '1'", Cause.REWARD_INVALID, "not a number in 0..1: '1'"),
        ("SELECT X'31'", Cause.REWARD_INVALID, "not a number in 0..1: b'1'"),
        ("SELECT CAST(X'ff' AS TEXT)", Cause.REWARD_INVALID, "not a number in 0..1: '\ufffd'"),
        ("SELECT 1.0000001", Cause.REWARD_INVALID, "not a number in 0..1: 1.0000001"),
        ("SELECT -1", Cause.REWARD_INVALID, "not a number in 0..1: -1"),
        ("SELECT 9e999", Cause.REWARD_INVALID, "not a number in 0..1: inf"),
        ("SELECT COUNT(*) FROM crm_tickets", Cause.REWARD_INVALID, "not a number in 0..1: 3"),
        ("SELECT 1, 0", Cause.REWARD_INVALID, "2 columns, not one: [(1, 0)]"),
        ("SELECT 1, 0 WHERE 0", Cause.REWARD_INVALID, "2 columns, not one: []"),
        (
            "SELECT priority FROM crm_tickets ORDER BY id",
            Cause.REWARD_INVALID,
            "several rows, not one: [1, 2], ...",
        ),
        ("SELECT 1 FROM crm_ticketz", Cause.VERIFIER_FAILED, "no such table: crm_ticketz"),
        ("SELECT colour FROM crm_tickets", Cause.VERIFIER_FAILED, "no such column: colour"),
        ("SELEC 1", Cause.VERIFIER_FAILED, 'near "SELEC": syntax error'),
        ("", Cause.VERIFIER_FAILED, "the file holds no statement that answers"),
        ("-- nothing yet\n", Cause.VERIFIER_FAILED, "the file holds no statement that answers"),
    ],
)
def test_anything_else_has_no_value_and_a_cause(
    state: sql.EndState, statement: str, cause: Cause, message: str
) -> None:
    assert state.score("v", statement) == Score(name="v", value=None, cause=cause, message=message)


def test_an_end_state_answers_again_after_a_verifier_that_failed(state: sql.EndState) -> None:
    state.score("bad", "SELECT load_extension('x')")
    state.score("slow", "SELECT 1 FROM crm_tickets a, crm_tickets b", seconds=0)

    assert state.score("good", "SELECT 1") == Score(name="good", value=1.0)


def test_a_declared_table_that_is_not_in_the_file_is_named(tmp_path: Path) -> None:
    users = Entity("users", (Field("id", FieldType.STRING),))
    path = write_state(tmp_path / "main.sqlite")

    with (
        pytest.raises(sql.StateError, match="it has no table 'users' as the schema declares it"),
        sql.opened(path, [TICKETS, users], SESSION),
    ):
        pass


def test_a_file_that_is_no_database_is_refused_in_the_engines_words(tmp_path: Path) -> None:
    path = tmp_path / "main.sqlite"
    path.write_bytes(b"not a database, " * 100)

    with (
        pytest.raises(sql.StateError, match="file is not a database"),
        sql.opened(path, [TICKETS], SESSION),
    ):
        pass


def test_an_entity_may_be_named_as_a_function_of_the_engine(tmp_path: Path) -> None:
    entity = Entity("json_each", (Field("value", FieldType.INTEGER),))
    path = tmp_path / "main.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(definition(entity))
        database.execute("INSERT INTO json_each VALUES (1)")

    with sql.opened(path, [entity], SESSION) as state:
        assert state.score("v", "SELECT value FROM json_each").value == 1.0


SQL_VALUES = st.one_of(
    st.none(), st.integers(), st.floats(), st.floats(0, 1), st.text(), st.binary()
)


@given(rows=st.lists(st.tuples(SQL_VALUES), max_size=2))
def test_every_answer_is_a_number_in_0_to_1_as_it_stood_or_has_a_cause(
    rows: list[tuple[tables.SqlValue]],
) -> None:
    score = sql.score_of("v", 1, rows)

    if score.value is None:
        assert score.cause in (Cause.REWARD_MISSING, Cause.REWARD_INVALID)
        assert score.message.isprintable()
    else:
        assert score.cause is None
        assert 0 <= score.value <= 1
        assert [(score.value,)] == rows


@given(value=st.floats(0, 1))
def test_a_float_in_0_to_1_survives_the_engine_and_the_wire(value: float) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        rows = database.execute("SELECT ?", (value,)).fetchall()

    score = sql.score_of("v", 1, rows)

    assert Score.model_validate_json(score.canonical()).value == value
