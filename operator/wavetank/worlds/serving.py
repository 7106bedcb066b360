"""Serving an application until it is told to stop, with the signals in our hands, not uvicorn's."""

import contextlib
from collections.abc import Iterator

import uvicorn
from starlette.applications import Starlette

_SHUTDOWN_SECONDS = 1
"""For answers under way; when a world stops there is nobody left who may act."""
_KEEP_ALIVE_SECONDS = 120
"""An agent thinks for a while between two calls; its connection should be there then."""


class Server(uvicorn.Server):
    """A server that leaves signals alone; set ``should_exit`` to end it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none: SIGTERM has to seal the session first."""
        yield

    @property
    def port(self) -> int:
        """The port that is listened on; known once ``started``."""
        port: int = self.servers[0].sockets[0].getsockname()[1]
        return port


def make_server(app: Starlette, host: str, port: int) -> Server:
    """Return a server; its ``serve()`` runs until ``should_exit``."""
    return Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            loop="asyncio",
            http="h11",
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
    )
