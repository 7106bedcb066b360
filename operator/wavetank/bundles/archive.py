"""A reader of ``tar.zst`` that knows regular files and nothing else.

Archives come from people and from Pods, so this is an allow-list: whatever ``pack`` does not write
is refused. Python's ``tarfile`` is not used for reading, since it holds extended headers of any
size in memory and follows a dozen historical dialects. Reading never holds more than a chunk, a
header and zstd's window (8 MiB).
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import zstandard

from wavetank.bundles.paths import path_fault, shown
from wavetank.core.errors import Finding, Severity, SpecError

BLOCK = 512
"""Bytes of a tar block: https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html."""
CHUNK = 256 * 1024
_WINDOW = 8 * 1024 * 1024
"""Largest zstd window: what levels up to 19 use. A frame may ask for 128 MiB otherwise."""
_EXTENDED_LIMIT = 4096
"""Bytes of an extended header; it holds one path, which is far shorter."""
_RECORD = 10240
"""Writers fill the end with zeros up to a record of this size."""
_OCTAL = re.compile(rb" *([0-7]+)[ \0]*")
_TYPES = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"5": "a folder",
    b"6": "a named pipe",
    b"S": "a sparse file",
    b"L": "a long name in GNU's own form",
    b"g": "a global header",
}


@dataclass(frozen=True)
class Caps:
    """How much an archive may unpack to; whoever reads gives up at the first excess."""

    files: int = 10_000
    total_bytes: int = 1024 * 1024 * 1024
    """Content of all files together."""
    ratio: int = 500
    """Unpacked bytes per packed byte, counted above ``ratio_floor_bytes``."""
    ratio_floor_bytes: int = 64 * 1024 * 1024
    """Up to here any ratio is allowed: an empty database packs to next to nothing."""


CAPS = Caps()


@dataclass(frozen=True)
class Entry:
    """The header of one regular file."""

    path: str
    is_executable: bool
    size: int


def refuse(path: str, message: str) -> SpecError:
    """Return the error for one fault of an archive."""
    return SpecError([Finding(Severity.FAULT, path, message)])


class Unzipped:
    """The bytes of a zstd stream, read in bounded steps, with the caps on bytes and ratio."""

    def __init__(self, source: bytes | Path, caps: Caps) -> None:
        self._caps = caps
        self._limit = _limit(source, caps)
        self._count = 0
        packed: IO[bytes] = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
        self._packed = packed
        unzip = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        self._reader = unzip.stream_reader(packed, read_across_frames=True)

    def close(self) -> None:
        """Close the source."""
        self._packed.close()

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, at most ``CHUNK``; empty at the end."""
        try:
            data = self._reader.read(min(size, CHUNK))
        except zstandard.ZstdError as error:
            raise refuse("archive", f"is no zstd stream that can be read: {error}") from error
        self._count += len(data)
        if self._count > self._limit:
            raise refuse(
                "archive",
                f"unpacks to more than {self._limit} bytes: at most {self._caps.total_bytes} in all"
                f" and {self._caps.ratio} for each packed byte are allowed",
            )
        return bytes(data)

    def exactly(self, size: int, where: str) -> bytes:
        """Return ``size`` bytes (small ones: headers)."""
        parts: list[bytes] = []
        while size:
            part = self.read(size)
            if not part:
                raise refuse(where, "is cut off here: pack and send it again")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _limit(source: bytes | Path, caps: Caps) -> int:
    packed = len(source) if isinstance(source, bytes) else source.stat().st_size
    by_ratio = max(caps.ratio_floor_bytes, packed * caps.ratio)
    headers = caps.files * 4 * BLOCK + _RECORD  # a header, an extended one, and padding
    return min(caps.total_bytes + headers, by_ratio)


