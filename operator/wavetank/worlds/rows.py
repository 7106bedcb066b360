"""Rows as tools give them: checked against their entity, and turned into what SQLite takes."""

from collections.abc import Mapping
from datetime import datetime

from wavetank.bundles.world import Entity, Field, JsonValue
from wavetank.bundles.world.columns import problem
from wavetank.bundles.world.place import name_one_of, shown
from wavetank.worlds.errors import ConstraintError
from wavetank.worlds.tables import SqlValue, encode, quoted


def require_known(table: Entity, row: Mapping[str, object]) -> None:
    """Refuse columns that the entity does not have.

    Raises:
        LookupError: It is the author's mistake, not the agent's.
    """
    for name in row:
        if table.field(name) is None:
            names = name_one_of(each.name for each in table.fields)
            raise LookupError(f"{table.name} has no field {shown(name)}. {names}")


def where(table: Entity, equals: Mapping[str, JsonValue]) -> tuple[str, tuple[SqlValue, ...]]:
    """Return a WHERE clause and its parameters; an empty one for no columns.

    Raises:
        LookupError: For a column that is not there.
        TypeError: For a value that the column can never hold.
    """
    require_known(table, equals)
    parts: list[str] = []
    parameters: list[SqlValue] = []
    for column in table.fields:
        if column.name not in equals:
            continue
        value = plain(equals[column.name])
        if value is None:
            parts.append(f"{quoted(column.name)} IS NULL")
            continue
        # An unknown value of an enum is no mistake: it just finds nothing.
        if wrong := problem(Field(column.name, column.type), value):
            raise TypeError(f"{table.name}.{column.name}: {wrong}")
        parts.append(f"{quoted(column.name)} = ?")
        parameters.append(encode(column, value))
    return ("WHERE " + " AND ".join(parts) if parts else ""), tuple(parameters)


def stored(table: Entity, row: Mapping[str, object]) -> dict[str, SqlValue]:
    """Return the values that are given, in the entity's order, as SQLite keeps them.

    Raises:
        ConstraintError: For the first that its column cannot hold.
    """
    found: dict[str, SqlValue] = {}
    for column in table.fields:
        if column.name not in row:
            continue
        value = plain(row[column.name])
        if wrong := problem(column, value):
            raise constraint(table, column.name, value, wrong)
        found[column.name] = encode(column, value)
    return found


def plain(value: object) -> JsonValue:
    """Return a value as JSON has it: moments, which ``now`` gives, as ISO 8601 text."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value  # type: ignore[return-value]


def constraint(table: Entity, field: str | None, value: object, wrong: str) -> ConstraintError:
    """Return the error that names entity, field and value."""
    place = f"{table.name}.{field}" if field else table.name
    return ConstraintError(f"{place}: {wrong}", entity=table.name, field=field, value=value)


def named_in(message: str) -> tuple[str, str | None]:
    """Return entity and field that SQLite's words name.

    >>> named_in("UNIQUE constraint failed: tickets.id")
    ('tickets', 'id')
    """
    _, _, names = message.partition("constraint failed: ")
    entity, _, field = names.split(", ")[0].partition(".")
    return (entity, field or None) if names else ("", None)
