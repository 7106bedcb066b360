"""What a column may hold. The seed data and every write of a tool are held to the same rules."""

import json
import math
from collections.abc import Mapping
from datetime import datetime

from wavetank.bundles.world.model import Field, FieldType, JsonValue
from wavetank.bundles.world.place import shown
from wavetank.bundles.world.values import is_text

_INT64 = 2**63

_MEANT = {
    FieldType.STRING: "a string",
    FieldType.INTEGER: "a whole number of at most 64 bits",
    FieldType.NUMBER: "a finite number",
    FieldType.BOOLEAN: "true or false",
    FieldType.DATETIME: "a moment as ISO 8601 text, like '2026-01-31T09:00:00Z'",
    FieldType.JSON: "a JSON value",
}


def problem(column: Field, value: object) -> str | None:
    """Return what is wrong with a value for a column, or None when nothing is.

    >>> problem(Field("status", FieldType.STRING, enum=("open", "closed")), "opne")
    "'opne' is not allowed. Name one of: 'open', 'closed'."
    """
    if value is None:
        return None if column.nullable else f"null is not allowed; this must be {_meant(column)}."
    if not _fits(column.type, value):
        return f"{shown(value)} does not fit; this must be {_meant(column)}."
    if column.enum and not any(_same(value, allowed) for allowed in column.enum):
        listed = ", ".join(shown(allowed) for allowed in column.enum)
        return f"{shown(value)} is not allowed. Name one of: {listed}."
    return None


def plain(column: Field, value: JsonValue) -> JsonValue:
    """Return a valid value as rows hold it: numbers of a ``number`` column are floats."""
    if column.type is FieldType.NUMBER and isinstance(value, int):
        return float(value)
    return value


def is_moment(value: str) -> bool:
    """Return whether text is ISO 8601 as ``datetime`` columns take it."""
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _meant(column: Field) -> str:
    return _MEANT[column.type] + (" or null" if column.nullable else "")


def _same(value: object, allowed: object) -> bool:
    # In Python True == 1; an enum of one kind says nothing about the other.
    return value == allowed and isinstance(value, bool) is isinstance(allowed, bool)


def _fits(kind: FieldType, value: object) -> bool:
    if kind is FieldType.JSON:
        return _is_json(value)
    if kind is FieldType.BOOLEAN or isinstance(value, bool):
        return kind is FieldType.BOOLEAN and isinstance(value, bool)
    if kind is FieldType.INTEGER:
        return isinstance(value, int) and -_INT64 <= value < _INT64
    if kind is FieldType.NUMBER:
        return isinstance(value, int | float) and _is_finite(value)
    if not isinstance(value, str) or not is_text(value):
        return False
    return kind is FieldType.STRING or is_moment(value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return not isinstance(value, Mapping) or all(isinstance(key, str) for key in value)
