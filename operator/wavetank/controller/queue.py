"""Decides when each object is looked at: one look at a time per key, never two for one reason.

Events, resyncs and reconcilers' own wishes only say *that* a key should be looked at, and by when.
The queue keeps the earliest of these moments, spaces looks at one key by ``min_interval_seconds``
(so that a burst of events costs one look), and after a failed look waits, longer each time.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from random import random
from typing import Protocol

from wavetank.controller.logs import get_logger
from wavetank.core.errors import BugError, ClusterError, SpecError
from wavetank.kube.rate import Backoff

_log = get_logger(__name__)

_TICK_SECONDS = 1e-9
"""A wait below the clock's own grain is none: sums of floats come out that much too late, and no
clock can be waited on for it."""


@dataclass(frozen=True, order=True)
class Key:
    """One object of ours."""

    kind: str
    """``World``, ``Benchmark`` or ``Run``."""
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


Reconciler = Callable[[Key], Awaitable[float | None]]
"""Looks at one object and does what is needed.

Returns in how many seconds to look again at the latest; None when only an event or the resync
should bring it back. Raises ClusterError when the surroundings failed: the look is repeated after
its ``retry_after_seconds`` or a growing delay, whichever is later.
"""


class Result(StrEnum):
    """How a look ended; a label of metrics."""

    DONE = "done"
    RETRY = "retry"
    """The cluster's fault."""
    ERROR = "error"
    """Anything else: a bug, or a spec error that the reconciler let escape."""


class QueueObserver(Protocol):
    """Where the queue tells how it fares."""

    def waited(self, seconds: float) -> None:
        """A look begins so many seconds after it was due."""

    def looked(self, kind: str, result: Result, seconds: float) -> None:
        """A look ended."""


@dataclass(frozen=True)
class QueueSettings:
    """How many looks at once, and how often at one key."""

    workers: int = 8
    min_interval_seconds: float = 0.5
    """From the start of one look at a key to the start of the next."""
    look_seconds: float = 300.0
    """After so long a look is cancelled and counts as failed."""
    backoff: Backoff = field(default_factory=lambda: Backoff(first_seconds=1, most_seconds=60))


@dataclass
class _Entry:
    """What is known of one key."""

    due: float | None = None
    """When the next look is wanted; None when none is."""
    not_before: float = 0.0
    """No look starts sooner: spacing, or the delay after a failure."""
    failures: int = 0
    """Failed looks in a row."""
    since: float | None = None
    """When the look that is running began."""


