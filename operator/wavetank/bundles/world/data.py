"""``data/initial.json``: the seed rows, held against the entities."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from wavetank.bundles.world import values
from wavetank.bundles.world.columns import plain, problem
from wavetank.bundles.world.files import read_json
from wavetank.bundles.world.model import Entity, Field, JsonValue, Row
from wavetank.bundles.world.place import Place, name_one_of, shown

DATA_FILE = "data/initial.json"

Rows = Mapping[str, tuple[Row, ...]]


def read_data(path: Path, place: Place) -> Mapping[str, object] | None:
    """Return the data by entity as it stands in the file; None, with a finding, if it is none."""
    parsed = read_json(path, place)
    if isinstance(parsed, dict):
        return parsed
    if parsed is not None:
        place.fault(f"this must be an object of entities, not {shown(parsed)}.")
    return None


def check_rows(place: Place, data: Mapping[str, object], entities: Sequence[Entity]) -> Rows:
    """Return the good rows of each entity, each with all its columns; report the others."""
    named = {each.name: each for each in entities}
    found: dict[str, tuple[Row, ...]] = {name: () for name in named}
    places: dict[str, list[Place]] = {}
    for name, value in data.items():
        if name not in named:
            place.at(name).fault(f"no entity is named {shown(name)}. {name_one_of(named)}")
            continue
        kept: list[tuple[Place, Row]] = []
        for index, entry in enumerate(values.items(place.at(name), value)):
            row = _row(place.at(name).at(index), entry, named[name])
            if row is not None:
                kept.append((place.at(name).at(index), row))
        found[name] = tuple(row for _, row in kept)
        places[name] = [at for at, _ in kept]
    for name, listed in places.items():
        _check_keys(named[name], found[name], listed)
        _check_references(named[name], found, listed)
    return found


def _row(place: Place, value: object, entity: Entity) -> Row | None:
    if not isinstance(value, dict):
        place.fault(f"a row must be an object, not {shown(value)}.")
        return None
    names = [each.name for each in entity.fields]
    good = True
    for key in value:
        if key not in names:
            place.at(key).fault(f"{entity.name} has no field {shown(key)}. {name_one_of(names)}")
            good = False
    row: dict[str, JsonValue] = {}
    for column in entity.fields:
        wrong = _wrong(column, value)
        if wrong:
            place.at(column.name).fault(wrong)
            good = False
        else:
            row[column.name] = plain(column, value.get(column.name))
    return row if good else None


def _wrong(column: Field, row: Mapping[str, object]) -> str | None:
    if column.name not in row and not column.nullable:
        return f"the value is missing, and '{column.name}' is not nullable."
    return problem(column, row.get(column.name))


def _check_keys(entity: Entity, rows: Sequence[Row], places: Sequence[Place]) -> None:
    if not entity.key:
        return
    first: dict[tuple[JsonValue, ...], Place] = {}
    for row, place in zip(rows, places, strict=True):
        key = tuple(row[name] for name in entity.key)
        if key in first:
            given = ", ".join(shown(each) for each in key)
            place.fault(
                f"the key ({', '.join(entity.key)}) = ({given}) is already that of "
                f"{first[key].path}. Keys are unique."
            )
        first.setdefault(key, place)


def _check_references(entity: Entity, rows: Rows, places: Sequence[Place]) -> None:
    for column in entity.fields:
        target = column.references
        if target is None or target.entity not in rows:
            continue
        known = {row.get(target.field) for row in rows[target.entity]}
        for row, place in zip(rows[entity.name], places, strict=True):
            value = row[column.name]
            if value is not None and value not in known:
                place.at(column.name).fault(
                    f"there is no {target.entity} whose {target.field} is {shown(value)}."
                )
