"""What is wrong in a verifier that is JSON is told with its place, all at once."""

import json
from pathlib import Path

import pytest

from wavetank.bundles.world import (
    Assertion,
    Assertions,
    Comparison,
    Condition,
    Entity,
    Field,
    FieldType,
    Mode,
)
from wavetank.bundles.world.assertions import read_assertions
from wavetank.bundles.world.place import Place, Sink

TICKETS = Entity(
    "tickets",
    (
        Field("id", FieldType.STRING),
        Field("status", FieldType.STRING, enum=("open", "closed")),
        Field("priority", FieldType.INTEGER, nullable=True),
        Field("vip", FieldType.BOOLEAN),
        Field("opened_at", FieldType.DATETIME),
        Field("labels", FieldType.JSON, nullable=True),
    ),
)


def reading(
    folder: Path, content: object, entities: tuple[Entity, ...] = (TICKETS,)
) -> tuple[Assertions | None, list[str]]:
    path = folder / "it.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    sink = Sink()
    found = read_assertions(path, Place(sink, "verifiers/it.json"), entities)
    return found, [str(each).removeprefix("verifiers/it.json: ") for each in sink.findings]


def faults(folder: Path, assertion: object) -> list[str]:
    found, told = reading(folder, {"assertions": [assertion]})
    assert found is None
    return [each.removeprefix("assertions[0]") for each in told]


def test_a_good_file_is_read_whole(tmp_path: Path) -> None:
    content = {
        "mode": "fraction",
        "assertions": [
            {
                "entity": "tickets",
                "where": {"id": "T-7", "priority": None},
                "expect": {"status": "closed", "id": {"matches": "^T", "contains": "7"}},
            },
            {"entity": "tickets", "where": {"vip": True}, "count": 2},
            {"entity": "tickets", "where": {}, "count": {"min": 1}},
            {"entity": "tickets", "where": {}, "count": {"max": 5}},
        ],
    }

    assert reading(tmp_path, content) == (
        Assertions(
            Mode.FRACTION,
            (
                Assertion(
                    "tickets",
                    where=(
                        Condition("id", Comparison.IS, "T-7"),
                        Condition("priority", Comparison.IS, None),
                    ),
                    expect=(
                        Condition("status", Comparison.IS, "closed"),
                        Condition("id", Comparison.MATCHES, "^T"),
                        Condition("id", Comparison.CONTAINS, "7"),
                    ),
                ),
                Assertion("tickets", (Condition("vip", Comparison.IS, True),), (), 2, 2),
                Assertion("tickets", (), (), 1, None),
                Assertion("tickets", (), (), 0, 5),
            ),
        ),
        [],
    )


def test_without_a_mode_all_must_hold(tmp_path: Path) -> None:
    found, _ = reading(
        tmp_path, {"assertions": [{"entity": "tickets", "where": {}, "count": {"min": 1}}]}
    )

    assert found is not None
    assert found.mode is Mode.ALL


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", ["this is not JSON: Expecting value: line 1 column 1 (char 0)."]),
        ("null", ["this must be a table of keys, not None."]),
        ("[]", ["this must be a table of keys, not []."]),
        ("{}", ["assertions: there is none. Name at least one row that must be there."]),
        ('{"assertions": 7}', ["assertions: this must be a list, not 7."]),
        (
            '{"mode": "some", "assertion": [], "assertions": [1]}',
            [
                "the key 'assertion' is not known. Name one of: mode, assertions.",
                "mode: no mode is named 'some'. Name one of: all, fraction.",
                "assertions[0]: this must be a table of keys, not 1.",
            ],
        ),
    ],
)
def test_a_file_of_another_form_is_a_fault(tmp_path: Path, content: str, told: list[str]) -> None:
    assert reading(tmp_path, content) == (None, told)


ALL = {"entity": "tickets", "where": {}}


