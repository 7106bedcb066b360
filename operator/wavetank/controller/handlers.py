"""kopf at its thinnest: it watches our three kinds and hands over every event, nothing else.

Only ``on.event`` handlers: they add no annotation and no finalizer, and kopf makes no write. Full
group, version and plural, since ``runs`` is a common word in a cluster. kopf stays replaceable.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import kopf

from wavetank.kube.connection import Connection
from wavetank.kube.objects import OWN_KINDS, Manifest, Resource

OnEvent = Callable[[Resource, str | None, Manifest], None]
"""Told of every event: the kind, its type (None when listed) and the object. Must not block."""


async def watch_own_kinds(
    connection: Connection,
    namespace: str | None,
    on_event: OnEvent,
    *,
    ready: asyncio.Event,
    stop: asyncio.Event,
) -> None:
    """Run kopf until ``stop`` is set.

    It takes over SIGTERM and SIGINT before it sets ``ready``: who wants them back takes them then.

    Args:
        connection: Where the API server is, and who asks.
        namespace: The one namespace to watch; None means all.
        on_event: Where events go.
        ready: Set once kopf has started.
        stop: Ends it.
    """
    await kopf.operator(
        registry=_registry(connection, on_event),
        settings=_settings(),
        standalone=True,  # no peering: a second operator is safe by names, UIDs and versions
        clusterwide=namespace is None,
        namespaces=[] if namespace is None else [namespace],
        ready_flag=ready,
        stop_flag=stop,
    )


def _registry(connection: Connection, on_event: OnEvent) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        # Called again after each 401, so that a rotated token is found.
        await connection.renew()
        known = await connection.credentials()
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

    for resource in OWN_KINDS:
        _register(registry, resource, on_event)
    return registry


def _register(registry: kopf.OperatorRegistry, resource: Resource, on_event: OnEvent) -> None:
    @kopf.on.event(
        resource.group,
        resource.version,
        resource.plural,
        id=f"enqueue-{resource.plural}",
        registry=registry,
    )
    async def enqueue(event: kopf.RawEvent, **_: Any) -> None:
        on_event(resource, event["type"], dict(event["object"]))


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
