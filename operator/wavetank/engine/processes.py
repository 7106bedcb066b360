"""The engine's processes: each in a session of its own, all of them ended when the engine is.

Ctrl-C on a terminal reaches the engine only. For the engine's own sudden death there is
``lifeline``: it reads who lives from a pipe, and ends them when the pipe does.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

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


class Process:
    """A process that was started."""

    def __init__(self, inner: asyncio.subprocess.Process) -> None:
        self._inner = inner
        self._end = asyncio.ensure_future(inner.wait())

    @property
    def pid(self) -> int:
        """Return its number, which is that of its group too."""
        return self._inner.pid

    @property
    def is_over(self) -> bool:
        """Tell whether it has ended."""
        return self._end.done()

    async def wait(self) -> int:
        """Wait for its end; return the exit code, 128 + number for a signal."""
        code = await asyncio.shield(self._end)
        return code if code >= 0 else 128 - code

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> int:
        """Ask it to end, and make it; return the exit code."""
        self._signal(signal.SIGTERM)
        await asyncio.wait({self._end}, timeout=grace_seconds)
        return await self.kill()

    async def kill(self) -> int:
        """Make it end; return the exit code."""
        self._signal(signal.SIGKILL)
        return await self.wait()

    def _signal(self, number: signal.Signals) -> None:
        if not self.is_over:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


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
                sys.executable,
                "-m",
                f"wavetank.{program.module}",
                *program.arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=scratch,  # Python looks for modules there first: nobody's are
                env=child_environment() | places | dict(program.settings),
                start_new_session=True,
            )
        process = Process(inner)
        self._tell(f"+{inner.pid}")
        process._end.add_done_callback(lambda _: self._tell(f"-{inner.pid}"))
        return process

    def _tell(self, line: str) -> None:
        if self._lifeline is not None and self._lifeline.stdin is not None:
            with suppress(BrokenPipeError, ValueError):
                self._lifeline.stdin.write(f"{line}\n".encode())
                self._lifeline.stdin.flush()
