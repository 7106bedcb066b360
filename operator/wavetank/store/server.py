"""The store's HTTP: put once, get, list; every request with a token but the two health checks.

Bodies stream in both directions. Errors are ``{"error": {"type", "message"}}``. There is no delete
and no overwrite: what a Pod has sealed stays as it was sealed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from wavetank.api.wire import TOKEN_HEADER, Grant, Operation
from wavetank.bundles.archive import Caps
from wavetank.bundles.pack import validate_archive
from wavetank.core.errors import SpecError
from wavetank.store.access_log import AccessLog
from wavetank.store.objects import DiskFullError, Objects, Upload
from wavetank.store.paths import DOCUMENT_BYTES, Content, StorePath, is_prefix, parse_path
from wavetank.store.settings import MIB, Settings
from wavetank.store.tokens import SigningKeyError, TokenError, allows, load_public, verify_with

Clock = Callable[[], datetime]

_DRAIN_BYTES = 64 * MIB
_DRAIN_SECONDS = 5
_MESSAGE_LENGTH = 1000


class RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message[:_MESSAGE_LENGTH]


class PublicKey:
    """The operator's public key, read again whenever its file changes.

    The operator makes it at its first start, which may be after the store's.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._key: Ed25519PublicKey | None = None

    def get(self) -> Ed25519PublicKey | None:
        """Return the key, or None while its file is missing or holds none."""
        try:
            found = self._path.stat()
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                self._key = load_public(self._path.read_bytes())
        except (OSError, SigningKeyError):
            self._key, stamp = None, None
        self._stamp = stamp
        return self._key


class Store:
    """The request handlers."""

    def __init__(self, settings: Settings, objects: Objects, clock: Clock) -> None:
        self._settings = settings
        self._objects = objects
        self._clock = clock
        self._key = PublicKey(settings.public_key_file)

    async def healthz(self, request: Request) -> Response:
        """Answer while the process lives."""
        return JSONResponse({"status": "alive"})

    async def readyz(self, request: Request) -> Response:
        """Answer 200 when tokens can be checked and uploads taken."""
        missing = []
        if self._key.get() is None:
            missing.append(f"no public key in {self._settings.public_key_file}")
        if not await asyncio.to_thread(self._objects.is_writable):
            missing.append(f"{self._settings.folder} cannot be written")
        if missing:
            raise RefusedError(503, "NotReady", "; ".join(missing))
        return JSONResponse({"status": "ready"})

    async def list(self, request: Request) -> Response:
        """Answer with the paths below a prefix."""
        grants = self._grants(request)
        prefix = request.query_params.get("prefix", "")
        _require(grants, Operation.GET, prefix)
        if not is_prefix(prefix):
            raise RefusedError(
                404,
                "NotFound",
                f"{prefix!r} is no prefix: ask like /v1/runs/<uid>/, with the slash",
            )
        keys = await self._objects.list(prefix.strip("/"))
        return JSONResponse({"paths": [f"/{key}" for key in keys]})

    async def get(self, request: Request) -> Response:
        """Answer with an object, or for HEAD with its length."""
        path = _known_path(request, self._grants(request), Operation.GET)
        if request.method == "HEAD":
            size = await self._objects.size(path.key)
            content: AsyncIterator[bytes] | None = None
        else:
            size, content = await self._objects.read(path.key) or (None, None)
        if size is None:
            raise RefusedError(404, "NotFound", f"nothing has been put at {path.path}")
        headers = {"content-length": str(size), "content-type": "application/octet-stream"}
        return (
            Response(headers=headers)
            if content is None
            else StreamingResponse(content, headers=headers)
        )

    async def put(self, request: Request) -> Response:
        """Take an object: 201 when it is new, 200 when the same is there, 409 when another is."""
        body = request.stream()
        try:
            grants = self._grants(request)
            path = _known_path(request, grants, Operation.CREATE)
            async with self._objects.receive() as upload:
                await self._receive(request, body, upload, grants, path)
                await self._check(upload, path)
                return await self._keep(upload, path)
        except RefusedError:
            await _drain(body)
            raise
        except ClientDisconnect as error:
            raise RefusedError(400, "Cut", "the connection ended before the body") from error
        except DiskFullError as error:
            await _drain(body)
            raise RefusedError(
                507, "DiskFull", "the store's disk is full: enlarge its volume or delete old Runs"
            ) from error

    async def _receive(
        self,
        request: Request,
        body: AsyncIterator[bytes],
        upload: Upload,
        grants: tuple[Grant, ...],
        path: StorePath,
    ) -> None:
        declared = int(request.headers.get("content-length", "0"))
        self._require_size(grants, path, declared)
        upload.expect(declared)
        while True:
            try:
                async with asyncio.timeout(self._settings.idle_seconds):
                    chunk = await anext(body, None)
            except TimeoutError as error:
                raise RefusedError(
                    408, "Timeout", f"nothing arrived for {self._settings.idle_seconds} s"
                ) from error
            if chunk is None:
                break
            self._require_size(grants, path, upload.size + len(chunk))
            await upload.write(chunk)
        await upload.finish()

    def _require_size(self, grants: tuple[Grant, ...], path: StorePath, size: int) -> None:
        limit = self._settings.max_object_bytes
        if path.is_document:
            limit = min(limit, DOCUMENT_BYTES)
        if size > limit:
            raise RefusedError(413, "TooLarge", f"at most {limit} bytes may be put here")
        if not allows(grants, Operation.CREATE, path.path, size):
            raise RefusedError(413, "TooLarge", "the object is larger than the token allows")

    async def _check(self, upload: Upload, path: StorePath) -> None:
        digest = upload.digest
        if path.content is Content.BUNDLE:
            caps = Caps(total_bytes=self._settings.max_object_bytes)
            try:
                digest = await asyncio.to_thread(validate_archive, upload.path, caps)
            except SpecError as error:
                raise RefusedError(422, "BundleRefused", str(error)) from error
        if path.content is not Content.FREE and digest != path.digest:
            raise RefusedError(
                422, "DigestMismatch", f"what arrived is {digest}, its path says {path.digest}"
            )

    async def _keep(self, upload: Upload, path: StorePath) -> Response:
        if await self._objects.keep(upload, path.key):
            return JSONResponse({"path": path.path}, 201)
        # Two packings of one bundle may differ in compression: the manifest is what counts.
        if path.content is Content.BUNDLE or await self._objects.is_same(upload, path.key):
            return JSONResponse({"path": path.path}, 200)
        raise RefusedError(409, "Conflict", f"other bytes were put at {path.path} before")

    def _grants(self, request: Request) -> tuple[Grant, ...]:
        key = self._key.get()
        if key is None:
            raise RefusedError(503, "NotReady", "the store has no public key yet")
        token = request.headers.get(TOKEN_HEADER)
        if token is None:
            raise RefusedError(401, "Unauthorized", f"the header {TOKEN_HEADER} is missing")
        try:
            return verify_with(key, token, self._clock())
        except TokenError as error:
            raise RefusedError(401, "Unauthorized", str(error)) from error


