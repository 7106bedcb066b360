"""``schema/world.json``: the entities, as they will be tables."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from wavetank.bundles.world import values
from wavetank.bundles.world.columns import problem
from wavetank.bundles.world.files import read_json
from wavetank.bundles.world.model import Entity, Field, FieldType, Reference
from wavetank.bundles.world.place import Place, name_one_of, shown

SCHEMA_FILE = "schema/world.json"

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_ENTITY_KEYS = ("name", "description", "key", "fields")
_FIELD_KEYS = ("name", "type", "nullable", "enum", "references", "description")
_RESERVED_FIELD = "rowid"
_SESSION_TABLE = "_session"


def read_schema(path: Path, place: Place) -> tuple[Entity, ...]:
    """Return the entities that could be read; what is wrong with the others is reported."""
    parsed = read_json(path, place)
    if parsed is None:
        return ()
    at = place.at("entities")
    source = values.table(place, parsed, ("entities",))
    if "entities" not in source:
        place.fault("the key 'entities' is missing.")
        return ()
    places: list[Place] = []
    entities: list[Entity] = []
    for index, value in enumerate(values.items(at, source["entities"])):
        if entity := _entity(at.at(index), value, entities):
            places.append(at.at(index))
            entities.append(entity)
    if not entities and source["entities"] == []:
        at.fault("there is no entity. A world has at least one.")
    for here, entity in zip(places, entities, strict=True):
        _check_references(here.at("fields"), entity, {each.name: each for each in entities})
    return tuple(entities)


def identifier_problem(name: str) -> str | None:
    """Return what is wrong with the name of an entity or field, or None."""
    if _IDENTIFIER.fullmatch(name):
        return None
    return (
        f"{shown(name)} is no name here: letters, digits and '_', not starting with a digit, at "
        "most 63 characters."
    )


def entity_name_problem(name: str) -> str | None:
    """Return what is wrong with the name of an entity, or None."""
    if name.lower().startswith("sqlite_") or name.lower() == _SESSION_TABLE:
        return f"the name {shown(name)} is taken by the database. Choose another."
    return identifier_problem(name)


def field_name_problem(name: str) -> str | None:
    """Return what is wrong with the name of a field, or None."""
    if name.lower() == _RESERVED_FIELD:
        return f"the name {shown(name)} is taken by the database. Choose another."
    return identifier_problem(name)


def _entity(place: Place, value: object, before: Sequence[Entity]) -> Entity | None:
    source = values.table(place, value, _ENTITY_KEYS)
    if not isinstance(value, Mapping):
        return None
    name = values.required_text(place, source, "name")
    if name and (wrong := entity_name_problem(name)):
        place.at("name").fault(wrong)
        name = ""
    if any(each.name.lower() == name.lower() for each in before):
        place.at("name").fault(f"{shown(name)} is named twice; tables ignore case.")
        name = ""
    fields = _fields(place, source)
    key = _key(place, source, fields)
    if not name or not fields:
        return None
    return Entity(name, fields, key, values.text(place, source, "description"))


def _fields(place: Place, source: values.Table) -> tuple[Field, ...]:
    if "fields" not in source:
        place.fault("the key 'fields' is missing.")
        return ()
    at = place.at("fields")
    listed = values.items(at, source["fields"])
    if source["fields"] == []:
        at.fault("there is no field. An entity has at least one.")
    found: list[Field] = []
    for index, value in enumerate(listed):
        column = _field(at.at(index), value)
        if column and any(each.name.lower() == column.name.lower() for each in found):
            at.at(index).at("name").fault(f"{shown(column.name)} is named twice in this entity.")
        elif column:
            found.append(column)
    return tuple(found)


def _field(place: Place, value: object) -> Field | None:
    source = values.table(place, value, _FIELD_KEYS)
    if not isinstance(value, Mapping):
        return None
    name = values.required_text(place, source, "name")
    if name and (wrong := field_name_problem(name)):
        place.at("name").fault(wrong)
        name = ""
    kind = _type(place, source)
    nullable = source.get("nullable", False)
    if not isinstance(nullable, bool):
        place.at("nullable").fault(f"this must be true or false, not {shown(nullable)}.")
        nullable = False
    if not name or kind is None:
        return None
    return Field(
        name=name,
        type=kind,
        nullable=nullable,
        enum=_enum(place, source, kind),
        references=_reference(place, source, kind),
        description=values.text(place, source, "description"),
    )


def _type(place: Place, source: values.Table) -> FieldType | None:
    given = values.required_text(place, source, "type")
    if given in tuple(FieldType):
        return FieldType(given)
    if given:
        place.at("type").fault(f"no type is named {shown(given)}. {name_one_of(FieldType)}")
    return None


def _enum(
    place: Place, source: values.Table, kind: FieldType
) -> tuple[str | int | float | bool, ...]:
    if "enum" not in source:
        return ()
    at = place.at("enum")
    listed = values.items(at, source["enum"])
    if source["enum"] == []:
        at.fault("the list is empty, so nothing would be allowed. Leave the key out to allow all.")
    if kind is FieldType.JSON:
        at.fault("a json field takes no enum. Make it a string, or leave the key out.")
        return ()
    found: list[str | int | float | bool] = []
    for index, value in enumerate(listed):
        if wrong := problem(Field("", kind), value):
            at.at(index).fault(wrong)
        elif isinstance(value, str | int | float) and value in found:
            at.at(index).fault(f"{shown(value)} is named twice.")
        elif isinstance(value, str | int | float):
            found.append(value)
    return tuple(found)


def _reference(place: Place, source: values.Table, kind: FieldType) -> Reference | None:
    if not (given := values.text(place, source, "references")):
        return None
    at = place.at("references")
    entity, dot, field = given.partition(".")
    if not dot or not entity or not field:
        at.fault(f"{shown(given)} names no field. Write it as 'entity.field'.")
        return None
    if kind is FieldType.JSON:
        at.fault("a json field cannot reference another. Give it the type of what it names.")
        return None
    return Reference(entity, field)


def _key(place: Place, source: values.Table, fields: Sequence[Field]) -> tuple[str, ...]:
    at = place.at("key")
    named = {each.name: each for each in fields}
    found: list[str] = []
    for index, name in enumerate(values.texts(place, source, "key")):
        column = named.get(name)
        if column is None:
            at.at(index).fault(f"no field is named {shown(name)}. {name_one_of(named)}")
        elif column.nullable or column.type is FieldType.JSON:
            at.at(index).fault(f"{shown(name)} is nullable or json, which no key field can be.")
        else:
            found.append(name)
    return tuple(found)


def _check_references(place: Place, entity: Entity, entities: Mapping[str, Entity]) -> None:
    for column in entity.fields:
        if column.references is None:
            continue
        at = place.at(column.name).at("references")
        target = entities.get(column.references.entity)
        if target is None:
            wrong = shown(column.references.entity)
            at.fault(f"no entity is named {wrong}. {name_one_of(entities)}")
            continue
        other = target.field(column.references.field)
        if other is None:
            at.fault(
                f"{target.name} has no field {shown(column.references.field)}. "
                f"{name_one_of(each.name for each in target.fields)}"
            )
        elif target.key != (other.name,):
            at.fault(
                f"'{target.name}.{other.name}' is not the key of {target.name}, so it does not "
                f'name one row. Set "key": ["{other.name}"] there, or leave the reference out.'
            )
        elif other.type is not column.type:
            at.fault(
                f"'{column.name}' is {column.type} but '{target.name}.{other.name}' is "
                f"{other.type}. Give both one type."
            )
