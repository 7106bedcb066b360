"""``World``, what a tool works on, and ``@tool``: the API that authors of worlds write against."""

import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import ParamSpec, TypeVar

from wavetank.bundles.world import Entity, Field, JsonValue, ReadWorld, WorldBundle
from wavetank.bundles.world.place import name_one_of, shown
from wavetank.worlds import rows, tables
from wavetank.worlds.database import Transaction
from wavetank.worlds.errors import ConstraintError
from wavetank.worlds.tables import SqlValue, decode, encode, quoted

_P = ParamSpec("_P")
_R = TypeVar("_R")

TOOL_MARK = "__wavetank_tool__"


def tool(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function of ``tools/handlers.py`` a tool that agents can call.

    Its first parameter gets the ``World``, the others become the tool's arguments.

    Args:
        function: Sync or async, each parameter annotated.

    Returns:
        The function itself, so tools may call each other within one transaction.
    """
    setattr(function, TOOL_MARK, True)
    return function


class SessionClock:
    """The time that tools see: the bundle's moment first, one second more at each later look."""

    def __init__(self, first: datetime) -> None:
        self._next = first

    def peek(self) -> datetime:
        """Return what the next ``now`` will be."""
        return self._next

    def now(self) -> datetime:
        """Return the moment, UTC."""
        moment = self._next
        self._next = moment + timedelta(seconds=1)
        return moment


class World:
    """The state of one world during one call of a tool.

    Rows are dicts with every column: bool for boolean, parsed json, text for datetime. Everything
    that is changed is kept when the tool returns, and nothing of it when the tool raises.
    """

    def __init__(
        self,
        read: ReadWorld,
        transaction: Transaction,
        clock: SessionClock,
        generator: random.Random,
        alias: str = "",
    ) -> None:
        self._read = read
        self._bundle: WorldBundle = read.linked[alias] if alias else read.main
        self._transaction = transaction
        self._clock = clock
        self.random = generator
        """Seeded for the rollout: the same calls see the same numbers."""

    def now(self) -> datetime:
        """Return the session's time, UTC, not that of the machine."""
        return self._clock.now()

    def linked(self, alias: str) -> "World":
        """Return the world linked under an alias, in the same transaction."""
        if self._bundle.alias or alias not in self._read.linked:
            names = () if self._bundle.alias else self._read.linked
            raise LookupError(f"no world is linked as {shown(alias)}. {name_one_of(names)}")
        return World(self._read, self._transaction, self._clock, self.random, alias)

    def find(self, entity: str, /, **equals: JsonValue) -> list[dict[str, JsonValue]]:
        """Return the rows whose columns have these values, in the order they were inserted.

        ``None`` finds rows where the column is null.
        """
        table = self._entity(entity)
        condition, parameters = rows.where(table, equals)
        return self._select(table, f"{condition} ORDER BY rowid", parameters)

    def find_one(self, entity: str, /, **equals: JsonValue) -> dict[str, JsonValue] | None:
        """Return the first row that ``find`` would return, or None."""
        table = self._entity(entity)
        condition, parameters = rows.where(table, equals)
        found = self._select(table, f"{condition} ORDER BY rowid LIMIT 1", parameters)
        return found[0] if found else None

    def insert(self, entity: str, row: Mapping[str, object]) -> dict[str, JsonValue]:
        """Add a row and return it with every column.

        Raises:
            ConstraintError: When the row breaks the schema.
        """
        table = self._entity(entity)
        rows.require_known(table, row)
        values = {column.name: row.get(column.name) for column in table.fields}
        stored = self._checked(table, values)
        self._write(table, tables.insert(table), tuple(stored.values()), values)
        return self._select(table, "WHERE rowid = last_insert_rowid()", ())[0]

    def update(
        self, entity: str, where: Mapping[str, JsonValue], changes: Mapping[str, object]
    ) -> list[dict[str, JsonValue]]:
        """Change the rows that match and return them as they are now.

        Raises:
            ConstraintError: When a changed row breaks the schema.
        """
        table = self._entity(entity)
        rows.require_known(table, changes)
        stored = self._checked(table, changes)
        condition, parameters = rows.where(table, where)
        found = self._run(tables.select(table, f"{condition} ORDER BY rowid", "rowid"), parameters)
        for row in found if stored else ():
            given = (*stored.values(), row["rowid"])
            self._write(table, tables.update(table, stored), given, changes)
        return [
            each
            for row in found
            for each in self._select(table, "WHERE rowid = ?", (row["rowid"],))
        ]

    def delete(self, entity: str, where: Mapping[str, JsonValue]) -> int:
        """Remove the rows that match and return how many there were.

        Raises:
            ConstraintError: When another row references one of them.
        """
        table = self._entity(entity)
        condition, parameters = rows.where(table, where)
        found = self._run(tables.select(table, condition, "COUNT(*) AS n"), parameters)
        self._write(table, tables.delete(table, condition), parameters, {})
        count = found[0]["n"]
        return count if isinstance(count, int) else 0

    def sql(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[dict[str, SqlValue]]:
        """Run one statement on this world's tables and return its rows.

        The values are SQLite's: 0 and 1 for booleans, text for json. Statements may read and
        change rows and nothing else; the time and chance come from ``now`` and ``random``.

        Raises:
            ConstraintError: When a changed row breaks the schema.
        """
        try:
            return self._run(statement, parameters)
        except sqlite3.IntegrityError as error:
            entity, field = rows.named_in(str(error))
            raise ConstraintError(
                f"{error}. Nothing was changed.", entity=entity, field=field, value=None
            ) from error

    def _entity(self, name: str) -> Entity:
        if entity := self._bundle.entity(name):
            return entity
        names = (each.name for each in self._bundle.entities)
        raise LookupError(f"no entity is named {shown(name)}. {name_one_of(names)}")

    def _checked(self, table: Entity, row: Mapping[str, object]) -> dict[str, SqlValue]:
        """Return the values as SQLite keeps them, once every rule on the row itself holds."""
        stored = rows.stored(table, row)
        for column in table.fields:
            if column.name in stored:
                self._check_reference(table, column, rows.plain(row[column.name]), row)
        return stored

    def _check_reference(
        self, table: Entity, column: Field, value: JsonValue, row: Mapping[str, object]
    ) -> None:
        target = column.references
        if target is None or value is None:
            return
        # A row may name itself.
        if target.entity == table.name and row.get(target.field) == value:
            return
        other = self._entity(target.entity)
        condition = f"WHERE {quoted(target.field)} = ?"
        if not self._run(tables.select(other, condition, "1"), (encode(column, value),)):
            wrong = f"there is no {target.entity} whose {target.field} is {shown(value)}."
            raise rows.constraint(table, column.name, value, wrong)

    def _select(
        self, table: Entity, condition: str, parameters: Sequence[SqlValue]
    ) -> list[dict[str, JsonValue]]:
        found = self._run(tables.select(table, condition), parameters)
        columns = table.fields
        return [{each.name: decode(each, row[each.name]) for each in columns} for row in found]

    def _write(
        self,
        table: Entity,
        statement: str,
        parameters: Sequence[SqlValue],
        values: Mapping[str, object],
    ) -> None:
        try:
            self._run(statement, parameters)
        except sqlite3.IntegrityError as error:
            _, field = rows.named_in(str(error))
            raise self._explained(table, field, values, error) from error

    def _explained(
        self,
        table: Entity,
        field: str | None,
        values: Mapping[str, object],
        error: sqlite3.IntegrityError,
    ) -> ConstraintError:
        if field is None:
            others = ", ".join(
                f"{entity.name}.{column.name}"
                for entity in self._bundle.entities
                for column in entity.fields
                if column.references and column.references.entity == table.name
            )
            return rows.constraint(
                table,
                None,
                None,
                f"a row is still referenced. Change first what names it: {others}.",
            )
        given = ", ".join(shown(values.get(name)) for name in table.key)
        names = ", ".join(table.key)
        wrong = f"there is a row already whose ({names}) is ({given}). Keys are unique."
        return rows.constraint(
            table, field, values.get(field), wrong if field in table.key else str(error)
        )

    def _run(self, statement: str, parameters: Sequence[SqlValue]) -> list[dict[str, SqlValue]]:
        return self._transaction.execute(self._bundle.alias, statement, parameters)
