"""One session: its state, its calls one after another, and its record."""

import asyncio
import inspect
import json
import random
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

import pydantic
import pydantic_core

from wavetank.bundles.world import JsonValue, ReadWorld, Task
from wavetank.worlds import database
from wavetank.worlds.boundary import Escaped, Returned, guarded_async
from wavetank.worlds.errors import ConstraintError, SessionEnded, ToolError
from wavetank.worlds.schemas import problems
from wavetank.worlds.tools import Tool, Toolset
from wavetank.worlds.trajectory import Trajectory
from wavetank.worlds.worker import Worker
from wavetank.worlds.world import SessionClock, World

Clock = Callable[[], datetime]
"""Gives the moment, UTC."""

_LAST_CALL_SECONDS = 2.0
"""How long the call that runs when a session ends may go on; then it is taken back."""
_JOIN_SECONDS = 0.5
_MAX_CALLS = 100_000
"""Of one session: an agent that calls in a loop must not fill the disk that its seal needs."""
_RESULT_BYTES = 4 * 1024 * 1024
"""Of one result: more than any model reads, and it is held several times while it is sent."""


class State(StrEnum):
    """Where a session is."""

    READY = "ready"
    """Nobody has started it: no deadline runs, tools refuse."""
    OPEN = "open"
    CLOSED = "closed"


class ErrorKind(StrEnum):
    """Why a call has no result."""

    INVALID_ARGUMENTS = "InvalidArguments"
    UNKNOWN_TOOL = "UnknownTool"
    SESSION_NOT_STARTED = "SessionNotStarted"
    SESSION_CLOSED = "SessionClosed"
    TOOL_ERROR = "ToolError"
    CONSTRAINT_ERROR = "ConstraintError"
    INTERNAL_ERROR = "InternalError"
    TOO_MANY_CALLS = "TooManyCalls"


@dataclass(frozen=True)
class CallError:
    """What the agent is told when a call has no result. Nothing changed."""

    kind: ErrorKind
    message: str
    details: JsonValue = field(default_factory=list)
    traceback: str | None = None
    """For the record only."""


@dataclass(frozen=True)
class CallResult:
    """What a tool returned, as JSON."""

    value: JsonValue


Outcome = CallResult | CallError


@dataclass(frozen=True)
class Opening:
    """What a session is opened on; the world has no fault."""

    read: ReadWorld
    task: Task
    toolset: Toolset
    seed: int
    deadline_seconds: int | None = None
    """From the start; None without a deadline, when serving by hand."""


