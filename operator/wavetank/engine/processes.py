"""The engine's processes: each in a session of its own, all of them ended when the engine is.

Ctrl-C on a terminal reaches the engine only. For the engine's own sudden death there is
``lifeline``: it reads who lives from a pipe, and ends them when the pipe does.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from wavetank.engine import lifeline
from wavetank.engine.lifeline import GRACE_SECONDS
from wavetank.engine.settings import child_environment


@dataclass(frozen=True)
class Program:
    """What to run: a module of Wavetank's own."""

    module: str
    """Below ``wavetank``, like ``agents.wrapper``."""
    folder: Path
    """Where it works, and keeps what it makes for itself."""
    settings: Mapping[str, str]
    """Its environment, besides what every process gets."""
    arguments: Sequence[str] = ()

    @property
    def log(self) -> Path:
        """Return the file that takes what it prints."""
        return self.folder / f"{self.module.rpartition('.')[2]}.log"


_ENTERED = ("/bin/sh", "-c", 'echo "+$$" >&0; exec "$@" </dev/null', "sh")
"""Tells the lifeline of a process before anything else runs in it, from within: the engine may be
killed at any moment, also between starting a process and noting it. It comes as standard input."""


class Process:
    """A process that was started."""

    def __init__(self, inner: asyncio.subprocess.Process) -> None:
        self._inner = inner
        self._end = asyncio.ensure_future(inner.wait())

    @property
    def pid(self) -> int:
        """Return its number, which is that of its session too."""
        return self._inner.pid

    @property
    def is_over(self) -> bool:
        """Tell whether it has ended."""
        return self._end.done()

    def on_end(self, told: Callable[[], None]) -> None:
        """Call something at its end."""
        self._end.add_done_callback(lambda _: told())

    async def wait(self) -> int:
        """Wait for its end; return the exit code, 128 + number for a signal."""
        code = await asyncio.shield(self._end)
        return code if code >= 0 else 128 - code

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> int:
        """Ask it to end, and make it; return the exit code."""
        if not self.is_over:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGTERM)
        await asyncio.wait({self._end}, timeout=grace_seconds)
        return await self.kill()

    async def kill(self) -> int:
        """Make it end, and whatever it has started; return the exit code."""
        if self.is_over:
            # Not its group: once it is over, that number may be another's.
            lifeline.send_each(lifeline.members([self.pid]), signal.SIGKILL)
        else:
            lifeline.send([self.pid], signal.SIGKILL)
        return await self.wait()


class Processes:
    """Starts processes; use it as ``async with Processes() as processes``."""

    def __init__(self) -> None:
        self._lifeline: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> Self:
        self._lifeline = subprocess.Popen(
            [sys.executable, "-m", "wavetank.engine.lifeline"],
            stdin=subprocess.PIPE,
            env=child_environment(),
            start_new_session=True,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._lifeline is not None:
            self._lifeline.communicate()

    async def start(self, program: Program) -> Process:
        """Start a program.

        Raises:
            OSError: If there is no room for another process.
        """
        scratch = program.folder / "tmp"
        scratch.mkdir(parents=True, exist_ok=True)
        places = {"TMPDIR": str(scratch), "HOME": str(scratch)}
        with program.log.open("ab") as log:
            inner = await asyncio.create_subprocess_exec(
                *_ENTERED,
                sys.executable,
                "-m",
                f"wavetank.{program.module}",
                *program.arguments,
                stdin=self._pipe,
                stdout=log,
                stderr=log,
                cwd=scratch,  # Python looks for modules there first: nobody's are
                env=child_environment() | places | dict(program.settings),
                start_new_session=True,
            )
        process = Process(inner)
        process.on_end(lambda: self._leave(inner.pid))
        return process

    @property
    def _pipe(self) -> IO[bytes]:
        if self._lifeline is None or self._lifeline.stdin is None:
            raise RuntimeError("processes are started inside of `async with`")
        return self._lifeline.stdin

    def _leave(self, pid: int) -> None:
        with suppress(BrokenPipeError, ValueError):
            self._pipe.write(f"-{pid}\n".encode())
            self._pipe.flush()
