"""Verifiers that are JSON: assertions on the rows of the end state, read against the schema."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from wavetank.bundles.world import values
from wavetank.bundles.world.columns import problem
from wavetank.bundles.world.files import read_json
from wavetank.bundles.world.model import (
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
from wavetank.bundles.world.place import Place, name_one_of, shown

_PATTERN_LENGTH = 1_000
"""Of a regular expression: nobody can read a longer one."""

_TEXTS = (FieldType.STRING, FieldType.DATETIME, FieldType.JSON)
_FOR: Mapping[Comparison, Sequence[FieldType]] = {
    Comparison.CONTAINS: (FieldType.STRING, FieldType.JSON),
    Comparison.MATCHES: _TEXTS,
    Comparison.IN: tuple(FieldType),
    Comparison.GT: (FieldType.STRING, FieldType.INTEGER, FieldType.NUMBER, FieldType.DATETIME),
    Comparison.LT: (FieldType.STRING, FieldType.INTEGER, FieldType.NUMBER, FieldType.DATETIME),
}
"""The types of fields that each comparison can be made with."""


def read_assertions(path: Path, place: Place, entities: Sequence[Entity]) -> Assertions | None:
    """Return what a file asserts, or None with every fault in it.

    Args:
        path: The file.
        place: Where it is.
        entities: What it may name; when there is none, names are not checked.
    """
    before = len(place.sink.findings)
    parsed = read_json(path, place)
    if parsed is None and len(place.sink.findings) > before:
        return None
    source = values.table(place, parsed, ("mode", "assertions"))
    mode = _mode(place.at("mode"), source.get("mode", Mode.ALL))
    at = place.at("assertions")
    listed = values.items(at, source.get("assertions", []))
    if listed == [] and isinstance(parsed, Mapping):
        at.fault("there is none. Name at least one row that must be there.")
    found = [_assertion(at.at(index), each, entities) for index, each in enumerate(listed)]
    if len(place.sink.findings) > before:
        return None
    return Assertions(mode, tuple(each for each in found if each))


def _mode(place: Place, value: object) -> Mode:
    if value in tuple(Mode):
        return Mode(str(value))
    place.fault(f"no mode is named {shown(value)}. {name_one_of(Mode)}")
    return Mode.ALL


def _assertion(place: Place, value: object, entities: Sequence[Entity]) -> Assertion | None:
    source = values.table(place, value, ("entity", "where", "expect", "count"))
    if not isinstance(value, Mapping):
        return None
    name = values.required_text(place, source, "entity")
    entity = next((each for each in entities if each.name == name), None)
    if name and entities and entity is None:
        names = name_one_of(each.name for each in entities)
        place.at("entity").fault(f"no entity is named {shown(name)}. {names}")
    if "where" not in source:
        place.fault("the key 'where' is missing. Write {} for all rows.")
    where = _conditions(place.at("where"), source.get("where", {}), entity)
    if ("expect" in source) is ("count" in source):
        place.fault("this must have either 'expect' or 'count', and one of them only.")
    expect = _conditions(place.at("expect"), source.get("expect", {}), entity)
    if source.get("expect", True) == {}:
        place.at("expect").fault("it expects nothing. Name a field, or count the rows.")
    least, most = 1, None
    if "count" in source:
        least, most = _range(place.at("count"), source["count"])
    return Assertion(name, where, expect, least, most)


def _range(place: Place, value: object) -> tuple[int, int | None]:
    if not isinstance(value, Mapping):
        exact = _number(place, value)
        return exact, exact
    source = values.table(place, value, ("min", "max"))
    if not value:
        place.fault("name 'min', 'max' or both.")
    least = _number(place.at("min"), source.get("min", 0))
    most = _number(place.at("max"), source["max"]) if "max" in source else None
    if most is not None and most < least:
        place.fault(f"no number is at least {least} and at most {most}.")
    return least, most


def _number(place: Place, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    place.fault(f"this must be a whole number of at least 0, not {shown(value)}.")
    return 0


def _conditions(place: Place, value: object, entity: Entity | None) -> tuple[Condition, ...]:
    if not isinstance(value, Mapping):
        place.fault(f"this must be an object of fields and their values, not {shown(value)}.")
        return ()
    found: list[Condition] = []
    for name, wanted in value.items() if entity else ():
        column = entity.field(name) if entity else None
        if column is None:
            names = name_one_of(each.name for each in entity.fields) if entity else ""
            place.fault(f"there is no field {shown(name)}. {names}")
        else:
            found += _compared(place.at(name), column, wanted)
    return tuple(found)


def _compared(place: Place, column: Field, wanted: JsonValue) -> Iterator[Condition]:
    """Yield the conditions on one field: an object has one of each comparison it names."""
    if not isinstance(wanted, Mapping):
        if wrong := problem(column, wanted):
            place.fault(wrong)
        yield Condition(column.name, Comparison.IS, wanted)
        return
    if not wanted:
        place.fault(f"no comparison is named. {name_one_of(_FOR)}")
    for key, operand in wanted.items():
        comparison = next((each for each in _FOR if each == key), None)
        if comparison is None:
            place.fault(
                f"no comparison is named {shown(key)}. {name_one_of(_FOR)} "
                'To compare with an object, write {"in": [object]}.'
            )
        else:
            _check_operand(place.at(comparison), column, comparison, operand)
            yield Condition(column.name, comparison, operand)


def _check_operand(place: Place, column: Field, comparison: Comparison, operand: JsonValue) -> None:
    if column.type not in _FOR[comparison]:
        listed = ", ".join(_FOR[comparison])
        place.fault(
            f"'{comparison}' is for fields of the types {listed}; {shown(column.name)} is "
            f"{column.type}."
        )
    elif comparison is Comparison.IN:
        options = values.items(place, operand)
        if operand == []:
            place.fault("there is none: nothing could be in it.")
        for index, each in enumerate(options):
            if wrong := problem(column, each):
                place.at(index).fault(wrong)
    elif comparison is Comparison.MATCHES:
        _check_pattern(place, operand)
    elif comparison is Comparison.CONTAINS and operand == "":
        place.fault("every text contains the empty one. Name a part that must be there.")
    elif wrong := problem(replace(column, enum=(), nullable=False), operand):
        place.fault(wrong)


def _check_pattern(place: Place, pattern: object) -> None:
    if not isinstance(pattern, str) or len(pattern) > _PATTERN_LENGTH:
        place.fault(
            f"this must be a regular expression of at most {_PATTERN_LENGTH} characters, not "
            f"{shown(pattern)}."
        )
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern)
    except (re.error, Warning, OverflowError, RecursionError) as error:
        place.fault(f"{shown(pattern)} is no regular expression of Python's: {error}.")
