"""The same tools by the Model Context Protocol, at ``/mcp``, through the official SDK.

Importing the SDK costs 0.4 s of CPU (measured with the rest of the world loaded; 0.9 s alone), as
much as the whole start of a world, and many agents speak plain HTTP. So it is imported at the first
request to ``/mcp``, in a thread.
"""

import asyncio
import importlib
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from wavetank.worlds.session import Session

if TYPE_CHECKING:
    from wavetank.worlds.mcp_server import McpServer


class McpFace:
    """An ASGI application that becomes the SDK's at its first request."""

    def __init__(self, session: Session, body_bytes: int) -> None:
        self._session = session
        self._body_bytes = body_bytes
        self._starting: asyncio.Task[McpServer] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        server = await asyncio.shield(self._starting)
        await server.handle(scope, receive, send)

    async def aclose(self) -> None:
        """End what the first request started."""
        if self._starting is not None:
            await (await self._starting).aclose()

    async def _start(self) -> "McpServer":
        module = await asyncio.to_thread(importlib.import_module, "wavetank.worlds.mcp_server")
        server: McpServer = module.McpServer(self._session, self._body_bytes)
        await server.start()
        return server
