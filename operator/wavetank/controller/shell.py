"""Holds the operator together: client, watches, queue, resync, kopf, health; starts and stops them.

What is decided about an object is not here: reconcilers are passed in.
"""

import asyncio
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime

from wavetank.controller import health
from wavetank.controller.events import EventPoster
from wavetank.controller.handlers import watch_own_kinds
from wavetank.controller.logs import get_logger
from wavetank.controller.metrics import Metrics
from wavetank.controller.queue import Key, QueueSettings, Reconciler, WorkQueue
from wavetank.controller.resync import Resync
from wavetank.controller.routing import key_of
from wavetank.controller.settings import Settings
from wavetank.core.errors import BugError, ClusterError
from wavetank.kube.client import Client, open_client
from wavetank.kube.objects import JOBS, MANAGED, OWN_KINDS, PODS, Manifest, Resource
from wavetank.kube.transport import ClientSettings
from wavetank.kube.watch import Change, Watch

_log = get_logger(__name__)

Clock = Callable[[], datetime]

_DRAIN_SECONDS = 15.0
"""Looks that run get so long to end; with kopf's seconds it stays under a Pod's grace of 30."""

_STUCK_SECONDS = 600.0
"""A look is cancelled long before; one that runs on ignores even that."""

_POLL_SECONDS = 5.0
"""How often it is asked whether the kinds are served yet."""


@dataclass(frozen=True)
class Shell:
    """What reconcilers work with."""

    settings: Settings
    client: Client
    metrics: Metrics
    events: EventPoster
    clock: Clock
    """This machine's; for what only this process compares."""
    now: Callable[[], float]
    """The moment on the API server's clock, in seconds: by it objects' moments are judged."""
    pods: Watch
    """All Pods that the operator made, as the watch last told."""
    jobs: Watch
    """All Jobs that the operator made, as the watch last told."""
    enqueue: Callable[[Key, float], None]
    """Ask for a look at a key in so many seconds at the latest."""


MakeReconcilers = Callable[[Shell], Mapping[str, Reconciler]]
"""Makes the reconcilers, by kind: ``World``, ``Benchmark``, ``Run``."""


async def run_operator(
    settings: Settings,
    make_reconcilers: MakeReconcilers,
    clock: Clock,
    stop: asyncio.Event | None = None,
) -> None:
    """Run the operator until SIGTERM, SIGINT or ``stop``; looks that run may end.

    Args:
        settings: From the environment.
        make_reconcilers: Called once, when the watches have begun.
        clock: Gives the moment, with its time zone.
        stop: Another way to end it.

    Raises:
        ClusterError: If neither kubeconfig nor service account can be read.
    """
    operator = _Operator(settings, clock, stop or asyncio.Event())
    await operator.run(make_reconcilers)


