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
        async with self._open("PUT", path, token, data) as response:
            return Answer(response.status, await response.read())

    @asynccontextmanager
    async def download(self, path: str, token: str) -> AsyncIterator[Download]:
        """Fetch something large, part by part; raises as :meth:`get` does."""
        async with self._open("GET", path, token, None) as response:
            yield Download(response.status, response.content_length, _parts_of(response))

    @asynccontextmanager
    async def _open(
        self, method: str, path: str, token: str, body: BytesIO | AsyncIterator[bytes] | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        request = Request(method.lower(), "Service", f"{self._where}{path}")
        headers = {**await self._transport.connection.headers(), TOKEN_HEADER: token}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=60)
        with answered(request):
            session = self._transport.connection.session()
            async with session.request(
                method, self._base + path, headers=headers, data=body, timeout=timeout
            ) as response:
                await _refuse_if_not_from_the_service(request, response)
                yield response


async def _parts_of(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    if response.status >= HTTPStatus.BAD_REQUEST:
        yield await response.read()  # was read already, to see whose answer it is
        return
    async for part in response.content.iter_chunked(_PART_BYTES):
        yield part


async def _refuse_if_not_from_the_service(
    request: Request, response: aiohttp.ClientResponse
) -> None:
    """Raise when the API server answered in the Service's place (a Status object)."""
    if response.status < HTTPStatus.BAD_REQUEST:
        return
    body = await response.read()
    if b'"kind":"Status"' in body.replace(b" ", b""):
        retry_after = response.headers.get("Retry-After")
        raise error_for(failure_of(request, response.status, body, retry_after))
