"""An API server that answers what a test tells it to: for faults that a real one rarely shows."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Asked:
    """One request that came."""

    method: str
    path: str
    query: dict[str, str]
    authorization: str
    body: bytes


@dataclass
class ScriptedApiServer:
    """Gives its answers in turn; when they are used up, what ``otherwise`` says, or 500."""

    url: str
    answers: list[Answer] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    otherwise: Callable[[web.Request], Answer] | None = None

    def will(self, *answers: Answer) -> None:
        """Add answers."""
        self.answers += answers

    def kubeconfig(self, folder: Path) -> Path:
        """Write a kubeconfig that leads here, with a token."""
        path = folder / "kubeconfig"
        path.write_text(
            json.dumps(
                {
                    "current-context": "test",
                    "clusters": [{"name": "test", "cluster": {"server": self.url}}],
                    "users": [{"name": "test", "user": {"token": "made-up"}}],
                    "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
                }
            )
        )
        return path


@asynccontextmanager
async def scripted_api_server() -> AsyncIterator[ScriptedApiServer]:
    """Serve on a free port of this machine while the block runs."""
    server = ScriptedApiServer(url="")

    async def handle(request: web.Request) -> web.StreamResponse:
        server.asked.append(
            Asked(
                request.method,
                request.path,
                dict(request.query),
                request.headers.get("Authorization", ""),
                await request.read(),
            )
        )
        if server.answers:
            answer = server.answers.pop(0)
        elif server.otherwise is not None:
            answer = server.otherwise(request)
        else:
            answer = refuses(500, "Unscripted")
        return await answer(request)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def gives(body: dict[str, Any], status: int = 200) -> Answer:
    """Answer with a JSON object."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=status)

    return answer


def gives_text(text: str, status: int) -> Answer:
    """Answer as a proxy in between does, with anything but JSON."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text=text, status=status)

    return answer


def refuses(status: int, reason: str, *, retry_after: str | None = None) -> Answer:
    """Answer with a Status object."""
    body = {"kind": "Status", "code": status, "reason": reason, "message": f"words of {reason}"}

    async def answer(_: web.Request) -> web.StreamResponse:
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        return web.json_response(body, status=status, headers=headers)

    return answer


def breaks_off() -> Answer:
    """Promise a body and cut the connection within it."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"kind":')
        if request.transport is not None:
            request.transport.abort()
        return response

    return answer


def hangs() -> Answer:
    """Never answer."""

    async def answer(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    return answer


def streams(events: Sequence[dict[str, Any]], *, then: str = "end", tail: bytes = b"") -> Answer:
    """Send watch events, one a line.

    Args:
        events: The events.
        then: ``end`` the answer, ``cut`` the connection, or ``freeze``.
        tail: Bytes after the last event, for instance half a line.
    """

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for event in events:
            await response.write(json.dumps(event).encode() + b"\n")
        if tail:
            await response.write(tail)
        if then == "freeze":
            await asyncio.Event().wait()
        if then == "cut" and request.transport is not None:
            request.transport.abort()
        return response

    return answer
