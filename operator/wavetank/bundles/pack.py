"""Bundles: files with a digest, packed as ``tar.zst``.

The CLI and the operator pack, the store validates, Pods unpack. A bundle's digest is that of its
manifest, so it does not depend on tar, zstd or their versions.
"""

import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import zstandard

from wavetank.bundles.archive import CAPS, Caps, Unzipped, entries, refuse
from wavetank.bundles.paths import Clashes, clash_faults, path_fault, shown
from wavetank.core.errors import Finding, Severity, SpecError

PLAIN = 0o644
EXECUTABLE = 0o755
_LEVEL = 3
"""Of zstd. Level 10 made a database of 41 MB 3 % smaller and took ten times as long."""

IGNORED = (
    ".git",
    ".hg",
    ".svn",
    ".gitignore",
    ".gitattributes",
    ".DS_Store",
    ".idea",
    ".vscode",
    ".venv",
    ".env",
    "__pycache__",
    "*.py[co]",
    "*.swp",
    "*~",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
)
"""What ``read_folder`` leaves out, files and folders alike; everything else is packed."""


class BundleFile(NamedTuple):
    """One file of a bundle."""

    mode: int
    """``PLAIN`` or ``EXECUTABLE``: of a mode only the x bit counts."""
    data: bytes


Files = Mapping[str, BundleFile]
"""Files by their path from the bundle's root, segments separated by ``/``."""


@dataclass(frozen=True)
class Halves:
    """A bundle's files by who may fetch them; each is packed as a bundle of its own."""

    agent: dict[str, BundleFile]
    """Schema, data, tools, prompts: for the world container."""
    grader: dict[str, BundleFile]
    """``verifiers/``: only for judges."""
    solutions: dict[str, BundleFile]
    """``solutions/`` and ``scripts/``: only for oracle and scripted Pods."""


def manifest_of(files: Files) -> bytes:
    """Return the manifest: JSON, one ``{path, mode, sha256}`` for each file, sorted by path."""
    return _manifest(
        (path, _plain_mode(file.mode), hashlib.sha256(file.data).hexdigest())
        for path, file in files.items()
    )


def digest_of(files: Files) -> str:
    """Return the bundle's digest, ``sha256:<hex>`` of its manifest.

    >>> digest_of({})[:15]
    'sha256:4f53cda1'
    """
    return _digest(manifest_of(files))


def _manifest(rows: Iterator[tuple[str, int, str]]) -> bytes:
    listed = [{"path": path, "mode": mode, "sha256": sha} for path, mode, sha in sorted(rows)]
    return json.dumps(listed, separators=(",", ":")).encode()


def _digest(manifest: bytes) -> str:
    return f"sha256:{hashlib.sha256(manifest).hexdigest()}"


def _plain_mode(mode: int) -> int:
    return EXECUTABLE if mode & 0o111 else PLAIN


def pack(files: Files) -> bytes:
    """Return the files as ``tar.zst``; equal files give equal bytes.

    Raises:
        SpecError: With every path that no bundle may hold.
    """
    faults = [(path, fault) for path in sorted(files) if (fault := path_fault(path))]
    faults += clash_faults(sorted(files))
    _raise_any(faults)
    plain = io.BytesIO()
    for path, file in sorted(files.items()):
        info = tarfile.TarInfo(path)
        info.size = len(file.data)
        info.mode = _plain_mode(file.mode)
        plain.write(info.tobuf(tarfile.PAX_FORMAT))
        plain.write(file.data)
        plain.write(bytes(-len(file.data) % tarfile.BLOCKSIZE))
    plain.write(bytes(2 * tarfile.BLOCKSIZE))
    return zstandard.ZstdCompressor(level=_LEVEL).compress(plain.getbuffer())


def _raise_any(faults: list[tuple[str, str]]) -> None:
    if faults:
        raise SpecError([Finding(Severity.FAULT, shown(path), fault) for path, fault in faults])


def validate_archive(source: bytes | Path, caps: Caps = CAPS) -> str:
    """Read a packed bundle to its end, writing nothing, and return its digest.

    Raises:
        SpecError: If it holds anything but plain files, or more than the caps allow.
    """
    rows: list[tuple[str, int, str]] = []
    for path, mode, content in _checked(source, caps):
        hashed = hashlib.sha256()
        for part in content:
            hashed.update(part)
        rows.append((path, mode, hashed.hexdigest()))
    return _digest(_manifest(iter(rows)))


def read_archive(source: bytes | Path, caps: Caps = CAPS) -> dict[str, BundleFile]:
    """Return a packed bundle's files, in memory.

    Raises:
        SpecError: As ``validate_archive``.
    """
    return {
        path: BundleFile(mode, b"".join(content)) for path, mode, content in _checked(source, caps)
    }


