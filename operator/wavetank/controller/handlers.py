"""kopf at its thinnest: it watches our three kinds and hands over every event, nothing else.

Only ``on.event`` handlers: they add no annotation and no finalizer, and kopf makes no write. Full
group, version and plural, since ``runs`` is a common word in a cluster.

kopf runs in a thread with an event loop of its own: it takes over signals of the main thread, ends
altogether when one of its watches meets an error that it does not know, and at its end cancels
every younger task of its loop. Here it takes nothing with it and is started again.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import kopf

from wavetank.controller.logs import get_logger
from wavetank.kube.connection import Connection, Credentials
from wavetank.kube.objects import OWN_KINDS, Manifest, Resource
from wavetank.kube.rate import Backoff

_log = get_logger(__name__)

OnEvent = Callable[[Resource, str | None, Manifest], None]
"""Told of every event: the kind, its type (None when listed) and the object. Must not block."""

_BACKOFF = Backoff(first_seconds=1.0, most_seconds=60.0)

_LONG_SECONDS = 300.0
"""Who ran for so long has not failed in a row."""

_END_SECONDS = 10.0
"""kopf needs a second or so to end; its thread does not keep the process alive."""


async def watch_own_kinds(
    connection: Connection, namespace: str | None, on_event: OnEvent, ready: asyncio.Event
) -> None:
    """Run kopf until cancelled, and start it again when it ends by itself.

    Args:
        connection: Where the API server is, and who asks.
        namespace: The one namespace to watch; None means all.
        on_event: Where events go, in the caller's event loop.
        ready: Set once kopf has started.
    """
    now = asyncio.get_running_loop().time
    failures = 0
    while True:
        begun = now()
        problem = await _Kopf(connection, namespace, on_event, ready).run()
        failures = 1 if now() - begun > _LONG_SECONDS else failures + 1
        delay = _BACKOFF.delay(failures)
        _log.error("kopf ended", problem=repr(problem), again_seconds=round(delay, 1))
        await asyncio.sleep(delay)


class _Kopf:
    """One start of kopf, in its thread."""

    def __init__(
        self,
        connection: Connection,
        namespace: str | None,
        on_event: OnEvent,
        ready: asyncio.Event,
    ) -> None:
        self._connection = connection
        self._namespace = namespace
        self._on_event = on_event
        self._ready = ready
        self._main = asyncio.get_running_loop()
        self._ended: asyncio.Future[BaseException | None] = self._main.create_future()
        self._stop: Callable[[], object] = lambda: None

    async def run(self) -> BaseException | None:
        """Run to the end, and return what it ended by; stop it when cancelled."""
        threading.Thread(target=self._thread, name="kopf", daemon=True).start()
        try:
            return await asyncio.shield(self._ended)
        except asyncio.CancelledError:
            self._stop()
            await asyncio.wait([self._ended], timeout=_END_SECONDS)
            raise

    def _thread(self) -> None:
        problem: BaseException | None = None
        try:
            asyncio.run(self._operate())
        except BaseException as error:  # noqa: BLE001 - the end of a thread: passed on, not hidden
            problem = error
        try:
            self._main.call_soon_threadsafe(self._ended.set_result, problem)
        except RuntimeError:
            return  # the process has ended without waiting

    async def _operate(self) -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        self._stop = lambda: loop.call_soon_threadsafe(stop.set)
        # It warns at each start that signals are not its own here, which is the point.
        logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
        await kopf.operator(
            registry=self._registry(),
            settings=_settings(),
            standalone=True,  # no peering: a second operator is safe by names, UIDs and versions
            # Of no use without peering, but else kopf asks for the user's name, and a Pod's user ID
            # need not have one. The type is a str that kopf does not export.
            identity="wavetank",  # type: ignore[arg-type]
            clusterwide=self._namespace is None,
            namespaces=[] if self._namespace is None else [self._namespace],
            stop_flag=stop,
        )

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        @kopf.on.startup(registry=registry)
        async def started(**_: Any) -> None:
            self._main.call_soon_threadsafe(self._ready.set)

        @kopf.on.login(registry=registry)
        async def login(**_: Any) -> kopf.ConnectionInfo:
            asked = asyncio.run_coroutine_threadsafe(self._credentials(), self._main)
            return _connection_info(await asyncio.wrap_future(asked))

        for resource in OWN_KINDS:
            self._register(registry, resource)
        return registry

    def _register(self, registry: kopf.OperatorRegistry, resource: Resource) -> None:
        @kopf.on.event(
            resource.group,
            resource.version,
            resource.plural,
            id=f"enqueue-{resource.plural}",
            registry=registry,
        )
        async def enqueue(event: kopf.RawEvent, **_: Any) -> None:
            item = dict(event["object"])
            self._main.call_soon_threadsafe(self._on_event, resource, event["type"], item)

    async def _credentials(self) -> Credentials:
        # Asked for again after each 401, so that a rotated token is found.
        await self._connection.renew()
        return await self._connection.credentials()


def _connection_info(known: Credentials) -> kopf.ConnectionInfo:
    return kopf.ConnectionInfo(
        server=known.server,
        ca_path=known.ca_file,
        insecure=not known.verify,
        username=known.username,
        password=known.password,
        scheme="Bearer" if known.token else None,
        token=known.token,
        certificate_path=known.certificate_file,
        private_key_path=known.key_file,
        proxy_url=known.proxy,
    )


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    # The kinds are known to be served before kopf starts; scanning would need to list and watch
    # CRDs and namespaces of the whole cluster.
    settings.scanning.disabled = True
    settings.watching.server_timeout = 600
    settings.watching.client_timeout = 660
    settings.watching.connect_timeout = 10
    # The API server bookmarks once a minute; kopf#1267: watches that went silent for good.
    settings.watching.inactivity_timeout = 70
    settings.watching.chunk_size = 500
    settings.networking.connect_timeout = 10
    settings.networking.request_timeout = 30
    settings.queueing.worker_limit = 100
    return settings