def entries(stream: Unzipped, caps: Caps) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    """Yield each file's header and its content in chunks.

    The content must be read to its end before the next step.

    Raises:
        SpecError: At the first thing that is not a plain file with a plain name.
    """
    count = 0
    total = 0
    while True:
        header = stream.exactly(BLOCK, "archive")
        if header == bytes(BLOCK):
            _expect_end(stream)
            return
        path = None
        if header[156:157] == b"x":
            path = _extended_path(stream, header)
            header = stream.exactly(BLOCK, "archive")
        entry = _entry(header, path)
        count += 1
        total += entry.size
        if count > caps.files:
            raise refuse(entry.path, f"is one too many: at most {caps.files} files are allowed")
        if total > caps.total_bytes:
            raise refuse(
                entry.path,
                f"brings the files to {total} bytes: at most {caps.total_bytes} are allowed",
            )
        yield entry, _content(stream, entry)


def _content(stream: Unzipped, entry: Entry) -> Iterator[bytes]:
    left = entry.size
    while left:
        part = stream.read(left)
        if not part:
            raise refuse(entry.path, "is cut off: pack and send it again")
        left -= len(part)
        yield part
    stream.exactly(-entry.size % BLOCK, entry.path)


def _expect_end(stream: Unzipped) -> None:
    rest = b""
    while part := stream.read(CHUNK):
        rest += part
        if len(rest) > _RECORD or part.strip(b"\0"):
            raise refuse(
                "archive", "goes on after its end: only files that the tar lists may be in it"
            )
    if len(rest) < BLOCK:
        raise refuse("archive", "is cut off at its end: pack and send it again")


def _entry(header: bytes, extended: str | None) -> Entry:
    _check_sum(header)
    path = _text(header[0:100]) if extended is None else extended
    prefix = _text(header[345:500])
    if extended is None and prefix:
        path = f"{prefix}/{path}"
    if header[257:263] != b"ustar\0":
        raise refuse(shown(path), "is not in the ustar or pax form of tar")
    kind = header[156:157]
    if kind not in (b"0", b"\0"):
        what = _TYPES.get(kind, f"of type {kind!r}")
        raise refuse(shown(path), f"is {what}: only regular files are allowed")
    if header[157:257].strip(b"\0"):
        raise refuse(shown(path), "names a link's target: only regular files are allowed")
    if fault := path_fault(path):
        raise refuse(shown(path), fault)
    mode = _number(header[100:108], path)
    if mode & ~0o777:
        raise refuse(shown(path), f"has mode {mode:o}: setuid, setgid and sticky are not allowed")
    return Entry(path, bool(mode & 0o111), _number(header[124:136], path))


def _extended_path(stream: Unzipped, header: bytes) -> str:
    """Read a pax header, which may hold one record: the path of the file that follows."""
    _check_sum(header)
    size = _number(header[124:136], "archive")
    if not 0 < size <= _EXTENDED_LIMIT:
        raise refuse(
            "archive", f"has an extended header of {size} bytes: at most {_EXTENDED_LIMIT}"
        )
    body = stream.exactly(size + -size % BLOCK, "archive")[:size]
    head, _, value = body.partition(b" path=")
    if head != str(size).encode() or value[-1:] != b"\n" or b"\n" in value[:-1]:
        raise refuse("archive", f"has an extended header other than one path: {body[:80]!r}")
    return _text(value[:-1], padded=False)


def _check_sum(header: bytes) -> None:
    blank = header[:148] + b" " * 8 + header[156:]
    if sum(blank) != _number(header[148:156], "archive"):
        raise refuse("archive", "is damaged or no tar: a header's check sum is wrong")


def _number(field: bytes, where: str) -> int:
    found = _OCTAL.fullmatch(field)
    if found is None:
        raise refuse(shown(where), f"has a number in its header that is not octal: {field!r}")
    return int(found[1], 8)


def _text(field: bytes, *, padded: bool = True) -> str:
    if padded:
        field, _, rest = field.partition(b"\0")
        if rest.strip(b"\0"):
            raise refuse(repr(field), "has a NUL inside its name")
    try:
        return field.decode()
    except UnicodeDecodeError as error:
        raise refuse(repr(field), "is no UTF-8") from error
