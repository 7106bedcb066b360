"""Whether the rows of an end state are as a verifier's assertions say.

Nothing an agent writes into a row keeps a verifier from being scored: a value that cannot be read,
or compared with what is asked, is not as asserted. Only a regular expression, or comparisons over
millions of rows, can take too long; the child process that this runs in has limited time.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

from wavetank.api.wire import Score
from wavetank.bundles.world import (
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
from wavetank.worlds import rows, tables
from wavetank.worlds.grading.sql import EndState, StatementError, failed
from wavetank.worlds.tables import SqlValue

_Row = Mapping[str, SqlValue]
_Test = Callable[[_Row], bool]

_SAME_IN_SQL = (FieldType.STRING, FieldType.INTEGER, FieldType.NUMBER, FieldType.BOOLEAN)


def score(
    name: str, asserted: Assertions | None, state: EndState, entities: Sequence[Entity]
) -> Score:
    """Return the score of assertions: all or nothing, or the part of them that holds.

    Args:
        name: The key in ``rewards``.
        asserted: None when there is a fault in the file.
        state: Whose rows it is about.
        entities: Those of the state.
    """
    if asserted is None or not asserted.assertions:
        return failed(name, "there is a fault in the file: check the bundle")
    by_name = {each.name: each for each in entities}
    try:
        held = [_holds(each, by_name[each.entity], state) for each in asserted.assertions]
    except (StatementError, MemoryError) as error:
        return failed(name, str(error) or "out of memory")
    part = sum(held) / len(held)
    return Score(name=name, value=part if asserted.mode is Mode.FRACTION else float(all(held)))


def _holds(assertion: Assertion, entity: Entity, state: EndState) -> bool:
    where = [_test(each, entity) for each in assertion.where]
    expect = [_test(each, entity) for each in assertion.expect]
    count = 0
    for row in _rows(assertion, entity, state):
        if not all(test(row) for test in where):
            continue
        count += 1
        if not all(test(row) for test in expect):
            return False
    return assertion.least <= count and (assertion.most is None or count <= assertion.most)


def _rows(assertion: Assertion, entity: Entity, state: EndState) -> Iterator[_Row]:
    """Yield what is asked of the rows that may match.

    An agent may have made millions of rows, so the engine leaves out what it can, by the equalities
    that mean the same to it.
    """
    equals = {
        each.field: each.operand
        for each in assertion.where
        if each.comparison is Comparison.IS and _type(entity, each) in _SAME_IN_SQL
    }
    condition, parameters = rows.where(entity, equals)
    asked = {each.field for each in (*assertion.where, *assertion.expect)}
    names = [each.name for each in entity.fields if each.name in asked]
    columns = ", ".join(tables.quoted(name) for name in names) or "1"
    with state.asked(tables.select(entity, condition, columns), parameters) as cursor:
        for row in cursor:
            yield dict(zip(names, row, strict=False))


def _type(entity: Entity, condition: Condition) -> FieldType | None:
    column = entity.field(condition.field)
    return column.type if column else None


def _test(condition: Condition, entity: Entity) -> _Test:
    """Return what tells whether a row meets a condition."""
    column = entity.field(condition.field)
    if column is None:
        return lambda _: False
    is_met = _compared(column, condition)

    def test(row: _Row) -> bool:
        try:
            return is_met(tables.decode(column, row[column.name]))
        except (ValueError, OverflowError, RecursionError):
            return False  # no JSON or no moment, or nested too deeply

    return test


def _compared(column: Field, condition: Condition) -> Callable[[JsonValue], bool]:
    if condition.comparison is Comparison.MATCHES:
        search = re.compile(str(condition.operand)).search
        return lambda value: isinstance(value, str) and search(value) is not None
    compare, operand = _COMPARE[condition.comparison], _operand(column, condition)
    if column.type is FieldType.DATETIME:
        return lambda value: compare(_comparable(column, value), operand)
    return lambda value: compare(value, operand)


def _operand(column: Field, condition: Condition) -> object:
    if condition.comparison is Comparison.IN and isinstance(condition.operand, Sequence):
        return [_comparable(column, each) for each in condition.operand]
    return _comparable(column, condition.operand)


def _comparable(column: Field, value: JsonValue) -> object:
    """Return a value as it is compared: moments by when they are, not by how they are written."""
    if column.type is FieldType.DATETIME and isinstance(value, str):
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return value


def _same(value: object, other: object) -> bool:
    """Return whether two values are equal, in JSON's sense: a boolean is no number."""
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_same, value, other))
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_same(value[k], other[k]) for k in value)
    return value == other


def _contains(value: object, part: object) -> bool:
    if isinstance(value, list):
        return any(_same(each, part) for each in value)
    return isinstance(value, str) and isinstance(part, str) and part in value


def _is_in(value: object, options: object) -> bool:
    return _contains(options, value)


def _is_greater(value: object, bound: object) -> bool:
    if isinstance(value, str) and isinstance(bound, str):
        return value > bound
    if isinstance(value, datetime) and isinstance(bound, datetime):
        return value > bound
    return isinstance(value, int | float) and isinstance(bound, int | float) and value > bound


def _is_less(value: object, bound: object) -> bool:
    return _is_greater(bound, value)


_COMPARE: Mapping[Comparison, Callable[[object, object], bool]] = MappingProxyType(
    {
        Comparison.IS: _same,
        Comparison.CONTAINS: _contains,
        Comparison.IN: _is_in,
        Comparison.GT: _is_greater,
        Comparison.LT: _is_less,
    }
)
