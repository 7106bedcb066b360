"""Tables and types of a world without a schema, taken from its data."""

import re
from collections.abc import Mapping, Sequence

from wavetank.bundles.world.columns import is_moment
from wavetank.bundles.world.model import Entity, Field, FieldType
from wavetank.bundles.world.place import Place
from wavetank.bundles.world.schema import entity_name_problem, field_name_problem

_ID = "id"
_DATE_AND_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")
"""Stricter than what a datetime column takes: '20260131' is more likely a number in quotes."""


def infer(place: Place, data: Mapping[str, object]) -> tuple[Entity, ...]:
    """Return an entity for each list of rows in the data.

    A column is the type that all its values have (integers among numbers are numbers, anything
    else mixed is json), nullable when a row lacks it or has null, and ``id`` is the key when
    every row has its own. Nothing is inferred about references and enums.
    """
    found = (_entity(place.at(name), name, rows) for name, rows in data.items())
    return tuple(entity for entity in found if entity)


def sentences(entities: Sequence[Entity]) -> tuple[str, ...]:
    """Return what was inferred, one sentence for each table.

    >>> sentences([Entity("t", (Field("id", FieldType.STRING),), ("id",))])
    ('t: key id; id string.',)
    """
    return tuple(
        f"{each.name}: {'key ' + ', '.join(each.key) if each.key else 'no key'}; "
        + ", ".join(f"{f.name} {f.type}{' or null' if f.nullable else ''}" for f in each.fields)
        + "."
        for each in entities
    )


def _entity(place: Place, name: str, value: object) -> Entity | None:
    if wrong := entity_name_problem(name):
        place.fault(wrong)
        return None
    # What is no list, or no row, is reported when the data is read against these entities.
    listed = value if isinstance(value, list) else ()
    rows = [row for row in listed if isinstance(row, dict)]
    names = {key: None for row in rows for key in row}
    if not names:
        place.fault(
            "the columns of a table without rows cannot be inferred. Describe it in "
            "schema/world.json, or give it a row."
        )
        return None
    for key in names:
        if wrong := field_name_problem(key):
            place.fault(wrong)
    fields = tuple(_field(key, rows) for key in names if field_name_problem(key) is None)
    return Entity(name, fields, key=_key(fields, rows)) if fields else None


def _field(name: str, rows: Sequence[Mapping[str, object]]) -> Field:
    given = [row.get(name) for row in rows]
    kinds = {_type(value) for value in given if value is not None}
    if kinds == {FieldType.INTEGER, FieldType.NUMBER}:
        kinds = {FieldType.NUMBER}
    if kinds == {FieldType.STRING, FieldType.DATETIME}:
        kinds = {FieldType.STRING}
    kind = kinds.pop() if len(kinds) == 1 else FieldType.JSON
    return Field(name, kind, nullable=None in given)


def _type(value: object) -> FieldType:
    if isinstance(value, bool):
        return FieldType.BOOLEAN
    if isinstance(value, int):
        return FieldType.INTEGER
    if isinstance(value, float):
        return FieldType.NUMBER
    if isinstance(value, str):
        moment = _DATE_AND_TIME.fullmatch(value) and is_moment(value)
        return FieldType.DATETIME if moment else FieldType.STRING
    return FieldType.JSON


def _key(fields: Sequence[Field], rows: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    column = next((each for each in fields if each.name == _ID), None)
    if column is None or column.nullable:
        return ()
    if column.type not in (FieldType.STRING, FieldType.INTEGER):
        return ()
    different = {row[_ID] for row in rows}
    return (_ID,) if len(different) == len(rows) else ()
