"""How judge and grade meet: files in two folders, and a lock that each holds while it lives.

``/in``  (judge writes): ``lock``, ``bundles/main``, ``bundles/linked/<alias>``,
``members/<ordinal>.<attempt>/``, ``job.json``, then ``ready``.
``/out`` (grade writes): ``lock``, then ``started``, ``<ordinal>.<attempt>.json`` or ``check.json``,
then ``done``.

Grade is not trusted: what it wrote is read as a plain file of limited size, and no link is
followed, since behind a link could be judge's token.
"""

import errno
import fcntl
import os
import stat
from pathlib import Path

from wavetank.api.wire import CheckSpec, GradeSpec, Wire

LOCK = "lock"
STARTED = "started"
READY = "ready"
DONE = "done"
JOB = "job.json"
CHECK = "check.json"
LOOK_SECONDS = 0.02
"""Between two looks at the other's files."""


class Job(Wire):
    """What grade is asked to do: the same documents that judge got."""

    grade: GradeSpec | None = None
    check: CheckSpec | None = None
    aliases: list[str]
    """The linked worlds that are in ``bundles/linked``."""


class RefusedFileError(Exception):
    """A file is no plain file, or too large."""


def member_name(ordinal: int, attempt: int) -> str:
    """Return what a member's folder and record are called.

    >>> member_name(12, 1)
    '12.1'
    """
    return f"{ordinal}.{attempt}"


def bundle_folder(inbox: Path, alias: str) -> Path:
    """Return where a world's bundle is unpacked."""
    return inbox / "bundles" / "linked" / alias if alias else inbox / "bundles" / "main"


def member_folder(inbox: Path, ordinal: int, attempt: int) -> Path:
    """Return where a member's snapshot is unpacked."""
    return inbox / "members" / member_name(ordinal, attempt)


def hold(folder: Path) -> int:
    """Take the lock of a folder for as long as this process lives; return its file."""
    part = folder / f".{LOCK}.part"
    file = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    fcntl.flock(file, fcntl.LOCK_EX)
    # Under its name from here on only: a lock that is there and free means that its holder died.
    part.rename(folder / LOCK)
    return file


def is_abandoned(folder: Path) -> bool:
    """Return whether a folder's lock was held, and its holder is dead."""
    try:
        file = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # a link or the like: it was no honest process that left this
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(file)


def write(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees all of it or nothing."""
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    part.replace(path)


def read_untrusted(path: Path, limit: int) -> bytes | None:
    """Return the bytes of a file that grade wrote, None when there is none.

    Raises:
        RefusedFileError: If it is anything but a plain file of at most ``limit`` bytes.
    """
    try:
        # Not blocking: opening a named pipe would wait for its writer.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RefusedFileError(f"{path.name} is {_what(error)}") from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise RefusedFileError(f"{path.name} is no plain file")
        with os.fdopen(os.dup(file), "rb") as opened:
            data = opened.read(limit + 1)
    finally:
        os.close(file)
    if len(data) > limit:
        raise RefusedFileError(f"{path.name} has more than {limit} bytes")
    return data


def _what(error: OSError) -> str:
    return "a link" if error.errno == errno.ELOOP else f"not readable: {error.strerror}"
