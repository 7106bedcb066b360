"""Runs SQL verifiers over the end state of one world, taken as a hostile file.

The end state came out of a Pod that an agent acted in, so its schema is not trusted at all: the rows
of the declared entities are copied into a fresh database in memory, built from the bundle's own
schema, and the verifiers run on that copy. A trigger, view, virtual table, generated column or index
in the file can therefore change nothing. The verifier's statement itself is held by an authorizer's
allow-list, by SQLite's limits, and by a clock.

Called by ``members`` in child processes. It must not run in a process that holds a token or serves
an agent: a statement may take all memory it is given.
"""

import math
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from wavetank.api.wire import Score
from wavetank.bundles.world import Entity
from wavetank.core.causes import Cause
from wavetank.worlds.grading.rules import (
    ACTIONS,
    ALLOWED_FUNCTIONS,
    LIMITS,
    TABLE_FUNCTIONS,
    WALL_CLOCK,
)
from wavetank.worlds.tables import SqlValue, definition, quoted

SESSION_TABLE = "_session"
"""One more table while grading: what the session was, and the agent's last message."""

SECONDS_PER_VERIFIER = 10.0
"""How long one statement may compute."""

BUSY_FACTOR = 6
"""So many times longer it may take by the clock on the wall."""

_STEPS_BETWEEN_LOOKS = 5_000
"""Virtual machine steps between two looks at the clock: some 50 microseconds."""

_ASKS_THE_TIME = "it asks for the time of the machine: compare with stored times"

_MESSAGE = 300
"""``Score.message`` ends here."""


@dataclass(frozen=True)
class SessionFacts:
    """The one row of ``_session``."""

    task: str
    final_answer: str | None
    """The agent's last message; None when it gave none."""
    calls: int
    """Tool calls of the session."""
    end: str
    """``closed``, ``deadline`` or ``interrupted``; ``closed`` for the untouched state, as if an
    agent had done nothing."""


class StateError(Exception):
    """The end state cannot be graded: the file is broken, or a declared table is not in it."""


class StatementError(Exception):
    """A statement was refused or failed; in the engine's words."""


class _Clock:
    """Ends a statement that runs longer than it may; the clock is looked at between steps.

    The clock is that of the CPU, so that a busy node makes no verifier fail; on an idle one it is
    also that of the wall.
    """

    def __init__(self, seconds: float) -> None:
        self._cpu_end = time.thread_time() + seconds
        self._wall_end = time.monotonic() + BUSY_FACTOR * seconds
        self.expired = False

    def __call__(self) -> int:
        cpu, wall = time.thread_time(), time.monotonic()
        self.expired = self.expired or cpu > self._cpu_end or wall > self._wall_end
        return int(self.expired)


class _Refusals:
    """An authorizer that lets read the declared tables, call harmless functions, and no more."""

    def __init__(self, tables: frozenset[str], modules: frozenset[str]) -> None:
        self._tables = tables
        self._modules = modules
        self.first = ""
        """The first thing that was refused, in words; empty when nothing was."""

    def __call__(
        self, action: int, first: str | None, second: str | None, schema: str | None, _: str | None
    ) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ and self._may_read((first or "").lower(), schema):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in ALLOWED_FUNCTIONS:
            return sqlite3.SQLITE_OK
        words = " ".join(filter(None, [ACTIONS.get(action, f"action {action}"), first, second]))
        self.first = self.first or f"{words} is refused"
        return sqlite3.SQLITE_DENY

    def _may_read(self, table: str, schema: str | None) -> bool:
        if table in self._tables:
            return True
        # The statement's own WITH tables belong to no schema. Nor do virtual tables that come with
        # SQLite, like dbstat: those are known by name.
        built_in = table in self._modules or table.startswith(("pragma_", "sqlite_"))
        return schema is None and not built_in