class _Operator:
    """The parts of one running operator."""

    def __init__(self, settings: Settings, clock: Clock, stop: asyncio.Event) -> None:
        self._settings = settings
        self._clock = clock
        self._stop = stop
        self._metrics = Metrics(settings.version)
        self._missing: list[str] = ["starting"]
        """What is to come before the operator is ready."""
        self._reconcilers: Mapping[str, Reconciler] = {}

    async def run(self, make_reconcilers: MakeReconcilers) -> None:
        settings = self._settings
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(
                open_client(
                    settings.kubeconfig,
                    ClientSettings(write_rate=settings.write_rate),
                    self._metrics,
                )
            )
            self._assemble(client)
            port = await stack.enter_async_context(
                health.serve(
                    settings.health_port,
                    healthy=self._complaints,
                    ready=lambda: self._missing,
                    metrics=self._metrics.exposition,
                )
            )
            _log.info("operator starts", version=settings.version, health_port=port)
            self._heed_signals()
            if not await self._kinds_are_served(client):
                return
            await self._until_stopped(client, make_reconcilers)
            _log.info("operator stops")

    def _assemble(self, client: Client) -> None:
        settings = self._settings
        self._queue = WorkQueue(self._look, self._metrics, QueueSettings(workers=settings.workers))
        self._resync = Resync(
            client, settings.watch_namespace, self._queue.add_after, self._metrics
        )
        self._jobs = self._watch(client, JOBS)
        self._pods = self._watch(client, PODS)
        self._metrics.read_depth_from(lambda: self._queue.depth)
        self._metrics.read_ages_from(self._ages)

    def _watch(self, client: Client, resource: Resource) -> Watch:
        return Watch(
            client,
            resource,
            self._on_child,
            namespace=self._settings.watch_namespace,
            label_selector=MANAGED,
        )

    def _on_child(self, _: Change, item: Manifest) -> None:
        key = key_of(item, self._jobs.objects)
        if key is not None:
            self._queue.add(key)

    async def _look(self, key: Key) -> float | None:
        reconciler = self._reconcilers.get(key.kind)
        if reconciler is None:
            raise BugError(f"nobody reconciles {key.kind}")
        return await reconciler(key)

    async def _kinds_are_served(self, client: Client) -> bool:
        """Wait until the API server knows our kinds; False when stopped before."""
        for resource in OWN_KINDS:
            while not self._stop.is_set():
                try:
                    await client.list(resource, self._settings.watch_namespace, metadata_only=True)
                    break
                except ClusterError as error:
                    self._missing = [f"{resource.plural}: {error}"]
                    _log.warning(
                        "kind cannot be listed yet; are the CRDs installed, and the role bound?",
                        resource=resource.plural,
                        problem=error,
                    )
                    await _first(self._stop, _POLL_SECONDS)
        return not self._stop.is_set()

    async def _until_stopped(self, client: Client, make_reconcilers: MakeReconcilers) -> None:
        """Start the parts one after another, be ready until stopped, let running looks end."""
        settings = self._settings
        self._missing = ["the first list of Pods and Jobs"]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._jobs.run(), name="watch jobs"),
                group.create_task(self._pods.run(), name="watch pods"),
            ]
            if await self._comes(self._jobs.synced) and await self._comes(self._pods.synced):
                self._reconcilers = make_reconcilers(self._shell(client))
                started = asyncio.Event()
                own_kinds = watch_own_kinds(
                    client.transport.connection,
                    settings.watch_namespace,
                    self._resync.tell,
                    started,
                )
                tasks += [
                    group.create_task(self._queue.run(), name="queue"),
                    group.create_task(self._resync.run(settings.resync_seconds), name="resync"),
                    group.create_task(own_kinds, name="watch own kinds"),
                ]
                if await self._comes(started):
                    self._missing = []
                    _log.info("operator is ready")
                    await self._stop.wait()
            self._missing = ["stopping"]
            if not await self._queue.drain(_DRAIN_SECONDS):
                _log.warning("looks were cut off", seconds=_DRAIN_SECONDS)
            for task in tasks:
                task.cancel()

    async def _comes(self, event: asyncio.Event) -> bool:
        """Wait for an event; False when the operator is stopped first."""
        waits = [asyncio.ensure_future(e.wait()) for e in (event, self._stop)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return not self._stop.is_set()

    def _shell(self, client: Client) -> Shell:
        return Shell(
            settings=self._settings,
            client=client,
            metrics=self._metrics,
            events=EventPoster(client, socket.gethostname(), self._clock),
            clock=self._clock,
            now=lambda: client.server_now() or self._clock().timestamp(),
            pods=self._pods,
            jobs=self._jobs,
            enqueue=self._queue.add_after,
        )

    def _ages(self) -> dict[str, float]:
        return {
            **self._resync.ages(),
            PODS.plural: self._pods.age(),
            JOBS.plural: self._jobs.age(),
        }

    def _complaints(self) -> Sequence[str]:
        if self._missing:
            return []  # a restart does not bring CRDs or the API server
        complaints = [
            f"the watch of {resource} heard nothing for {age:.0f} s"
            for resource, age in self._ages().items()
            if age > self._silence_allowed(resource)
        ]
        look = self._queue.longest_look()
        if look > _STUCK_SECONDS:
            complaints.append(f"a look has been running for {look:.0f} s")
        return [*complaints, *self._resync.complaints()]

    def _silence_allowed(self, resource: str) -> float:
        # Of kopf's watches only events are heard, not bookmarks: in quiet times, the resync's lists.
        is_own = any(kind.plural == resource for kind in OWN_KINDS)
        return self._settings.silence_seconds + (self._settings.resync_seconds if is_own else 0)

    def _heed_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)


async def _first(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, at most so long."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
