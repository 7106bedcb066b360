"""Sends requests: who asks, how fast, how often, and what a refusal means.

Used by the client and the watches. Reads are tried again; writes only where the first try cannot
have happened (429, no connection): names, UIDs and resourceVersions make every step of ours safe
to repeat, so the caller's next look does the rest.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import urlencode

import aiohttp

from wavetank.kube.connection import Connection
from wavetank.kube.errors import (
    ApiError,
    Failure,
    Request,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    error_for,
    failure_of,
)
from wavetank.kube.objects import Manifest, Resource
from wavetank.kube.rate import Backoff, TokenBucket
from wavetank.kube.server_clock import ServerClock


class Observer(Protocol):
    """Told of every request."""

    def requested(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Take that a request was answered with this HTTP status (0: not) after so long."""

    def held_back(self, seconds: float) -> None:
        """Take that a write waited so long for its turn; 0 when it did not."""


@dataclass(frozen=True)
class ClientSettings:
    """How hard the client may lean on the API server."""

    write_rate: float = 50.0
    """Writes a second in the long run. One API server on two cores takes about 100."""
    write_burst: int = 100
    """Writes at once after a quiet time."""
    tries: int = 5
    """How often a request that may be repeated is sent before its refusal is passed on; from 1."""
    request_seconds: float = 30.0
    """How long one request may take, answer included."""
    longest_wait_seconds: float = 20.0
    """The most that is waited between two tries, also when Retry-After asks for more."""
    chunk: int = 500
    """Objects in one part of a list."""


@dataclass(frozen=True)
class Call:
    """One request, ready to be sent."""

    verb: str
    resource: Resource
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None
    query: Mapping[str, str] | None = None
    body: Manifest | None = None
    content_type: str = "application/json"
    accept: str = "application/json"

    @property
    def target(self) -> str:
        """Return path and query."""
        path = self.resource.path(self.namespace, self.name, self.subresource)
        return f"{path}?{urlencode(self.query)}" if self.query else path

    @property
    def described(self) -> Request:
        """Return what errors say about this request."""
        where = "/".join(part for part in (self.namespace, self.name) if part)
        return Request(self.verb, self.resource.kind, where)


_METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "delete": "DELETE",
    "patch": "PATCH",
    "apply": "PATCH",
}
_READS = frozenset({"get", "list"})
_BACKOFF = Backoff(first_seconds=0.2, most_seconds=10.0)


class Transport:
    """One connection with its limits."""

    def __init__(
        self, connection: Connection, settings: ClientSettings, observer: Observer | None
    ) -> None:
        self.connection = connection
        self.settings = settings
        self.server_clock = ServerClock()
        self._observer = observer
        self._writes = TokenBucket(settings.write_rate, settings.write_burst)

    async def json(self, call: Call) -> dict[str, Any]:
        """Send a request with the tries that are safe for it; return the answer."""
        if call.verb not in _READS:
            waited = await self._writes.take()
            if self._observer is not None:
                self._observer.held_back(waited)
        failures = 0
        while True:
            try:
                return await self._once(call)
            except (Unavailable, TooManyRequests, Unauthorized) as error:
                failures += 1
                if failures >= self.settings.tries or not _may_repeat(call, error, failures):
                    raise
                if isinstance(error, Unauthorized):
                    await self.connection.renew()
                await asyncio.sleep(self._wait(error, failures))

    def _wait(self, error: ApiError, failures: int) -> float:
        asked = error.retry_after_seconds or 0.0
        return min(self.settings.longest_wait_seconds, asked + _BACKOFF.delay(failures))

    async def _once(self, call: Call) -> dict[str, Any]:
        timeout = aiohttp.ClientTimeout(total=self.settings.request_seconds, sock_connect=10)
        response = await self.open(call, timeout)
        with answered(call.described):
            answer = json.loads(await _body_of(response))
        if not isinstance(answer, dict):
            raise Unavailable(Failure(call.described, response.status, "", "no JSON object"))
        return answer

    async def open(self, call: Call, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Send once; return the answer with its body unread, or raise the refusal."""
        headers = {
            "Accept": call.accept,
            "Content-Type": call.content_type,
            **await self.connection.headers(),
        }
        now = asyncio.get_running_loop().time
        begun = now()
        code = 0
        try:
            with answered(call.described):
                answer = await self.connection.api.rest_client.request(  # type: ignore[no-untyped-call]
                    _METHODS[call.verb],
                    self.connection.server + call.target,
                    headers=headers,
                    body=call.body,
                    _request_timeout=timeout,
                )
                response: aiohttp.ClientResponse = answer.response
                code = response.status
                self.server_clock.hear(response.headers.get("Date"), now())
                if code < HTTPStatus.BAD_REQUEST:
                    return response
                body = await _body_of(response)
                retry_after = response.headers.get("Retry-After")
            raise error_for(failure_of(call.described, code, body, retry_after))
        finally:
            if self._observer is not None:
                self._observer.requested(call.verb, call.resource.plural, code, now() - begun)


class _NotSent(Unavailable):
    """No connection was made, so the request cannot have happened."""


def _may_repeat(call: Call, error: ApiError, failures: int) -> bool:
    """Tell whether the same request can be sent again without a risk of doing it twice."""
    if isinstance(error, Unauthorized):
        return failures == 1
    # 429 and a refused connection come before anything is done.
    return call.verb in _READS or isinstance(error, TooManyRequests | _NotSent)


@contextmanager
def answered(request: Request) -> Iterator[None]:
    """Turn what the HTTP library raises within the block into Unavailable."""
    try:
        yield
    except aiohttp.ClientConnectorError as error:
        raise _NotSent(Failure(request, 0, "", f"no connection: {error}")) from error
    except TimeoutError as error:
        raise Unavailable(Failure(request, 0, "", "no answer in time")) from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unavailable(Failure(request, 0, "", f"the connection broke: {error!r}")) from error
    except ValueError as error:
        raise Unavailable(Failure(request, 0, "", f"not JSON: {error}")) from error


async def _body_of(response: aiohttp.ClientResponse) -> bytes:
    """Read the rest; the connection goes back to the pool, or ends when that did not work."""
    try:
        return await response.read()
    finally:
        drop(response)


def drop(response: aiohttp.ClientResponse) -> None:
    """End what is left of an answer without ceremony.

    TLS's farewell would last 30 s with a frozen peer. An answer that was read to its end has given
    its connection back already.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()