def _checked(source: bytes | Path, caps: Caps) -> Iterator[tuple[str, int, Iterator[bytes]]]:
    """Yield path, mode and content of every file; the first thing that is wrong ends it."""
    clashes = Clashes()
    with closing(Unzipped(source, caps)) as stream:
        for entry, content in entries(stream, caps):
            if fault := clashes.add(entry.path):
                raise refuse(entry.path, fault)
            yield entry.path, EXECUTABLE if entry.is_executable else PLAIN, content


def unpack(source: bytes | Path, into: Path, caps: Caps = CAPS) -> str:
    """Write a packed bundle's files below the folder ``into`` and return the bundle's digest.

    The whole archive is validated before the first byte is written. Files that are there already
    are replaced, never written through: bundles may be laid over each other. Compare the digest
    before you unpack, with ``validate_archive``, if the archive's origin is not trusted.

    Raises:
        SpecError: As ``validate_archive``, or if a file is in the way of a folder or the reverse.
    """
    digest = validate_archive(source, caps)
    into.mkdir(parents=True, exist_ok=True)
    root = os.open(into, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for path, mode, content in _checked(source, caps):
            _write(root, path, mode, content)
    finally:
        os.close(root)
    return digest


def _write(root: int, path: str, mode: int, content: Iterator[bytes]) -> None:
    *folders, name = path.split("/")
    try:
        folder = _open_folder(root, folders)
        try:
            target = _create(folder, name, mode)
        finally:
            os.close(folder)
    except (NotADirectoryError, IsADirectoryError) as error:
        raise refuse(
            path, "meets a file in place of a folder, or the reverse: rename one"
        ) from error
    with os.fdopen(target, "wb") as file:
        for part in content:
            file.write(part)


def _open_folder(root: int, folders: list[str]) -> int:
    """Open a folder step by step, making what is missing and following no link."""
    current = os.dup(root)
    for name in folders:
        try:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=current)
            following = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
        finally:
            os.close(current)
        current = following
    return current


def _create(folder: int, name: str, mode: int) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        target = os.open(name, flags, PLAIN, dir_fd=folder)
    except FileExistsError:
        os.unlink(name, dir_fd=folder)
        target = os.open(name, flags, PLAIN, dir_fd=folder)
    os.fchmod(target, mode)  # whatever the umask is
    return target


def split(files: Files) -> Halves:
    """Return the files by who may fetch them; together they are all of them."""
    halves = Halves({}, {}, {})
    for path, file in files.items():
        match path.split("/", 1):
            case ["verifiers", _]:
                halves.grader[path] = file
            case ["solutions" | "scripts", _]:
                halves.solutions[path] = file
            case _:
                halves.agent[path] = file
    return halves


def read_folder(root: Path, caps: Caps = CAPS) -> dict[str, BundleFile]:
    """Return the files below a folder, without what ``IGNORED`` lists.

    Raises:
        SpecError: With every link, device, unreadable file and name that no bundle may hold.
    """
    if not root.is_dir():
        raise refuse(str(root), "is no folder: name the folder that holds the bundle")
    files: dict[str, BundleFile] = {}
    faults: list[tuple[str, str]] = []
    total = 0
    for path, entry in _walk(root, ""):
        fault = path_fault(path) or _kind_fault(entry)
        if fault is None:
            total += entry.stat(follow_symlinks=False).st_size
            if total > caps.total_bytes or len(files) >= caps.files:
                fault = f"is beyond {caps.files} files or {caps.total_bytes} bytes: remove what is not needed"
                faults.append((path, fault))
                break
            try:
                files[path] = _read(Path(entry.path))
            except OSError as error:
                fault = f"cannot be read: {error.strerror}"
        if fault is not None:
            faults.append((path, fault))
    faults += clash_faults(files)
    _raise_any(faults)
    return files


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    with os.scandir(folder) as found:
        listed = sorted(found, key=lambda entry: entry.name)
    for entry in listed:
        if any(fnmatch(entry.name, pattern) for pattern in IGNORED):
            continue
        path = f"{prefix}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), f"{path}/")
        else:
            yield path, entry


def _kind_fault(entry: "os.DirEntry[str]") -> str | None:
    if entry.is_symlink():
        return "is a symbolic link: put the file itself here"
    if not entry.is_file(follow_symlinks=False):
        return "is neither file nor folder: remove it"
    return None


def _read(path: Path) -> BundleFile:
    # No link is followed, also not one that took the file's place since it was listed.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        return BundleFile(_plain_mode(stat.S_IMODE(os.fstat(file.fileno()).st_mode)), file.read())
