"""What a Python check is given: the end state of a world, to read only, and the session's record."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property

from wavetank.bundles.world import Entity, JsonValue
from wavetank.bundles.world.place import name_one_of, shown
from wavetank.worlds import rows, tables
from wavetank.worlds.grading.sql import EndState, opened
from wavetank.worlds.grading.states import States
from wavetank.worlds.tables import SqlValue


@dataclass(frozen=True)
class Call:
    """One call of a tool."""

    tool: str
    arguments: Mapping[str, JsonValue] | None
    """None when the record of the session was too long to hold them."""
    result: JsonValue
    """None also when the call failed."""
    error: Mapping[str, JsonValue] | None
    """``type``, ``message`` and ``details`` as the agent read them; None when it worked."""
    at: str
    """When, RFC 3339."""
    seconds: float
    """How long it took."""


class Trajectory:
    """What happened in the session, as the world has recorded it."""

    def __init__(self, states: States) -> None:
        self.task = states.session.task
        """The task's id."""
        self.final_answer = states.session.final_answer
        """The agent's last message; None when it gave none."""
        self.end = states.session.end
        """``closed``, ``deadline`` or ``interrupted``."""
        self._path = states.trajectory

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """The calls of tools in their order, also those that failed."""
        if self._path is None:
            return ()
        with self._path.open("rb") as lines:
            return tuple(_call(json.loads(line)) for line in lines)


class World:
    """The end state of a world. Nothing can be changed in it."""

    def __init__(self, states: States, alias: str, seconds: float, stack: ExitStack) -> None:
        self._states = states
        self._alias = alias
        self._seconds = seconds
        self._stack = stack
        self._linked: dict[str, World] = {}

    def find(self, entity: str, /, **equals: JsonValue) -> list[dict[str, JsonValue]]:
        """Return the rows whose columns have these values, in the order they were inserted.

        ``None`` finds rows where the column is null.
        """
        return self._select(entity, equals, "ORDER BY rowid")

    def find_one(self, entity: str, /, **equals: JsonValue) -> dict[str, JsonValue] | None:
        """Return the first row that ``find`` would return, or None."""
        found = self._select(entity, equals, "ORDER BY rowid LIMIT 1")
        return found[0] if found else None

    def sql(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[dict[str, SqlValue]]:
        """Run one statement that reads, under the rules of SQL verifiers; return its rows.

        The values are SQLite's: 0 and 1 for booleans, text for json.

        Raises:
            StatementError: If it is refused or fails.
        """
        with self._state.asked(statement, parameters) as cursor:
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def linked(self, alias: str) -> "World":
        """Return the end state of the world that is linked under an alias."""
        names = () if self._alias else tuple(each for each in self._states.files if each)
        if alias not in names:
            raise LookupError(f"no world is linked as {shown(alias)}. {name_one_of(names)}")
        if alias not in self._linked:
            self._linked[alias] = World(self._states, alias, self._seconds, self._stack)
        return self._linked[alias]

    @cached_property
    def _state(self) -> EndState:
        """The copy that is asked, made at the first question."""
        states = self._states
        return self._stack.enter_context(
            opened(
                states.files[self._alias],
                states.entities[self._alias],
                states.session,
                self._seconds,
            )
        )

    def _select(
        self, name: str, equals: Mapping[str, JsonValue], order: str
    ) -> list[dict[str, JsonValue]]:
        table = self._entity(name)
        condition, parameters = rows.where(table, equals)
        statement = tables.select(table, f"{condition} {order}")
        with self._state.asked(statement, parameters) as cursor:
            return [_decoded(table, row) for row in cursor]

    def _entity(self, name: str) -> Entity:
        entities = self._states.entities[self._alias]
        found = next((each for each in entities if each.name == name), None)
        if found is None:
            names = name_one_of(each.name for each in entities)
            raise LookupError(f"no entity is named {shown(name)}. {names}")
        return found


def _decoded(table: Entity, row: Sequence[SqlValue]) -> dict[str, JsonValue]:
    columns = zip(table.fields, row, strict=True)
    return {column.name: tables.decode(column, value) for column, value in columns}


def _call(record: Mapping[str, JsonValue]) -> Call:
    arguments, error = record.get("arguments"), record.get("error")
    seconds = record["seconds"]
    return Call(
        tool=str(record["tool"]),
        arguments=arguments if isinstance(arguments, Mapping) else None,
        result=record.get("result"),
        error=error if isinstance(error, Mapping) else None,
        at=str(record["at"]),
        seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
    )