class EndState:
    """The rows of one world's end state, ready to be asked. Make one by ``opened``."""

    def __init__(self, database: sqlite3.Connection, tables: frozenset[str]) -> None:
        self._database = database
        self._tables = tables
        self._modules = frozenset(
            name.lower() for (name,) in database.execute("PRAGMA module_list") if name
        )

    @contextmanager
    def asked(
        self, statement: str, parameters: Sequence[SqlValue] = ()
    ) -> Iterator[sqlite3.Cursor]:
        """Run a statement that the process around it must end when it takes too long.

        Raises:
            StatementError: If it does more than read the declared tables, or fails.
        """
        if WALL_CLOCK.search(statement):
            raise StatementError(_ASKS_THE_TIME)
        refusals = _Refusals(self._tables, self._modules)
        self._database.set_progress_handler(None, 0)
        self._database.set_authorizer(refusals)
        try:
            with closing(self._database.execute(statement, parameters)) as cursor:
                yield cursor
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            words = "; ".join(filter(None, [str(error), refusals.first]))
            raise StatementError(words) from error

    def score(self, name: str, statement: str, seconds: float = SECONDS_PER_VERIFIER) -> Score:
        """Run a verifier's statement and return its score: a number in 0..1, or a cause.

        Args:
            name: The key in ``rewards``.
            statement: One SQL statement that answers one row of one column.
            seconds: How long it may compute; see ``BUSY_FACTOR``.
        """
        if WALL_CLOCK.search(statement):
            return failed(name, _ASKS_THE_TIME)
        clock, refusals = _Clock(seconds), _Refusals(self._tables, self._modules)
        self._database.set_progress_handler(clock, _STEPS_BETWEEN_LOOKS)
        self._database.set_authorizer(refusals)
        try:
            with closing(self._database.execute(statement)) as cursor:
                if cursor.description is None:
                    return failed(name, "the file holds no statement that answers")
                return score_of(name, len(cursor.description), cursor.fetchmany(2))
        except MemoryError:
            return failed(name, "out of memory")
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            if clock.expired:
                return timed_out(name, seconds)
            return failed(name, "; ".join(filter(None, [str(error), refusals.first])))


@contextmanager
def opened(
    path: Path,
    entities: Sequence[Entity],
    session: SessionFacts,
    seconds: float = SECONDS_PER_VERIFIER,
) -> Iterator[EndState]:
    """Copy the rows of the declared entities out of an SQLite file, for grading.

    The file is opened read-only and immutable: not even a lock or a journal is written beside it.

    Raises:
        StateError: If the file is no database, a declared table or column is not in it as such,
            its rows do not fit the schema, or copying takes too long.
    """
    with closing(_connect()) as database:
        clock = _Clock(seconds)
        database.set_progress_handler(clock, _STEPS_BETWEEN_LOOKS)
        try:
            _copy(database, path, entities)
        except (sqlite3.Error, MemoryError) as error:
            words = f"copying took longer than {seconds:g} s" if clock.expired else str(error)
            words = words or "out of memory"
            raise StateError(f"the end state cannot be read: {words}") from error
        _add_session(database, session)
        tables = frozenset(entity.name.lower() for entity in entities) | {SESSION_TABLE}
        _close_down(database, tables)
        yield EndState(database, tables | TABLE_FUNCTIONS)


def _connect() -> sqlite3.Connection:
    database = sqlite3.connect("file::memory:", uri=True, isolation_level=None)
    # Text that is no UTF-8 must not raise: it is a RewardInvalid as any text is.
    database.text_factory = lambda raw: raw.decode(errors="replace")
    if sys.version_info >= (3, 12):
        database.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        database.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        database.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)
    for pragma in (
        "cell_size_check = ON",
        "temp_store = MEMORY",
        "foreign_keys = OFF",
        "ignore_check_constraints = ON",
    ):
        database.execute(f"PRAGMA {pragma}")
    return database


def _copy(database: sqlite3.Connection, path: Path, entities: Sequence[Entity]) -> None:
    """Build the declared tables and fill them from the file, which stays attached for no longer."""
    for entity in entities:
        database.execute(definition(entity))
    # Not before: to SQLite 3.40 the CHECK (json_valid(...)) of our own tables is unsafe.
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("ATTACH ? AS state", (f"file:{quote(str(path))}?mode=ro&immutable=1",))
    for entity in entities:
        _require_table(database, entity)
        # A bare name in quotes would be text if the column is missing: so the table goes before it.
        names = ["rowid", *(quoted(field.name) for field in entity.fields)]
        values = ", ".join(f"t.{name}" for name in names)
        table = quoted(entity.name)
        database.set_authorizer(_CopyGuard(entity.name))
        # NOT INDEXED: an index in the file may disagree with its table.
        database.execute(
            f"INSERT INTO main.{table} ({', '.join(names)}) "  # noqa: S608 - the schema's names, quoted
            f"SELECT {values} FROM state.{table} AS t NOT INDEXED"
        )
        database.set_authorizer(None)
    database.execute("DETACH state")


