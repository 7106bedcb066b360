"""How entities become SQLite tables, and rows become what is stored in them."""

import json
from collections.abc import Collection

from wavetank.bundles.world import Entity, Field, FieldType, JsonValue

SqlValue = str | int | float | bytes | None

STATE_BYTES = 128 * 1024 * 1024
"""Of one world's database. An agent that could make it larger could make it too large to be
graded: graders hold a copy in memory, and need some themselves."""

VALUE_BYTES = 16 * 1024 * 1024
"""Of one value, for the same reason."""

PAGE_BYTES = 4096

_SQL_TYPES = {
    FieldType.STRING: "TEXT",
    FieldType.INTEGER: "INTEGER",
    FieldType.NUMBER: "REAL",
    FieldType.BOOLEAN: "INTEGER",
    FieldType.DATETIME: "TEXT",
    FieldType.JSON: "TEXT",
}


def encode(column: Field, value: JsonValue) -> SqlValue:
    """Return a valid value of a column as SQLite stores it."""
    if value is None:
        return None
    if column.type is FieldType.JSON:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if column.type is FieldType.NUMBER and isinstance(value, int | float):
        return float(value)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str | int | float):
        return value
    raise TypeError(f"{column.name}: {type(value).__name__} is no value of a {column.type} column")


def decode(column: Field, value: SqlValue) -> JsonValue:
    """Return a stored value as rows hold it."""
    if value is None or isinstance(value, bytes):
        return None
    if column.type is FieldType.BOOLEAN:
        return bool(value)
    if column.type is FieldType.JSON and isinstance(value, str):
        parsed: JsonValue = json.loads(value)
        return parsed
    return value


def quoted(name: str) -> str:
    """Return a name as an SQL identifier.

    >>> quoted("crm_tickets")
    '"crm_tickets"'
    """
    return '"' + name.replace('"', '""') + '"'


def definition(entity: Entity) -> str:
    """Return the CREATE TABLE statement of an entity.

    Keys are UNIQUE over NOT NULL columns, not PRIMARY KEY: an integer primary key would be the
    rowid itself, and rowids are the order that rows were inserted in.
    """
    parts = [_column(column) for column in entity.fields]
    if entity.key:
        parts.append(f"UNIQUE ({', '.join(quoted(name) for name in entity.key)})")
    return f"CREATE TABLE {quoted(entity.name)} ({', '.join(parts)}) STRICT"


def select(entity: Entity, condition: str = "", columns: str = "*") -> str:
    """Return a SELECT over one table; ``condition`` starts with WHERE or ORDER BY."""
    return f"SELECT {columns} FROM {quoted(entity.name)} {condition}"  # noqa: S608 - quoted names, values by marks


def insert(entity: Entity) -> str:
    """Return an INSERT that takes every column in the entity's order."""
    marks = ", ".join("?" for _ in entity.fields)
    return f"INSERT INTO {quoted(entity.name)} VALUES ({marks})"  # noqa: S608 - quoted names, values by marks


def update(entity: Entity, names: Collection[str]) -> str:
    """Return an UPDATE of one row that takes the named columns, then the rowid."""
    assignments = ", ".join(f"{quoted(name)} = ?" for name in names)
    return f"UPDATE {quoted(entity.name)} SET {assignments} WHERE rowid = ?"  # noqa: S608 - quoted names, values by marks


def delete(entity: Entity, condition: str) -> str:
    """Return a DELETE; ``condition`` starts with WHERE, or is empty for all rows."""
    return f"DELETE FROM {quoted(entity.name)} {condition}"  # noqa: S608 - quoted names, values by marks


def _column(column: Field) -> str:
    parts = [quoted(column.name), _SQL_TYPES[column.type]]
    if not column.nullable:
        parts.append("NOT NULL")
    if column.type is FieldType.BOOLEAN:
        parts.append(f"CHECK ({quoted(column.name)} IN (0, 1))")
    if column.type is FieldType.JSON:
        # Before SQLite 3.45 json_valid(NULL) is 0, not NULL.
        name = quoted(column.name)
        parts.append(f"CHECK ({name} IS NULL OR json_valid({name}))")
    if column.enum:
        allowed = ", ".join(_literal(encode(column, value)) for value in column.enum)
        parts.append(f"CHECK ({quoted(column.name)} IN ({allowed}))")
    if column.references:
        target = column.references
        parts.append(f"REFERENCES {quoted(target.entity)} ({quoted(target.field)})")
    return " ".join(parts)


def _literal(value: SqlValue) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