@pytest.mark.parametrize(
    ("assertion", "told"),
    [
        (
            {"where": {}, "count": 1, "is": 1},
            [
                ": the key 'is' is not known. Name one of: entity, where, expect, count.",
                ": the key 'entity' is missing.",
            ],
        ),
        (
            {"entity": "ticket", "where": {"anything": 1}, "count": 1},
            [".entity: no entity is named 'ticket'. Name one of: tickets."],
        ),
        (
            {"entity": "tickets", "count": 1},
            [": the key 'where' is missing. Write {} for all rows."],
        ),
        (ALL, [": this must have either 'expect' or 'count', and one of them only."]),
        (
            {**ALL, "expect": {"id": "a"}, "count": 1},
            [": this must have either 'expect' or 'count', and one of them only."],
        ),
        (
            {**ALL, "expect": {}},
            [".expect: it expects nothing. Name a field, or count the rows."],
        ),
        (
            {**ALL, "expect": [1]},
            [".expect: this must be an object of fields and their values, not [1]."],
        ),
        (
            {"entity": "tickets", "where": {"colour": 1}, "expect": {"size": 1}},
            [
                ".where: there is no field 'colour'. Name one of: id, status, priority, vip, "
                "opened_at, labels.",
                ".expect: there is no field 'size'. Name one of: id, status, priority, vip, "
                "opened_at, labels.",
            ],
        ),
        (
            {
                "entity": "tickets",
                "where": {"priority": True, "vip": 1, "id": None},
                "expect": {"status": "closd", "opened_at": "soon"},
            },
            [
                ".where.priority: True does not fit; this must be a whole number of at most 64 bits "
                "or null.",
                ".where.vip: 1 does not fit; this must be true or false.",
                ".where.id: null is not allowed; this must be a string.",
                ".expect.status: 'closd' is not allowed. Name one of: 'open', 'closed'.",
                ".expect.opened_at: 'soon' does not fit; this must be a moment as ISO 8601 text, like "
                "'2026-01-31T09:00:00Z'.",
            ],
        ),
        (
            {**ALL, "expect": {"id": {}, "status": {"is": "open"}}},
            [
                ".expect.id: no comparison is named. Name one of: contains, matches, in, gt, lt.",
                ".expect.status: no comparison is named 'is'. Name one of: contains, matches, in, gt, "
                'lt. To compare with an object, write {"in": [object]}.',
            ],
        ),
        (
            {
                **ALL,
                "expect": {
                    "vip": {"gt": False},
                    "labels": {"lt": 1},
                    "priority": {"contains": 1, "gt": "1"},
                    "id": {"contains": ""},
                    "status": {"contains": None, "in": ["open", "clsd"]},
                },
            },
            [
                ".expect.vip.gt: 'gt' is for fields of the types string, integer, number, datetime; "
                "'vip' is boolean.",
                ".expect.labels.lt: 'lt' is for fields of the types string, integer, number, "
                "datetime; 'labels' is json.",
                ".expect.priority.contains: 'contains' is for fields of the types string, json; "
                "'priority' is integer.",
                ".expect.priority.gt: '1' does not fit; this must be a whole number of at most 64 "
                "bits.",
                ".expect.id.contains: every text contains the empty one. Name a part that must be "
                "there.",
                ".expect.status.contains: null is not allowed; this must be a string.",
                ".expect.status.in[1]: 'clsd' is not allowed. Name one of: 'open', 'closed'.",
            ],
        ),
        (
            {**ALL, "expect": {"id": {"in": []}, "status": {"in": "open"}}},
            [
                ".expect.id.in: there is none: nothing could be in it.",
                ".expect.status.in: this must be a list, not 'open'.",
            ],
        ),
        (
            {**ALL, "expect": {"id": {"matches": "("}, "status": {"matches": 7}}},
            [
                ".expect.id.matches: '(' is no regular expression of Python's: missing ), "
                "unterminated subpattern at position 0.",
                ".expect.status.matches: this must be a regular expression of at most 1000 "
                "characters, not 7.",
            ],
        ),
        ({**ALL, "count": True}, [".count: this must be a whole number of at least 0, not True."]),
        ({**ALL, "count": -1}, [".count: this must be a whole number of at least 0, not -1."]),
        ({**ALL, "count": {}}, [".count: name 'min', 'max' or both."]),
        (
            {**ALL, "count": {"min": 3, "max": 2}},
            [".count: no number is at least 3 and at most 2."],
        ),
        (
            {**ALL, "count": {"min": 1.5, "least": 1}},
            [
                ".count: the key 'least' is not known. Name one of: min, max.",
                ".count.min: this must be a whole number of at least 0, not 1.5.",
            ],
        ),
    ],
)
def test_every_fault_of_an_assertion_is_told(
    tmp_path: Path, assertion: object, told: list[str]
) -> None:
    assert faults(tmp_path, assertion) == told


@pytest.mark.parametrize(
    "pattern", ["(" * 900, "a{9999999999999}", "[[a]]", "x" * 1001, "(?<name", "\\"]
)
def test_a_pattern_that_cannot_be_compiled_is_a_fault(tmp_path: Path, pattern: str) -> None:
    [told] = faults(tmp_path, {**ALL, "expect": {"id": {"matches": pattern}}})

    assert told.startswith(".expect.id.matches: ")


def test_names_are_not_checked_against_a_schema_that_could_not_be_read(tmp_path: Path) -> None:
    content = {"assertions": [{"entity": "nowhere", "where": {"x": 1}, "count": 1}]}

    assert reading(tmp_path, content, entities=())[1] == []
