"""What authors of tools rely on: ``World``'s methods on rows, and their rules."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavetank.bundles.world import JsonValue, read
from wavetank.testing.bundles import CONFIG, write_bundle
from wavetank.worlds import ConstraintError, World, database
from wavetank.worlds.world import SessionClock

SCHEMA = {
    "entities": [
        {
            "name": "people",
            "key": ["id"],
            "fields": [
                {"name": "id", "type": "integer"},
                {"name": "name", "type": "string"},
                {"name": "boss", "type": "integer", "nullable": True, "references": "people.id"},
                {"name": "active", "type": "boolean"},
                {"name": "score", "type": "number", "nullable": True},
                {"name": "tags", "type": "json", "nullable": True},
                {"name": "since", "type": "datetime", "nullable": True},
            ],
        },
        {
            "name": "seats",
            "key": ["room", "number"],
            "fields": [
                {"name": "room", "type": "string", "enum": ["a", "b'"]},
                {"name": "number", "type": "integer"},
                {"name": "person", "type": "integer", "nullable": True, "references": "people.id"},
            ],
        },
        {"name": "notes", "fields": [{"name": "text", "type": "string"}]},
    ]
}
DATA = {
    "people": [
        # The first names one that comes later: seed rows may stand in any order.
        {"id": 2, "name": "Bo", "boss": 1, "active": False, "score": 1, "tags": {"a": [1]}},
        {"id": 1, "name": "Al", "active": True},
    ],
    "seats": [{"room": "a", "number": 1, "person": 2}],
}
BO = {
    "id": 2,
    "name": "Bo",
    "boss": 1,
    "active": False,
    "score": 1.0,
    "tags": {"a": [1]},
    "since": None,
}
AL = {
    "id": 1,
    "name": "Al",
    "boss": None,
    "active": True,
    "score": None,
    "tags": None,
    "since": None,
}


@contextmanager
def a_world(tmp_path: Path) -> Iterator[World]:
    config = CONFIG.partition("[[tasks]]")[0]
    files = {"gateway-env.toml": config, "schema/world.json": SCHEMA, "data/initial.json": DATA}
    bundle = read(write_bundle(tmp_path, files), {})
    assert bundle.faults == ()
    databases = database.create(bundle.worlds)
    clock = SessionClock(datetime(2026, 1, 31, 9, tzinfo=UTC))
    yield World(bundle, databases.begin(), clock, random.Random(7))  # noqa: S311 - repeatable
    databases.end()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with a_world(tmp_path) as made:
        yield made


def test_rows_hold_python_values_in_the_order_they_were_inserted(world: World) -> None:
    assert world.find("people") == [BO, AL]


def test_rows_are_found_by_the_values_of_their_columns(world: World) -> None:
    assert world.find("people", active=True) == [AL]
    assert world.find("people", active=False, score=1) == [BO]
    assert world.find("people", tags={"a": [1]}) == [BO]
    assert world.find("people", boss=None) == [AL]
    assert world.find("seats", room="no such room") == []
    assert world.find_one("people", name="Bo") == BO
    assert world.find_one("people", name="Cy") is None


def test_an_inserted_row_comes_back_with_every_column(world: World) -> None:
    row = {"id": 3, "name": "Cy", "active": True, "tags": [], "since": world.now()}

    assert world.insert("people", row) == {
        "id": 3,
        "name": "Cy",
        "boss": None,
        "active": True,
        "score": None,
        "tags": [],
        "since": "2026-01-31T09:00:00Z",
    }


def test_an_update_returns_the_changed_rows(world: World) -> None:
    assert world.update("people", {"active": True}, {"score": 2, "tags": None}) == [
        {**AL, "score": 2.0}
    ]
    assert world.update("people", {"name": "Cy"}, {"score": 2}) == []
    assert world.update("people", {"name": "Al"}, {}) == [{**AL, "score": 2.0}]


def test_a_key_can_be_changed_while_nobody_names_it(world: World) -> None:
    world.update("seats", {}, {"person": None})

    assert world.update("people", {"id": 2}, {"id": 9}) == [{**BO, "id": 9}]


def test_a_delete_returns_how_many_rows_went(world: World) -> None:
    assert world.delete("seats", {"room": "a"}) == 1
    assert world.delete("seats", {"room": "a"}) == 0
    assert world.find("seats") == []


def test_a_row_may_name_itself(world: World) -> None:
    row = {"id": 3, "name": "Cy", "active": True, "boss": 3}

    assert world.insert("people", row)["boss"] == 3


@pytest.mark.parametrize(
    ("entity", "row", "field", "value", "message"),
    [
        (
            "people",
            {"id": 1, "name": "Cy", "active": True},
            "id",
            1,
            "people.id: there is a row already whose (id) is (1). Keys are unique.",
        ),
        (
            "seats",
            {"room": "a", "number": 1},
            "room",
            "a",
            "seats.room: there is a row already whose (room, number) is ('a', 1). Keys are unique.",
        ),
        (
            "seats",
            {"room": "c", "number": 2},
            "room",
            "c",
            "seats.room: 'c' is not allowed. Name one of: 'a', \"b'\".",
        ),
        (
            "seats",
            {"room": "a", "number": 2, "person": 5},
            "person",
            5,
            "seats.person: there is no people whose id is 5.",
        ),
        (
            "people",
            {"id": 3, "active": True},
            "name",
            None,
            "people.name: null is not allowed; this must be a string.",
        ),
        (
            "people",
            {"id": 3, "name": "Cy", "active": 1},
            "active",
            1,
            "people.active: 1 does not fit; this must be true or false.",
        ),
        (
            "people",
            {"id": 2**63, "name": "Cy", "active": True},
            "id",
            2**63,
            "people.id: 9223372036854775808 does not fit; this must be a whole number of at most "
            "64 bits.",
        ),
        (
            "people",
            {"id": 3, "name": "Cy", "active": True, "since": "yesterday"},
            "since",
            "yesterday",
            "people.since: 'yesterday' does not fit; this must be a moment as ISO 8601 text, like "
            "'2026-01-31T09:00:00Z' or null.",
        ),
    ],
    ids=["key", "key of two", "enum", "reference", "null", "boolean", "integer", "datetime"],
)
def test_a_row_that_breaks_a_rule_is_refused_by_name(
    world: World, entity: str, row: dict[str, object], field: str, value: object, message: str
) -> None:
    with pytest.raises(ConstraintError) as caught:
        world.insert(entity, row)

    error = caught.value
    assert (error.entity, error.field, error.value, str(error)) == (entity, field, value, message)


def test_a_row_that_is_referenced_cannot_go(world: World) -> None:
    with pytest.raises(ConstraintError) as caught:
        world.delete("people", {"id": 2})

    assert str(caught.value) == (
        "people: a row is still referenced. Change first what names it: people.boss, seats.person."
    )


def test_sql_that_breaks_a_rule_is_a_constraint_error(world: World) -> None:
    with pytest.raises(ConstraintError) as caught:
        world.sql("INSERT INTO seats VALUES ('a', 1, NULL)")

    assert (caught.value.entity, caught.value.field) == ("seats", "room")


def test_sql_takes_parameters_and_returns_the_databases_values(world: World) -> None:
    assert world.sql("SELECT active, tags FROM people WHERE id = ?", (2,)) == [
        {"active": 0, "tags": '{"a":[1]}'}
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda world: world.find("person"),
            "no entity is named 'person'. Name one of: people, seats, notes.",
        ),
        (
            lambda world: world.find("notes", body="x"),
            "notes has no field 'body'. Name one of: text.",
        ),
        (
            lambda world: world.insert("notes", {"body": "x"}),
            "notes has no field 'body'. Name one of: text.",
        ),
        (
            lambda world: world.linked("slack"),
            "no world is linked as 'slack'. There is none to name.",
        ),
    ],
)
def test_what_is_not_there_is_the_authors_mistake(
    world: World, call: "object", message: str
) -> None:
    with pytest.raises(LookupError) as caught:
        call(world)  # type: ignore[operator]

    assert caught.value.args == (message,)


def test_comparing_a_column_with_what_it_cannot_hold_is_the_authors_mistake(world: World) -> None:
    with pytest.raises(TypeError, match=r"people\.id: '1' does not fit"):
        world.find("people", id="1")


def test_each_look_at_the_clock_is_a_second_later(world: World) -> None:
    assert [world.now(), world.now()] == [
        datetime(2026, 1, 31, 9, tzinfo=UTC),
        datetime(2026, 1, 31, 9, 0, 1, tzinfo=UTC),
    ]


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(
    name=TEXTS,
    active=st.booleans(),
    score=st.none()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(10**9), 10**9),
    tags=JSON,
)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    active: bool,
    score: float | None,
    tags: JsonValue,
) -> None:
    with a_world(tmp_path_factory.mktemp("world")) as world:
        row = {"id": 3, "name": name, "active": active, "score": score, "tags": tags}

        written = world.insert("people", row)

        assert written == {**row, "boss": None, "since": None}
        assert world.find("people", id=3, name=name, tags=tags) == [written]
        assert type(written["active"]) is bool


ROWS = st.fixed_dictionaries(
    {"id": st.integers(1, 4), "name": st.just("x"), "active": st.booleans()},
    optional={"boss": st.none() | st.integers(1, 4)},
)
STEPS = st.one_of(
    st.tuples(st.just("insert"), st.just("people"), ROWS),
    st.tuples(
        st.just("insert"),
        st.just("seats"),
        st.fixed_dictionaries(
            {"room": st.sampled_from(["a", "b'"]), "number": st.integers(1, 2)},
            optional={"person": st.integers(1, 4)},
        ),
    ),
    st.tuples(st.just("delete"), st.sampled_from(["people", "seats"]), st.just({})),
    st.tuples(
        st.just("delete"), st.just("people"), st.fixed_dictionaries({"id": st.integers(1, 4)})
    ),
    st.tuples(
        st.just("update"),
        st.just("people"),
        st.fixed_dictionaries({"id": st.integers(1, 4)}),
        st.fixed_dictionaries({"id": st.integers(1, 4)}),
    ),
)


@given(st.lists(STEPS, max_size=12))
def test_whatever_is_done_keys_are_unique_and_references_hold(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, dict[str, JsonValue]]]
) -> None:
    with a_world(tmp_path_factory.mktemp("world")) as world:
        for method, entity, *given_values in steps:
            before = {name: world.find(name) for name in ("people", "seats")}
            try:
                getattr(world, method)(entity, *given_values)
            except ConstraintError:
                if method != "update":
                    assert before == {name: world.find(name) for name in before}

        people = world.find("people")
        ids = {row["id"] for row in people}
        seats = world.find("seats")
        assert len(ids) == len(people)
        assert {row["boss"] for row in people} <= ids | {None}
        assert {row["person"] for row in seats} <= ids | {None}
        assert len({(row["room"], row["number"]) for row in seats}) == len(seats)
