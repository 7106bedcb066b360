"""Calls ``wavetank`` as people do: as a process of its own, in a pipe or on a terminal."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from dataclasses import dataclass
from pathlib import Path

PROGRAM = Path(sys.executable).parent / "wavetank"

_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
"""Nothing of this machine's clusters is known, and no terminal."""

_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Ended:
    """What a call came to."""

    code: int
    out: str
    err: str

    @property
    def last_word(self) -> str:
        """Return the last line of stderr."""
        return self.err.rstrip("\n").rpartition("\n")[2]


async def wavetank(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> Ended:
    """Call ``wavetank`` in pipes, and wait for its end.

    Args:
        arguments: Of the command.
        cwd: Where it is called.
        environment: Variables that it sees; KUBECONFIG only if it is among them.
    """
    process = await start(*arguments, cwd=cwd, **environment)
    out, err = await process.communicate()
    return Ended(process.returncode or 0, out.decode(), err.decode())


async def start(
    *arguments: str | Path, cwd: Path | None = None, **environment: str
) -> asyncio.subprocess.Process:
    """Start ``wavetank`` in pipes."""
    return await asyncio.create_subprocess_exec(
        PROGRAM,
        *arguments,
        cwd=cwd,
        env={**_ENVIRONMENT, **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def on_a_terminal(*arguments: str | Path, columns: int = 100, **environment: str) -> Ended:
    """Call ``wavetank`` on a terminal of its own; ``out`` has all that was written to it."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *arguments,
        env={**_ENVIRONMENT, "TERM": "xterm-256color", **environment},
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    written = await asyncio.to_thread(_drained, leader)
    return Ended(await process.wait(), written.decode().replace("\r\n", "\n"), "")


def _drained(leader: int) -> bytes:
    """Return what is written to a terminal until nobody holds it any more."""
    parts = []
    try:
        while part := os.read(leader, 65_536):
            parts.append(part)
    except OSError:
        pass  # EIO is Linux's word for: the other side is closed.
    finally:
        os.close(leader)
    return b"".join(parts)


def plain(text: str) -> str:
    r"""Return what stands on a terminal, without colours and movements.

    >>> plain("\x1b[1mcrm\x1b[0m is ready")
    'crm is ready'
    """
    return _STEERING.sub("", text)
