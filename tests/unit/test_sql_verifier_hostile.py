"""Statements and end states that attack the grader: each is refused, ended, or without effect."""

import hashlib
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from wavetank.api.wire import Score
from wavetank.bundles.world import Entity, Field, FieldType
from wavetank.core.causes import Cause
from wavetank.worlds.grading import sql
from wavetank.worlds.tables import definition

TICKETS = Entity("crm_tickets", (Field("id", FieldType.STRING), Field("status", FieldType.STRING)))
SESSION = sql.SessionFacts(task="close", final_answer=None, calls=0, end="closed")
COUNT_CLOSED = "SELECT COUNT(*) > 0 FROM crm_tickets WHERE status = 'closed'"

REFUSED = {
    "insert": ("INSERT INTO crm_tickets VALUES ('T-9', 'closed')", "not authorized"),
    "insert_returning": (
        "INSERT INTO crm_tickets VALUES ('T-9', 'closed') RETURNING 1",
        "not authorized",
    ),
    "update": ("UPDATE crm_tickets SET status = 'closed'", "not authorized"),
    "delete": ("DELETE FROM crm_tickets", "not authorized"),
    "drop": ("DROP TABLE crm_tickets", "not authorized"),
    "create": ("CREATE TABLE x (y)", "not authorized"),
    "create_temp_view": ("CREATE TEMP VIEW crm_tickets AS SELECT 1 AS id", "not authorized"),
    "create_trigger": (
        "CREATE TRIGGER t AFTER INSERT ON crm_tickets BEGIN SELECT 1; END",
        "not authorized",
    ),
    "alter": ("ALTER TABLE crm_tickets RENAME TO x", "not authorized"),
    "attach": ("ATTACH 'file:/etc/passwd?mode=ro' AS x", "not authorized"),
    "attach_a_new_file": (
        "ATTACH '/tmp/wavetank-made-by-a-verifier.sqlite' AS x",
        "not authorized",
    ),
    "detach": ("DETACH main", "not authorized"),
    "vacuum_into": ("VACUUM INTO '/tmp/wavetank-made-by-a-verifier.sqlite'", "ATTACH"),
    "vacuum": ("VACUUM", "ATTACH"),
    "reindex": ("REINDEX", "no statement that answers"),
    "analyze": ("ANALYZE", "not authorized"),
    "begin": ("BEGIN IMMEDIATE", "not authorized"),
    "savepoint": ("SAVEPOINT s", "not authorized"),
    "pragma_read": ("PRAGMA user_version", "not authorized"),
    "pragma_query_only": ("PRAGMA query_only = OFF", "not authorized"),
    "pragma_writable_schema": ("PRAGMA writable_schema = ON", "not authorized"),
    "pragma_function": ("SELECT COUNT(*) FROM pragma_database_list", "not authorized"),
    "pragma_function_list": ("SELECT 1 FROM pragma_function_list LIMIT 1", "not authorized"),
    "load_extension": ("SELECT load_extension('/lib/evil.so')", "not authorized to use function"),
    "readfile": ("SELECT readfile('/etc/passwd')", "no such function: readfile"),
    "writefile": ("SELECT writefile('/tmp/x', 'y')", "no such function: writefile"),
    "edit": ("SELECT edit('x')", "no such function: edit"),
    "fts3_tokenizer": (
        "SELECT fts3_tokenizer('simple', x'4141414141414141')",
        "not authorized to use function",
    ),
    "virtual_table_fts5": ("CREATE VIRTUAL TABLE f USING fts5(a)", "not authorized"),
    "virtual_table_rtree": ("CREATE VIRTUAL TABLE r USING rtree(a, b, c)", "not authorized"),
    "rtreecheck": ("SELECT rtreecheck('main', 'crm_tickets')", "not authorized to use function"),
    "dbstat": ("SELECT COUNT(*) FROM dbstat", "is refused"),
    "sqlite_stmt": ("SELECT COUNT(*) FROM sqlite_stmt", ""),
    "sqlite_master": ("SELECT COUNT(*) FROM sqlite_master", "READ sqlite_master is refused"),
    "sqlite_schema_sql": ("SELECT sql FROM sqlite_schema LIMIT 1", "prohibited"),
    "sqlite_temp_master": ("SELECT COUNT(*) FROM sqlite_temp_master", "is refused"),
    "two_statements": ("SELECT 1; SELECT 0", "You can only execute one statement at a time"),
    "a_write_behind": ("SELECT 1; DELETE FROM crm_tickets", "You can only execute one statement"),
    "nul_behind": ("SELECT 1\0; DELETE FROM crm_tickets", "null character"),
    "random": ("SELECT random() > 0", "not authorized to use function: random"),
    "clock": ("SELECT current_timestamp > ''", "not authorized to use function"),
    "now": ("SELECT datetime('NOW') > '2000'", "the time of the machine"),
    "now_without_a_word": ("SELECT julianday ( ) > 0", "the time of the machine"),
    "now_as_text": ("SELECT strftime('%Y') > '2000'", "the time of the machine"),
    "zeroblob": ("SELECT length(zeroblob(1000000000)) > 0", "not authorized to use function"),
    "replace_growth": (
        "SELECT length(replace(replace(printf('%.*c', 9999, 'x'), 'x', printf('%.*c', 9999, 'y')),"
        " 'y', 'zzzz'))",
        "too big",
    ),
    "group_concat_growth": (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 9999) "
        "SELECT length(group_concat(printf('%.*c', 9999, 'x'))) FROM n",
        "too big",
    ),
    "json_depth": (
        "SELECT json_valid(json(printf('%.*c', 100000, '[')))",
        "malformed JSON",
    ),
    "deep_expression": ("SELECT " + "(" * 5000 + "1" + ")" * 5000, ""),
    "many_unions": ("SELECT 1" + " UNION ALL SELECT 1" * 3000, "too many terms"),
    "many_joins": (
        f"SELECT 1 FROM {', '.join(f'crm_tickets t{i}' for i in range(65))}",  # noqa: S608
        "at most 64 tables",
    ),
    "parameter": ("SELECT ?1", "Incorrect number of bindings"),
    "many_parameters": ("SELECT ?32000", ""),
    "long_pattern": ("SELECT 'a' LIKE printf('%.*c', 100000, '%')", "pattern too complex"),
    "regexp": ("SELECT 'a' REGEXP '(a+)+$'", "no such function: REGEXP"),
    "match": ("SELECT COUNT(*) FROM crm_tickets WHERE crm_tickets MATCH 'x'", ""),
    "huge_text": ("SELECT '" + "x" * 2_000_000 + "'", "too"),
}

