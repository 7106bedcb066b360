"""The store's client, for operator, world, judge and command line.

    ClusterError
      StoreUnavailable  not reached, or in trouble of its own: the same request again, later
    WavetankError
      StoreRefused      permanent: no grant, other bytes there, too large, wrong digest
        StoreNotFound   nothing has been put there (yet)

Every put may be repeated: the same bytes again are a success.
"""

import asyncio
import hashlib
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import httpx

from wavetank.api.wire import TOKEN_HEADER
from wavetank.core.errors import ClusterError, WavetankError

T = TypeVar("T")

CHUNK = 256 * 1024
_TIMEOUT = httpx.Timeout(30, connect=5)
"""Seconds without any progress, not for a whole transfer. Inside a cluster connecting takes
milliseconds or hangs."""
_FIRST_WAIT = 0.2
_LONGEST_WAIT = 5.0


class StoreUnavailable(ClusterError):
    """The store was not reached or is in trouble: the same request may succeed later."""


class StoreRefused(WavetankError):
    """The store answered that it will not: the same request again changes nothing."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(f"store answered {status} {kind}: {message}")
        self.status = status
        self.kind = kind


class StoreNotFound(StoreRefused):
    """Nothing has been put at the path."""


async def until(deadline: float, step: Callable[[], Awaitable[T]]) -> T:
    """Repeat a step while it raises StoreUnavailable, with growing pauses.

    Args:
        deadline: A moment on the running loop's clock (``loop.time()``). A step still running
            then is cancelled.
        step: Makes a new attempt each time it is called.

    Raises:
        StoreUnavailable: The last one, at the deadline.
    """
    clock = asyncio.get_running_loop().time
    last = StoreUnavailable("the store was not asked in time")
    wait = _FIRST_WAIT
    while clock() < deadline:
        try:
            async with asyncio.timeout_at(deadline):
                return await step()
        except StoreUnavailable as error:
            last = error
        except TimeoutError as error:
            raise StoreUnavailable("the store did not answer in time") from error
        # Many Pods wait for one store: spread, so that they do not all come back at once.
        pause = wait * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        await asyncio.sleep(max(0.0, min(pause, deadline - clock())))
        wait = min(wait * 2, _LONGEST_WAIT)
    raise last


class StoreClient:
    """One holder's access to the store; use it as ``async with StoreClient(url, token) as store``."""

    def __init__(
        self, url: str, token: str | Callable[[], str], *, http: httpx.AsyncClient | None = None
    ) -> None:
        """Prepare a client; nothing is sent yet.

        Args:
            url: Base URL, like ``http://10.96.3.4:8081``.
            token: The token, or what gives the current one.
            http: A prepared client, to come through the API server's proxy; it stays open.
        """
        self._url = url.rstrip("/")
        self._token = token if callable(token) else lambda: token
        self._owns_http = http is None
        self._http = http or _plain_http(self._url)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._owns_http:
            await self._http.aclose()

    async def get(self, path: str, max_bytes: int = 64 * 1024 * 1024) -> bytes:
        """Return an object's bytes.

        Raises:
            StoreNotFound: If nothing has been put there.
            StoreRefused: If the token has no grant, or the object is larger than ``max_bytes``.
            StoreUnavailable: If the store does not answer.
        """
        data = bytearray()
        async with self._send("GET", path) as answer:
            async for chunk in answer.aiter_raw(CHUNK):
                data += chunk
                _require_at_most(max_bytes, len(data), path)
        return bytes(data)

    async def get_to_file(self, path: str, file: Path, max_bytes: int = 1 << 30) -> str:
        """Write an object to a file, all or nothing, and return ``sha256:<hex>`` of its bytes."""
        part = file.with_name(f"{file.name}.part")
        hashed = hashlib.sha256()
        size = 0
        try:
            with part.open("wb") as out:
                async with self._send("GET", path) as answer:
                    async for chunk in answer.aiter_raw(CHUNK):
                        size += len(chunk)
                        _require_at_most(max_bytes, size, path)
                        hashed.update(chunk)
                        out.write(chunk)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
        return f"sha256:{hashed.hexdigest()}"

    async def put(self, path: str, content: bytes | Path) -> bool:
        """Put an object once, from bytes or a file.

        Returns:
            True when it is new, False when the same bytes (of a bundle: the same files) are there.

        Raises:
            StoreRefused: If there are other bytes (409), the digest in the path is not theirs
                (422), they are too large (413), or the token has no grant (401, 403).
            StoreUnavailable: If the store does not answer, or its disk is full.
        """
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        body = content if isinstance(content, bytes) else _chunks(content)
        headers = {"content-length": str(size), "content-type": "application/octet-stream"}
        async with self._send("PUT", path, content=body, headers=headers) as answer:
            return answer.status_code == 201

    async def exists(self, path: str) -> bool:
        """Return whether something has been put at a path."""
        try:
            async with self._send("HEAD", path):
                return True
        except StoreNotFound:
            return False

    async def list(self, prefix: str) -> list[str]:
        """Return the paths below a prefix that ends in ``/``, sorted."""
        async with self._send("GET", "/v1/list", params={"prefix": prefix}) as answer:
            await answer.aread()
            return [str(path) for path in answer.json()["paths"]]

    @asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        *,
        content: bytes | AsyncIterator[bytes] | None = None,
        headers: dict[str, str] | None = None,
        params: dict[str, str] | None = None,
    ) -> AsyncIterator[httpx.Response]:
        sent = {TOKEN_HEADER: self._token().strip(), **(headers or {})}
        try:
            async with self._http.stream(
                method, f"{self._url}{path}", content=content, headers=sent, params=params
            ) as answer:
                if not answer.is_success:
                    await _raise_for(answer)
                yield answer
        except httpx.HTTPError as error:
            raise StoreUnavailable(
                f"{method} {path}: {type(error).__name__} {error}".rstrip()
            ) from error


def _plain_http(url: str) -> httpx.AsyncClient:
    # The store is inside the cluster: no proxy. Certificates are loaded only where they are used.
    verify = url.startswith("https:") or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.AsyncClient(timeout=_TIMEOUT, trust_env=False, verify=verify)


async def _chunks(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as source:
        while chunk := source.read(CHUNK):
            yield chunk


def _require_at_most(limit: int, size: int, path: str) -> None:
    if size > limit:
        raise StoreRefused(413, "TooLarge", f"{path} has more than {limit} bytes")


async def _raise_for(answer: httpx.Response) -> None:
    await answer.aread()
    try:
        error = answer.json()["error"]
        kind, message = str(error["type"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        kind, message = "Unknown", answer.text[:200]
    status = answer.status_code
    # 408 and 429: not now. 3xx: not our store, but what stands in front of it.
    if status >= 500 or status in (408, 429) or status < 400:
        raise StoreUnavailable(f"store answered {status} {kind}: {message}")
    if status == 404:
        raise StoreNotFound(status, kind, message)
    raise StoreRefused(status, kind, message)