class _CopyGuard:
    """Lets rows flow from one table of the file into the copy, and nothing that hides behind it.

    The fifth argument names the view or trigger that wants something: then the answer is no, as it
    is to any function and any other table.
    """

    def __init__(self, table: str) -> None:
        self._table = table.lower()

    def __call__(
        self, action: int, first: str | None, _: str | None, schema: str | None, inner: str | None
    ) -> int:
        reads = action == sqlite3.SQLITE_READ and schema == "state"
        inserts = action == sqlite3.SQLITE_INSERT and schema == "main"
        if inner is None and action == sqlite3.SQLITE_SELECT:
            return sqlite3.SQLITE_OK
        if inner is None and (reads or inserts) and (first or "").lower() == self._table:
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY


def _require_table(database: sqlite3.Connection, entity: Entity) -> None:
    """Raise unless the file has the entity's table, word by word as a session makes it."""
    found = database.execute(
        "SELECT type, rootpage > 0, sql FROM state.sqlite_master WHERE name = ?", (entity.name,)
    ).fetchall()
    if found != [("table", 1, definition(entity))]:
        raise sqlite3.DataError(f"it has no table {entity.name!r} as the schema declares it")


def _add_session(database: sqlite3.Connection, session: SessionFacts) -> None:
    database.execute(
        f"CREATE TABLE {SESSION_TABLE} (task TEXT, final_answer TEXT, calls INTEGER, end TEXT)"
    )
    database.execute(
        f"INSERT INTO {SESSION_TABLE} VALUES (?, ?, ?, ?)",  # noqa: S608 - a constant
        (session.task, session.final_answer, session.calls, session.end),
    )


def _close_down(database: sqlite3.Connection, tables: frozenset[str]) -> None:
    for function in sorted(TABLE_FUNCTIONS - tables):
        # Known from here on: a first use declares them by a write that the authorizer refuses.
        database.execute(f"SELECT 1 FROM {function}('[]')").fetchall()  # noqa: S608 - constants
    database.execute("PRAGMA query_only = ON")
    for limit, value in LIMITS.items():
        database.setlimit(limit, value)


def score_of(name: str, columns: int, rows: Sequence[Sequence[SqlValue]]) -> Score:
    """Return the score that an answer means; nothing is rounded, converted or clipped.

    Args:
        name: The key in ``rewards``.
        columns: How many the answer has.
        rows: Its first two rows: the second one only shows that there are several.
    """
    if columns != 1:
        return invalid(name, f"{columns} columns, not one: {shown(rows)}")
    if not rows:
        return missing(name, "the statement answered no row")
    if len(rows) > 1:
        return invalid(name, f"several rows, not one: {shown([row[0] for row in rows])}, ...")
    value = rows[0][0]
    if value is None:
        return missing(name, "the statement answered NULL")
    if not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        return invalid(name, f"not a number in 0..1: {shown(value)}")
    return Score(name=name, value=float(value))


def failed(name: str, words: str) -> Score:
    """Return the score of a verifier that could not run."""
    return _unscored(name, Cause.VERIFIER_FAILED, words)


def timed_out(name: str, seconds: float) -> Score:
    """Return the score of a verifier that was ended by its time limit."""
    return _unscored(name, Cause.VERIFIER_TIMEOUT, f"no answer within {seconds:g} s")


def missing(name: str, words: str) -> Score:
    """Return the score of a verifier that answered nothing."""
    return _unscored(name, Cause.REWARD_MISSING, words)


def invalid(name: str, words: str) -> Score:
    """Return the score of a verifier whose answer is no number in 0..1."""
    return _unscored(name, Cause.REWARD_INVALID, words)


def _unscored(name: str, cause: Cause, words: str) -> Score:
    return Score(name=name, value=None, cause=cause, message=printable(words, _MESSAGE))


def shown(value: object) -> str:
    """Return a value as Python writes it, shortened in the middle when it is long."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:150]}...{text[-40:]}"


def printable(text: str, limit: int) -> str:
    r"""Return text without control characters and at most ``limit`` long, for logs and terminals.

    >>> printable("a\x1b[2Jb", 20)
    'a\\x1b[2Jb'
    """
    clean = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return clean if len(clean) <= limit else f"{clean[: limit - 3]}..."