ENDLESS = {
    "recursive_cte": "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n",
    "recursive_cte_strings": (
        "WITH RECURSIVE n(x) AS (SELECT 'a' UNION ALL SELECT substr(x || x, 1, 1000) FROM n) "
        "SELECT COUNT(*) FROM n"
    ),
    "cross_join": (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 9999) "
        "SELECT COUNT(*) FROM n a, n b, n c, n d"
    ),
    "correlated": (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 99999) "
        "SELECT SUM((SELECT COUNT(*) FROM n b WHERE b.x <> a.x)) FROM n a"
    ),
    "json_each_join": (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 9999), "
        "j(y) AS (SELECT json_group_array(x) FROM n) "
        "SELECT COUNT(*) FROM j, json_each(y) a, json_each(y) b, json_each(y) c"
    ),
    "no_rows_ever": "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 1 FROM n WHERE x < 0",
    "window": (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 99999) "
        "SELECT SUM(s) FROM (SELECT SUM(x) OVER (ORDER BY x ROWS BETWEEN 50000 PRECEDING "
        "AND 50000 FOLLOWING EXCLUDE TIES) s FROM n)"
    ),
}


def write_state(path: Path, *more: str) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(definition(TICKETS))
        database.execute("INSERT INTO crm_tickets VALUES ('T-7', 'open')")
        for statement in more:
            database.execute(statement)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_state(tmp_path / "main.sqlite")