class Session:
    """Runs the calls of one agent on one task, one after another."""

    def __init__(self, opening: Opening, folder: Path, clock: Clock) -> None:
        """Load the seed rows.

        Args:
            opening: What to serve.
            folder: Where the trajectory is written.
            clock: Gives the moment, UTC; tools see the session's own time instead.
        """
        self.opening = replace(opening, read=_without_rows(opening.read))
        self.state = State.READY
        self.started_at: datetime | None = None
        self.stopped_at: datetime | None = None
        self.deadline: datetime | None = None
        self.trajectory = Trajectory(folder / "trajectory.jsonl")
        self._clock = clock
        self._databases = database.create(opening.read.worlds)
        self._world_clock = SessionClock(opening.read.main.now)
        self._random = random.Random(opening.seed)  # noqa: S311 - must be repeatable
        self._worker = Worker()
        self._gate = asyncio.Lock()
        self._cut = asyncio.Event()
        self._running: set[asyncio.Task[Outcome]] = set()

    @property
    def world_now(self) -> datetime:
        """What tools will see as the time at their next look."""
        return self._world_clock.peek()

    def start(self) -> None:
        """Start the clock of a session that is ready; do nothing when it is open or closed."""
        if self.state is State.READY:
            self.state = State.OPEN
            self.started_at = self._clock()
            seconds = self.opening.deadline_seconds
            self.deadline = self.started_at + timedelta(seconds=seconds) if seconds else None

    async def call(self, name: str, arguments: Mapping[str, JsonValue]) -> Outcome:
        """Run a tool in a transaction of its own and record it, whoever still waits for it."""
        task = asyncio.create_task(self._call(name, arguments))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def stop(self) -> None:
        """Refuse calls from now on; a call that still runs gets a moment, then is taken back."""
        if self.state is not State.CLOSED:
            self.state = State.CLOSED
            self.stopped_at = self._clock()
        if self._gate.locked():
            asyncio.get_running_loop().call_later(_LAST_CALL_SECONDS, self._cut.set)
        async with self._gate:
            await asyncio.to_thread(self._databases.end)
        self._worker.stop()
        await asyncio.to_thread(self._worker.join, _JOIN_SECONDS)

    def dump(self, folder: Path) -> None:
        """Write the committed state of all worlds as SQLite files."""
        self._databases.dump(folder)

    async def dump_between_calls(self, folder: Path) -> None:
        """Write ``worlds/`` and ``trajectory.jsonl`` while the session goes on."""
        async with self._gate:
            await asyncio.to_thread(self.dump, folder / "worlds")
            await asyncio.to_thread(shutil.copy, self.trajectory.path, folder)

    async def _call(self, name: str, arguments: Mapping[str, JsonValue]) -> Outcome:
        async with self._gate:
            if self.state is not State.OPEN:
                return _refused(self.state)
            if self.trajectory.calls >= _MAX_CALLS:
                return CallError(
                    ErrorKind.TOO_MANY_CALLS, f"a session has at most {_MAX_CALLS} calls."
                )
            moment, began = self._clock(), time.perf_counter()
            outcome = await self._outcome(name, arguments)
            self.trajectory.add(
                {
                    "at": wire_time(moment),
                    "tool": name,
                    "arguments": arguments,
                    "seconds": round(time.perf_counter() - began, 6),
                    **_recorded(outcome),
                }
            )
            return outcome

    async def _outcome(self, name: str, arguments: Mapping[str, JsonValue]) -> Outcome:
        tools = self.opening.toolset.tools
        tool = tools.get(name)
        if tool is None:
            message = f"no tool is named {name[:80]!r}. Name one of: {', '.join(tools)}."
            return CallError(ErrorKind.UNKNOWN_TOOL, message, list(tools))
        try:
            values = tool.arguments.validated(arguments)
        except pydantic.ValidationError as error:
            found = problems(error)
            text = "; ".join(f"{each['path'] or 'arguments'}: {each['message']}" for each in found)
            return CallError(ErrorKind.INVALID_ARGUMENTS, text, cast("JsonValue", found))
        work = asyncio.wrap_future(self._worker.submit(self._transact(tool, values)))
        cut = asyncio.ensure_future(self._cut.wait())
        either: set[asyncio.Future[Any]] = {work, cut}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        cut.cancel()
        if work.done():
            return work.result()
        await asyncio.to_thread(self._databases.end)
        return _refused(State.CLOSED)

    async def _transact(self, tool: Tool, arguments: Mapping[str, object]) -> Outcome:
        """Run a tool and keep what it did, or nothing of it. Runs in the worker's thread."""
        transaction = self._databases.begin()
        world = World(self.opening.read, transaction, self._world_clock, self._random, tool.alias)

        async def run() -> JsonValue:
            returned = tool.function(world, **arguments)
            value = _as_json(await returned if inspect.isawaitable(returned) else returned)
            transaction.commit()
            return value

        outcome = await guarded_async(run)
        if isinstance(outcome, Returned):
            return CallResult(outcome.value)
        transaction.rollback()
        return _told(outcome)


def wire_time(moment: datetime) -> str:
    """Return a UTC moment as RFC 3339 with milliseconds."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _without_rows(read: ReadWorld) -> ReadWorld:
    """Return a world without the seed rows, which are in the database now: they may be large."""
    linked = {alias: replace(world, rows={}) for alias, world in read.linked.items()}
    return replace(read, main=replace(read.main, rows={}), linked=linked)


def _as_json(value: object) -> JsonValue:
    plain = pydantic_core.to_jsonable_python(value)
    # NaN, Infinity and lone surrogates are no JSON: the agent would get what nobody can parse.
    size = len(json.dumps(plain, allow_nan=False, ensure_ascii=False).encode())
    if size > _RESULT_BYTES:
        raise ToolError(f"the result has {size} bytes; at most {_RESULT_BYTES} are sent.")
    return cast("JsonValue", plain)


def _told(escaped: Escaped) -> CallError:
    error = escaped.error
    if isinstance(error, ConstraintError):
        details: JsonValue = {
            "entity": error.entity,
            "field": error.field,
            "value": cast(
                "JsonValue", pydantic_core.to_jsonable_python(error.value, fallback=repr)
            ),
        }
        return CallError(ErrorKind.CONSTRAINT_ERROR, str(error), details)
    if isinstance(error, ToolError):
        return CallError(ErrorKind.TOOL_ERROR, str(error))
    if isinstance(error, SessionEnded):
        return _refused(State.CLOSED)
    # What went wrong inside is the author's affair, and may tell the agent how it is graded.
    return CallError(ErrorKind.INTERNAL_ERROR, "internal error", traceback=escaped.whole)


def _refused(state: State) -> CallError:
    if state is State.READY:
        return CallError(
            ErrorKind.SESSION_NOT_STARTED, "the session is not started. POST /v1/start first."
        )
    return CallError(ErrorKind.SESSION_CLOSED, "the session is closed: nothing can be changed now.")


def _recorded(outcome: Outcome) -> dict[str, JsonValue]:
    if isinstance(outcome, CallResult):
        return {"result": outcome.value}
    error: JsonValue = {
        "type": outcome.kind,
        "message": outcome.message,
        "details": outcome.details,
    }
    return (
        {"error": error}
        if outcome.traceback is None
        else {"error": error, "traceback": outcome.traceback}
    )
