"""One line per request, ``key=value``, without query, headers or token."""

import json
import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger("wavetank.store.access")
_QUIET = {"/healthz", "/readyz"}
"""Asked every few seconds by the kubelet; logged only when they do not answer 200."""


class AccessLog:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and log what became of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0
        taken = 0
        given = 0
        began = time.monotonic()

        async def counted_receive() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            return message

        async def counted_send(message: Message) -> None:
            nonlocal status, given
            status = message.get("status", status)
            given += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, counted_receive, counted_send)
        finally:
            path = scope["path"]
            if path not in _QUIET or status != 200:
                # A path is whatever the sender wrote: quoted, it stays on one line.
                _log.info(
                    "request method=%s path=%s status=%s received=%d sent=%d seconds=%.3f peer=%s",
                    scope["method"],
                    json.dumps(path[:300]),
                    status or "cut",
                    taken,
                    given,
                    time.monotonic() - began,
                    (scope.get("client") or ["?"])[0],
                )