def _require(grants: tuple[Grant, ...], operation: Operation, path: str) -> None:
    if not allows(grants, operation, path):
        raise RefusedError(
            403, "Forbidden", f"the token does not allow to {operation} {path[:200]!r}"
        )


def _known_path(request: Request, grants: tuple[Grant, ...], operation: Operation) -> StorePath:
    text: str = request.scope["path"]
    _require(grants, operation, text)
    path = parse_path(text)
    if path is None:
        raise RefusedError(404, "NotFound", f"the store has no path like {text[:200]!r}")
    return path


async def _drain(body: AsyncIterator[bytes]) -> None:
    """Read on for a while, so that the sender gets to reading the answer.

    A connection that is closed under a sender's hands is reset, and the answer lost.
    """
    count = 0
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for chunk in body:
                count += len(chunk)
                if count > _DRAIN_BYTES:
                    return
    except (TimeoutError, ClientDisconnect):
        return


async def _on_error(request: Request, error: Exception) -> Response:
    match error:
        case RefusedError():
            status, kind, message = error.status, error.kind, error.message
        case HTTPException():  # from routing: no such path, or no such method on it
            status, kind = error.status_code, "NotFound"
            message = f"the store has no {request.method} {request.url.path[:200]!r}"
        case _:
            status, kind = 500, "Internal"
            message = "the store met an error of its own: see its log"
    return JSONResponse({"error": {"type": kind, "message": message}}, status)


def create_app(settings: Settings, objects: Objects, clock: Clock) -> AccessLog:
    """Return the store as an ASGI application."""
    store = Store(settings, objects, clock)
    routes = [
        Route("/healthz", store.healthz),
        Route("/readyz", store.readyz),
        Route("/v1/list", store.list),
        Route("/v1/{path:path}", store.get, methods=["GET"]),  # and HEAD
        Route("/v1/{path:path}", store.put, methods=["PUT"]),
    ]
    errors = (RefusedError, HTTPException, Exception)
    handlers = dict.fromkeys(errors, _on_error)
    return AccessLog(Starlette(routes=routes, exception_handlers=handlers))