class WorkQueue:
    """Keys that wait for a look, and the workers that look. It belongs to one event loop."""

    def __init__(
        self,
        reconcile: Reconciler,
        observer: QueueObserver,
        settings: QueueSettings | None = None,
        draw: Callable[[], float] = random,
    ) -> None:
        self._reconcile = reconcile
        self._observer = observer
        self._settings = settings or QueueSettings()
        self._draw = draw
        self._entries: dict[Key, _Entry] = {}
        self._heap: list[tuple[float, Key]] = []
        self._changed = asyncio.Event()
        self._stopping = False

    def add(self, key: Key) -> None:
        """Ask for a look as soon as spacing and back-off allow."""
        self.add_after(key, 0.0)

    def add_after(self, key: Key, seconds: float) -> None:
        """Ask for a look in so many seconds at the latest; an earlier wish stands."""
        if self._stopping:
            return
        entry = self._entries.setdefault(key, _Entry())
        due = _now() + seconds
        if entry.due is None or due < entry.due:
            entry.due = due
            self._schedule(key, entry)

    @property
    def depth(self) -> int:
        """Return how many keys are due and wait for a worker."""
        now = _now()
        return sum(
            1
            for entry in self._entries.values()
            if entry.since is None
            and entry.due is not None
            and max(entry.due, entry.not_before) <= now
        )

    def longest_look(self) -> float:
        """Return for how many seconds the oldest running look has been running; 0 when none is."""
        now = _now()
        running = [now - e.since for e in self._entries.values() if e.since is not None]
        return max(running, default=0.0)

    async def run(self) -> None:
        """Look at keys until cancelled; :meth:`drain` lets running looks end first."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._settings.workers):
                group.create_task(self._work(), name=f"worker {number}")

    async def drain(self, seconds: float) -> bool:
        """Start no more looks and wait for those that run.

        Returns:
            False if some still ran after so many seconds.
        """
        self._stopping = True
        end = _now() + seconds
        while self.longest_look() > 0 and _now() < end:
            await asyncio.sleep(0.05)
        return self.longest_look() == 0

    def _schedule(self, key: Key, entry: _Entry) -> None:
        if entry.since is None and entry.due is not None:
            heapq.heappush(self._heap, (max(entry.due, entry.not_before), key))
            self._changed.set()

    async def _work(self) -> None:
        while True:
            key, entry, late = await self._next()
            self._observer.waited(late)
            await self._look(key, entry)

    async def _next(self) -> tuple[Key, _Entry, float]:
        """Wait for the next key that is due, and take it."""
        while True:
            wait = self._clear_stale_heads()
            if wait is not None and wait <= _TICK_SECONDS and not self._stopping:
                at, key = heapq.heappop(self._heap)
                entry = self._entries[key]
                now = _now()
                entry.due, entry.since = None, now
                entry.not_before = now + self._settings.min_interval_seconds
                return key, entry, now - at
            self._changed.clear()
            try:
                async with asyncio.timeout(None if self._stopping else wait):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _clear_stale_heads(self) -> float | None:
        """Drop heads that were overtaken; return the seconds until the first real one is due."""
        while self._heap:
            at, key = self._heap[0]
            entry = self._entries.get(key)
            if (
                entry is not None
                and entry.since is None
                and entry.due is not None
                and max(entry.due, entry.not_before) == at
            ):
                return at - _now()
            heapq.heappop(self._heap)
        return None

    async def _look(self, key: Key, entry: _Entry) -> None:
        begun = _now()
        again: float | None = None
        delay: float | None = None
        result = Result.ERROR
        try:
            async with asyncio.timeout(self._settings.look_seconds):
                again = await self._reconcile(key)
            result = Result.DONE
        except asyncio.CancelledError:
            if _is_cancelled_from_outside():
                raise
            # Something within the look was cancelled; the worker must not go with it.
            delay = self._delay(entry, None)
            _log.exception("look failed", key=key, again_seconds=round(delay, 1))
        except ClusterError as error:
            result = Result.RETRY
            delay = self._delay(entry, error.retry_after_seconds)
            _log.warning("look failed", key=key, problem=error, again_seconds=round(delay, 1))
        except (SpecError, BugError, TimeoutError) as error:
            delay = self._delay(entry, None)
            _log.error("look failed", key=key, problem=repr(error), again_seconds=round(delay, 1))
        except Exception:  # noqa: BLE001 - the boundary: one object's bug must not stop the others
            delay = self._delay(entry, None)
            _log.exception("look failed", key=key, again_seconds=round(delay, 1))
        finally:
            self._settle(key, entry, again, delay)
        self._observer.looked(key.kind, result, _now() - begun)

    def _delay(self, entry: _Entry, asked: float | None) -> float:
        entry.failures += 1
        return max(asked or 0.0, self._settings.backoff.delay(entry.failures, self._draw))

    def _settle(self, key: Key, entry: _Entry, again: float | None, delay: float | None) -> None:
        """Put a key back after its look, or forget it."""
        now = _now()
        entry.since = None
        if delay is None:
            entry.failures = 0
            wished = None if again is None else now + again
        else:
            entry.not_before = max(entry.not_before, now + delay)
            wished = entry.not_before
        if wished is not None and (entry.due is None or wished < entry.due):
            entry.due = wished
        self._schedule(key, entry)
        if entry.due is None:
            asyncio.get_running_loop().call_at(entry.not_before, self._forget, key, entry)

    def _forget(self, key: Key, entry: _Entry) -> None:
        """Drop a key that nobody asked for again, once its spacing has passed."""
        if entry.due is None and entry.since is None and self._entries.get(key) is entry:
            del self._entries[key]


def _is_cancelled_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _now() -> float:
    return asyncio.get_running_loop().time()