@pytest.fixture
def state(path: Path) -> Iterator[sql.EndState]:
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with sql.opened(path, [TICKETS], SESSION) as opened:
        yield opened
        # Whatever was tried: the copy answers as before, the file is as before, nothing beside it.
        assert opened.score("count", "SELECT COUNT(*) = 1 FROM crm_tickets").value == 1.0
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert not Path("/tmp/wavetank-made-by-a-verifier.sqlite").exists()


@pytest.mark.parametrize(("statement", "words"), REFUSED.values(), ids=REFUSED)
def test_a_statement_that_reaches_beyond_the_rows_is_refused(
    state: sql.EndState, statement: str, words: str
) -> None:
    score = state.score("v", statement)

    assert (score.value, score.cause) == (None, Cause.VERIFIER_FAILED)
    assert words in score.message


@pytest.mark.parametrize("statement", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_statement_is_ended_at_its_limit(state: sql.EndState, statement: str) -> None:
    started = time.thread_time()

    score = state.score("v", statement, seconds=0.2)

    assert time.thread_time() - started < 0.2 * 1.1
    assert score == Score(
        name="v", value=None, cause=Cause.VERIFIER_TIMEOUT, message="no answer within 0.2 s"
    )


@pytest.mark.parametrize(
    "expression", ["printf('%.*c', 1000000000, 'x')", "format('%1000000000d', 1)"]
)
def test_text_longer_than_16_mib_is_never_made(state: sql.EndState, expression: str) -> None:
    score = state.score("v", f"SELECT length({expression}) > 0")

    # SQLite answers NULL where it does not raise "string or blob too big".
    assert (score.value, score.cause) == (None, Cause.REWARD_MISSING)


HARMLESS = {
    "triggers": (
        "CREATE TRIGGER t AFTER INSERT ON crm_tickets BEGIN "
        "UPDATE crm_tickets SET status = 'closed'; END",
        "CREATE TRIGGER u BEFORE INSERT ON crm_tickets BEGIN SELECT RAISE(IGNORE); END",
    ),
    "a_view_beside": ("CREATE VIEW crm_ticket AS SELECT 'T-7' AS id, 'closed' AS status",),
    "a_view_named_as_the_session": (
        "CREATE VIEW _session AS SELECT 'x' AS task, 'closed' AS final_answer",
    ),
    "a_table_named_as_a_function": (
        "CREATE TABLE json_each (key, value)",
        "CREATE TABLE json_tree (key, value)",
    ),
    "a_full_text_table_beside": ("CREATE VIRTUAL TABLE f USING fts5(a)",),
}


@pytest.mark.parametrize("statements", HARMLESS.values(), ids=HARMLESS)
def test_what_else_lies_in_the_file_changes_no_score(
    tmp_path: Path, statements: tuple[str, ...]
) -> None:
    path = write_state(tmp_path / "main.sqlite", *statements)

    with sql.opened(path, [TICKETS], SESSION) as state:
        scores = [
            state.score("closed", COUNT_CLOSED),
            state.score("rows", "SELECT COUNT(*) = 1 FROM crm_tickets"),
            state.score("session", "SELECT final_answer IS NULL FROM _session"),
            state.score("json", "SELECT COUNT(*) = 2 FROM json_each('[1, 2]')"),
        ]

    assert [score.value for score in scores] == [0.0, 1.0, 1.0, 1.0]


FORGED = {
    "an_index_that_lies": (
        "CREATE TABLE crm_tickets (id, status)",
        "CREATE INDEX i ON crm_tickets (status)",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = 'CREATE INDEX i ON crm_tickets (''closed'')' "
        "WHERE name = 'i'",
    ),
    "a_view": ("CREATE VIEW crm_tickets AS SELECT 'T-7' AS id, 'closed' AS status",),
    "a_view_over_the_renamed_table": (
        "CREATE VIEW crm_tickets AS SELECT id, 'closed' AS status FROM hidden",
    ),
    "a_full_text_table": ("CREATE VIRTUAL TABLE crm_tickets USING fts5(id, status)",),
    "a_table_of_other_columns": ("CREATE TABLE crm_tickets (id TEXT)",),
    "a_view_that_says_it_is_a_table": (
        "CREATE TABLE crm_tickets (id, status)",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = 'CREATE VIEW crm_tickets AS SELECT ''T-7'' AS id, "
        "''closed'' AS status' WHERE name = 'crm_tickets'",
    ),
    "columns_with_values_of_their_own": (
        "CREATE TABLE crm_tickets (other, id TEXT AS ('T-7'), status TEXT AS ('closed'))",
        "INSERT INTO crm_tickets VALUES (1)",
    ),
    "values_of_other_types": (
        "CREATE TABLE crm_tickets (id, status)",
        "INSERT INTO crm_tickets VALUES (X'00', X'01')",
    ),
}


@pytest.mark.parametrize("statements", FORGED.values(), ids=FORGED)
def test_a_state_whose_table_is_replaced_is_not_graded(
    tmp_path: Path, statements: tuple[str, ...]
) -> None:
    path = write_state(
        tmp_path / "main.sqlite", "ALTER TABLE crm_tickets RENAME TO hidden", *statements
    )

    with (
        pytest.raises(sql.StateError, match="the end state cannot be read"),
        sql.opened(path, [TICKETS], SESSION),
    ):
        pass


@pytest.mark.parametrize(
    "name", ["insert", "update", "delete", "drop", "create", "alter", "vacuum"]
)
def test_the_same_statement_changes_a_file_that_is_opened_plainly(path: Path, name: str) -> None:
    before = path.read_bytes()

    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA auto_vacuum = FULL")
        database.execute(REFUSED[name][0])

    assert path.read_bytes() != before


@pytest.mark.parametrize("name", ["a_view", "a_view_over_the_renamed_table"])
def test_the_same_forgery_scores_in_a_file_that_is_opened_plainly(
    tmp_path: Path, name: str
) -> None:
    path = write_state(
        tmp_path / "main.sqlite", "ALTER TABLE crm_tickets RENAME TO hidden", *FORGED[name]
    )

    with closing(sqlite3.connect(path)) as database:
        assert database.execute(COUNT_CLOSED).fetchall() == [(1,)]


WORDS = (
    "SELECT WITH RECURSIVE x(y) AS ( ) , ; * 1 0.5 NULL 'text' X'00' -1 9e999 FROM crm_tickets "
    "_session sqlite_master json_each json_tree dbstat pragma_table_list id status rowid task "
    "WHERE = < || -> AND OR NOT IN EXISTS UNION ALL INTERSECT VALUES ORDER BY GROUP LIMIT OVER "
    "COUNT(*) sum(1) random() load_extension('x') printf('%s',1) CASE WHEN THEN ELSE END CAST "
    "INSERT INTO UPDATE SET DELETE DROP TABLE VIEW CREATE TEMP TRIGGER PRAGMA ATTACH VACUUM "
    "EXPLAIN QUERY PLAN RETURNING ? :a $b -- /* \0 \ud800 \u00e9"
)


@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(statement=st.lists(st.sampled_from(WORDS.split(" ")), max_size=12).map(" ".join))
def test_whatever_a_verifier_says_is_a_score_or_has_a_cause(
    state: sql.EndState, statement: str
) -> None:
    score = state.score("v", statement, seconds=0.1)

    assert (score.value is None) is (score.cause is not None)
    assert score.value is None or 0 <= score.value <= 1
    assert Score.model_validate_json(score.canonical()) == score
