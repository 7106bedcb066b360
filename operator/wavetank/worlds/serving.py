"""Serving an application until it is told to stop, with the signals in our hands, not uvicorn's."""

import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

_SHUTDOWN_SECONDS = 1
"""For answers under way; when a world stops there is nobody left who may act."""
_CONNECTIONS = 128
"""At once; each may bring a body of 1 MiB, and the container's memory is limited."""
_KEEP_ALIVE_SECONDS = 120
"""An agent thinks for a while between two calls; its connection should be there then."""


class Server(uvicorn.Server):
    """Serves on one socket and leaves signals alone; set ``should_exit`` to end it."""

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        """Listen; requests wait until ``run_until_told`` takes them.

        Raises:
            OSError: When the port is taken.
        """
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http="h11",
                ws="none",
                access_log=False,
                log_config=None,
                server_header=False,
                limit_concurrency=_CONNECTIONS,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            )
        )
        self._socket = socket.create_server((host, port))
        # asyncio sets it on sockets that it makes itself. Without it an answer of two packets waits
        # 40 ms for the client's delayed acknowledgement. Inherited by accepted connections.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.url = f"http://{host}:{self._socket.getsockname()[1]}"

    async def run_until_told(self) -> None:
        """Serve until ``should_exit``."""
        await self.serve(sockets=[self._socket])

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none: SIGTERM has to seal the session first."""
        yield
