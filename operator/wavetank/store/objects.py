"""The store's objects: uploads arrive in a file, and become an object in one step or not at all.

In front of obstore, so that a bucket differs from a folder by its URL. Objects are never changed
and, here, never deleted.
"""

import asyncio
import errno
import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore, from_url

from wavetank.store.settings import MIB, Settings

if TYPE_CHECKING:
    from obstore.store import ObjectStore  # a union that exists for type checkers only

_INCOMING = "incoming"
_BUFFER = 1 * MIB
"""Bytes gathered before a thread writes and hashes them."""
_RANGE = 2 * MIB
"""Bytes read at once."""


class DiskFullError(Exception):
    """The folder has no room for an upload."""


@contextmanager
def _disk_full() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError from error
        raise


class Upload:
    """One upload on its way: a file in ``incoming`` that disappears unless it is kept."""

    def __init__(self, folder: Path, min_free_bytes: int) -> None:
        self.name = uuid.uuid4().hex
        self.path = folder / self.name
        self.size = 0
        """Bytes that have arrived."""
        self._folder = folder
        self._min_free_bytes = min_free_bytes
        self._hash = hashlib.sha256()
        self._buffer = bytearray()
        self._working: asyncio.Future[None] | None = None
        self._file = self.path.open("xb", buffering=0)
        # Tells a store that starts beside us (a rolling update) that this upload is alive.
        fcntl.flock(self._file, fcntl.LOCK_EX)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._working is not None:
            await asyncio.wait({self._working})  # when cancelled: its thread still has the file
        self._file.close()
        self.path.unlink(missing_ok=True)

    @property
    def digest(self) -> str:
        """Return ``sha256:<hex>`` of what was finished."""
        return f"sha256:{self._hash.hexdigest()}"

    def expect(self, size: int) -> None:
        """Raise DiskFullError when so many bytes more would leave too little room."""
        if shutil.disk_usage(self._folder).free - size < self._min_free_bytes:
            raise DiskFullError

    async def write(self, chunk: bytes) -> None:
        """Add bytes."""
        self.size += len(chunk)
        self._buffer += chunk
        if len(self._buffer) >= _BUFFER:
            await self._flush()

    async def finish(self) -> None:
        """Write what is left, through to the disk."""
        await self._flush()
        await self._in_thread(lambda: os.fsync(self._file.fileno()))

    async def _flush(self) -> None:
        data, self._buffer = self._buffer, bytearray()
        if data:
            await self._in_thread(lambda: self._take(data))

    async def _in_thread(self, work: Callable[[], None]) -> None:
        self._working = asyncio.ensure_future(asyncio.to_thread(work))
        with _disk_full():
            await asyncio.shield(self._working)

    def _take(self, data: bytearray) -> None:
        self.expect(len(data))
        self._hash.update(data)
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]


class Objects:
    """All objects, by key (a path without its first slash)."""

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.folder
        self._min_free_bytes = settings.min_free_bytes
        self._incoming = settings.folder / _INCOMING
        self._incoming.mkdir(parents=True, exist_ok=True)
        self._is_local = not settings.url
        self._store: ObjectStore = (
            LocalStore(settings.folder) if self._is_local else from_url(settings.url)
        )

    def sweep(self) -> int:
        """Remove the uploads that a killed store left behind; return how many."""
        count = 0
        for path in self._incoming.iterdir():
            with path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                path.unlink(missing_ok=True)
                count += 1
        return count

    def is_writable(self) -> bool:
        """Return whether an upload could begin."""
        probe = self._incoming / uuid.uuid4().hex
        try:
            probe.touch(exist_ok=False)
            probe.unlink()
        except OSError:
            return False
        return True

    def receive(self) -> Upload:
        """Begin an upload.

        Raises:
            DiskFullError: If there is no room for even an empty file.
        """
        with _disk_full():
            return Upload(self._incoming, self._min_free_bytes)

    async def keep(self, upload: Upload, key: str) -> bool:
        """Make a finished upload the object ``key``, in one step.

        Returns:
            False if there is such an object already; it stays as it is.
        """
        source = f"{_INCOMING}/{upload.name}"
        if not self._is_local:
            await obstore.put_async(self._store, source, upload.path)
        try:
            # A hard link on a folder, a conditional copy on a bucket: both fail if the name is
            # taken, and neither holds the object in memory, as a conditional put would.
            await obstore.rename_async(self._store, source, key, overwrite=False)
        except AlreadyExistsError:
            if not self._is_local:
                await obstore.delete_async(self._store, source)
            return False
        if self._is_local:
            await asyncio.to_thread(self._sync_folders, key)
        return True

    def _sync_folders(self, key: str) -> None:
        """Make the object's name durable, with those of the folders made for it."""
        for folder in (self._folder / key).relative_to(self._folder).parents:
            handle = os.open(self._folder / folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    async def size(self, key: str) -> int | None:
        """Return an object's bytes, or None when there is no such object."""
        try:
            return (await obstore.head_async(self._store, key))["size"]
        except FileNotFoundError:
            return None

    async def read(self, key: str) -> tuple[int, AsyncIterator[bytes]] | None:
        """Return an object's size and content, or None when there is no such object."""
        size = await self.size(key)
        return None if size is None else (size, self._content(key, size))

    async def _content(self, key: str, size: int) -> AsyncIterator[bytes]:
        # In ranges: obstore's own stream reads a folder's files by 8 KiB, at a tenth of the speed.
        # An object never changes, so its parts fit together.
        for start in range(0, size, _RANGE):
            length = min(_RANGE, size - start)
            yield bytes(await obstore.get_range_async(self._store, key, start=start, length=length))

    async def is_same(self, upload: Upload, key: str) -> bool:
        """Return whether an object's bytes are those of an upload."""
        found = await self.read(key)
        if found is None or found[0] != upload.size:
            return False
        hashed = hashlib.sha256()
        async for part in found[1]:
            hashed.update(part)
        return f"sha256:{hashed.hexdigest()}" == upload.digest

    async def list(self, prefix: str) -> list[str]:
        """Return the keys below a prefix, sorted."""
        keys: list[str] = []
        async for batch in obstore.list(self._store, prefix, chunk_size=1000):
            keys += [meta["path"] for meta in batch]
        return sorted(keys)
