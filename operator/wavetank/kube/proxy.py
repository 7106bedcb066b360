"""Reaches a Service through the API server, for people who have a kubeconfig and no route to it.

Used by the command line, to bring bundles to the store and to fetch evidence from it. The API
server strips ``Authorization``, so the store's own token travels in ``X-Wavetank-Token``.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO

import aiohttp

from wavetank.kube.client import Client
from wavetank.kube.errors import Request, error_for, failure_of
from wavetank.kube.objects import SERVICES
from wavetank.kube.transport import answered

TOKEN_HEADER = "X-Wavetank-Token"  # noqa: S105 - a header's name

_PART_BYTES = 256 * 1024


@dataclass(frozen=True)
class Answer:
    """What the Service itself answered; it may be a refusal of its own."""

    status: int
    body: bytes

    @property
    def is_success(self) -> bool:
        """Tell whether the status is below 400."""
        return self.status < HTTPStatus.BAD_REQUEST


@dataclass(frozen=True)
class Download:
    """The head of a Service's answer, and its body as it comes."""

    status: int
    length: int | None
    """Bytes of the body; None when the Service did not say."""
    parts: AsyncIterator[bytes]


class ServiceProxy:
    """One Service, as seen through the API server (``services/proxy``)."""

    def __init__(self, client: Client, namespace: str, service: str, port: int) -> None:
        self._transport = client.transport
        self._where = f"{namespace}/{service}"
        base = SERVICES.path(namespace, f"{service}:{port}", "proxy").replace("%3A", ":")
        self._base = self._transport.connection.server + base

    async def get(self, path: str, token: str) -> Answer:
        """Fetch something small.

        Args:
            path: The Service's own path, from its slash on.
            token: Sent as ``X-Wavetank-Token``.

        Raises:
            NotFound: If the Service is not there.
            Forbidden: If the caller may not use ``services/proxy`` of it.
            Unavailable: If the Service has no ready Pod, or the API server is away.
        """
        async with self.download(path, token) as download:
            return Answer(download.status, b"".join([part async for part in download.parts]))

    async def put(self, path: str, token: str, body: bytes | AsyncIterator[bytes]) -> Answer:
        """Send a body, whole or in parts as it is read; raises as :meth:`get` does."""
        data = BytesIO(body) if isinstance(body, bytes) else body
        request = Request("put", "Service", f"{self._where}{path}")
        response = await self._open(request, "PUT", path, token, data)
        async with response:
            with answered(request):
                return Answer(response.status, await response.read())

    @asynccontextmanager
    async def download(self, path: str, token: str) -> AsyncIterator[Download]:
        """Fetch something large, part by part; raises as :meth:`get` does."""
        request = Request("get", "Service", f"{self._where}{path}")
        response = await self._open(request, "GET", path, token, None)
        async with response:
            parts = _parts_of(request, response)
            yield Download(response.status, response.content_length, parts)

    async def _open(
        self,
        request: Request,
        method: str,
        path: str,
        token: str,
        body: BytesIO | AsyncIterator[bytes] | None,
    ) -> aiohttp.ClientResponse:
        """Send, and return the Service's answer; raise the API server's own refusal."""
        connection = self._transport.connection
        headers = {**await connection.headers(), TOKEN_HEADER: token}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=60)
        with answered(request):
            response = await connection.session().request(
                method, self._base + path, headers=headers, data=body, timeout=timeout
            )
            if response.status < HTTPStatus.BAD_REQUEST:
                return response
            refusal = await response.read()
        if b'"kind":"Status"' in refusal.replace(b" ", b""):
            retry_after = response.headers.get("Retry-After")
            raise error_for(failure_of(request, response.status, refusal, retry_after))
        return response


async def _parts_of(request: Request, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    with answered(request):
        if response.status >= HTTPStatus.BAD_REQUEST:
            yield await response.read()  # was read already, to see whose answer it is
            return
        async for part in response.content.iter_chunked(_PART_BYTES):
            yield part
