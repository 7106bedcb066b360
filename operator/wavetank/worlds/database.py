"""The tables of a session: one SQLite database for each world, one transaction over all of them.

The databases are in memory, each on a connection of its own, so that every world sees just its
own tables under their plain names. A commit goes over all connections in turn. It cannot stop half
way: constraints are checked at each statement, never at the commit, and a crash loses all of them
together. (Attached databases would give the same, but a name that two worlds share would be
looked up in the wrong one.)
"""

import re
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from wavetank.bundles.world import WorldBundle
from wavetank.worlds.errors import SessionEnded, ToolError
from wavetank.worlds.tables import (
    PAGE_BYTES,
    STATE_BYTES,
    VALUE_BYTES,
    SqlValue,
    definition,
    encode,
    insert,
)

# What statements of tools may do: read and change rows. Everything else would let an agent that
# can reach SQL break the tables under the verifiers, or leave the transaction of its call.
_ALLOWED = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_UPDATE,
        sqlite3.SQLITE_DELETE,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
# Functions whose answer is not the same in every session with the same calls.
_UNREPEATABLE = frozenset(
    {"random", "randomblob", "current_timestamp", "current_date", "current_time", "load_extension"}
)
_INTERRUPT_SECONDS = 0.1
_RESULT_BYTES = 64 * 1024 * 1024
"""Of what one statement returns: an agent must not be able to fill the container's memory, which
would end its session without a score."""
_CELL_BYTES = 64
"""What a value costs in Python besides its text."""
_WORK_BYTES = 128 * 1024 * 1024
"""What SQLite may take in all besides full databases, for sorting and for writing the end state."""
_NOW_IN_SQL = re.compile(
    r"'now'|\b(?:date|time|datetime|julianday|unixepoch|strftime)\s*\(\s*\)", re.IGNORECASE
)


def create(worlds: Sequence[WorldBundle]) -> "Databases":
    """Return databases that hold the seed rows of the worlds.

    Raises:
        sqlite3.Error: When they do not fit (see ``tables.STATE_BYTES``).
    """
    connections = {world.alias: _connection(world) for world in worlds}
    # For the process as a whole; it can only be lowered.
    heap = len(worlds) * STATE_BYTES + _WORK_BYTES
    connections[""].execute(f"PRAGMA hard_heap_limit = {heap}")
    for connection in connections.values():
        connection.set_authorizer(_authorize)
    return Databases(connections)


class Databases:
    """The databases of one session. All methods may be called from any thread."""

    def __init__(self, connections: Mapping[str, sqlite3.Connection]) -> None:
        self._connections = connections
        self._lock = threading.Lock()
        self._ended = False

    def begin(self) -> "Transaction":
        """Start the transaction of one call; there is one at a time."""
        with self._lock:
            self._command("BEGIN")
            return Transaction(self)

    def end(self) -> None:
        """Take back what is not committed and refuse everything from now on but ``dump``."""
        # A statement that runs is interrupted; again, if another one was quicker to start.
        while not self._lock.acquire(timeout=_INTERRUPT_SECONDS):
            for connection in self._connections.values():
                connection.interrupt()
        try:
            self._ended = True
            self._command("ROLLBACK")
        finally:
            self._lock.release()

    def close(self) -> None:
        """Give back the memory; nothing works afterwards."""
        with self._lock:
            self._ended = True
            for connection in self._connections.values():
                connection.close()

    def dump(self, folder: Path) -> None:
        """Write the committed state as ``main.sqlite`` and ``linked/<alias>.sqlite``.

        The files are the same, byte for byte, for the same state reached by the same calls.
        """
        with self._lock:
            for alias, connection in self._connections.items():
                target = folder / (f"linked/{alias}.sqlite" if alias else "main.sqlite")
                target.parent.mkdir(parents=True, exist_ok=True)
                connection.set_authorizer(None)
                connection.execute("VACUUM INTO ?", (str(target),))
                connection.set_authorizer(_authorize)

    def finish(self, command: str) -> None:
        """End the current transaction by COMMIT or ROLLBACK.

        Raises:
            SessionEnded: When a commit comes after the end.
        """
        with self._lock:
            if not self._ended:
                self._command(command)
            elif command == "COMMIT":
                raise SessionEnded

    def execute(
        self, alias: str, statement: str, parameters: Sequence[SqlValue]
    ) -> list[dict[str, SqlValue]]:
        """Run one statement in the current transaction.

        Raises:
            SessionEnded: When the session is over.
            ToolError: When it returns more than anyone can use.
            sqlite3.Error: In SQLite's own words.
        """
        with self._lock:
            if self._ended:
                raise SessionEnded
            return _fetched(self._connections[alias].execute(statement, parameters))

    def _command(self, command: str) -> None:
        for connection in self._connections.values():
            if connection.in_transaction is (command == "BEGIN"):
                continue
            connection.set_authorizer(None)
            connection.execute(command)
            connection.set_authorizer(_authorize)


class Transaction:
    """The transaction of one call, over all worlds."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._live = True

    def execute(
        self, alias: str, statement: str, parameters: Sequence[SqlValue] = ()
    ) -> list[dict[str, SqlValue]]:
        """Run one statement on a world's database."""
        if not self._live:
            raise RuntimeError("a World was used after the call that it was made for had ended")
        if _NOW_IN_SQL.search(statement):
            raise ValueError("SQL cannot ask for the time: pass world.now() as a parameter")
        return self._databases.execute(alias, statement, parameters)

    def commit(self) -> None:
        """Keep everything."""
        self._live = False
        self._databases.finish("COMMIT")

    def rollback(self) -> None:
        """Keep nothing."""
        self._live = False
        self._databases.finish("ROLLBACK")


def _authorize(
    action: int, first: str | None, second: str | None, _database: str | None, _trigger: str | None
) -> int:
    # For a function, the second argument is its name.
    unrepeatable = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _UNREPEATABLE
    if action not in _ALLOWED or unrepeatable:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _fetched(cursor: sqlite3.Cursor) -> list[dict[str, SqlValue]]:
    names = [column[0] for column in cursor.description or ()]
    found: list[dict[str, SqlValue]] = []
    left = _RESULT_BYTES
    for row in cursor:
        left -= sum(_CELL_BYTES + (len(v) if isinstance(v, str | bytes) else 0) for v in row)
        if left < 0:
            raise ToolError(f"a statement returns more than {_RESULT_BYTES} bytes. Ask for less.")
        found.append(dict(zip(names, row, strict=True)))
    return found


def _connection(world: WorldBundle) -> sqlite3.Connection:
    # Without the cache of statements each is prepared, and so authorised, when it is run.
    connection = sqlite3.connect(
        ":memory:", isolation_level=None, check_same_thread=False, cached_statements=0
    )
    # Off while seed rows are loaded, since they may come before the rows they name; reading the
    # bundle has checked them.
    connection.execute("PRAGMA foreign_keys = OFF")
    # Never a file: a full /tmp would evict the Pod, a full heap is an error of one statement.
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    connection.execute(f"PRAGMA max_page_count = {STATE_BYTES // PAGE_BYTES}")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES)
    connection.execute("BEGIN")
    for entity in world.entities:
        connection.execute(definition(entity))
    for entity in world.entities:
        connection.executemany(
            insert(entity),
            [
                [encode(column, row[column.name]) for column in entity.fields]
                for row in world.rows.get(entity.name, ())
            ],
        )
    connection.execute("COMMIT")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection
