"""Tells the kubelet and Prometheus how the operator fares.

``/healthz`` fails when waiting will not mend it and a restart may: a watch that heard nothing for
too long, a look that never ends. ``/readyz`` fails until the first lists are in. A blocked event
loop answers neither, which fails both.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

Complaints = Callable[[], Sequence[str]]
"""Returns what is wrong, one sentence each; nothing when all is well."""


@asynccontextmanager
async def serve(
    port: int, *, healthy: Complaints, ready: Complaints, metrics: Callable[[], bytes]
) -> AsyncIterator[int]:
    """Serve /healthz, /readyz and /metrics while the block runs, and give the port.

    Args:
        port: 0 takes a free one.
        healthy: What a restart may mend.
        ready: What is still missing.
        metrics: Prometheus' text format.
    """

    async def exposition(_: web.Request) -> web.Response:
        return web.Response(
            body=metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    application = web.Application()
    application.router.add_get("/healthz", _probe(healthy))
    application.router.add_get("/readyz", _probe(ready))
    application.router.add_get("/metrics", exposition)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        # All interfaces: the kubelet probes the Pod's address.
        site = web.TCPSite(runner, "0.0.0.0", port)  # noqa: S104
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def _probe(complaints: Complaints) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        found = complaints()
        return web.Response(status=503 if found else 200, text="\n".join(found or ["ok"]) + "\n")

    return answer
