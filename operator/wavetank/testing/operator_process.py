"""The operator as a process of its own, and what it says."""

import asyncio
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx

from wavetank.testing.cluster import until

NEEDED = {
    "WAVETANK_NAMESPACE": "wavetank",
    "WAVETANK_IMAGE_WORLD": "none",
    "WAVETANK_IMAGE_AGENT": "none",
    "WAVETANK_IMAGE_VERIFIER": "none",
    "WAVETANK_VERSION": "test",
    "WAVETANK_HEALTH_PORT": "0",
}
"""The settings that have no default."""


class OperatorProcess:
    """A running operator, all its lines so far, and its health port."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.lines: list[str] = []
        self._process = process
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls, environment: Mapping[str, str], program: Sequence[str | Path] | None = None
    ) -> "OperatorProcess":
        """Start ``python -m wavetank.controller``, or another program of Python.

        Args:
            environment: All of it; nothing is inherited.
            program: Arguments for the interpreter.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *(program or ("-m", "wavetank.controller")),
            env=dict(environment),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        return cls(process)

    async def said(self, pattern: str, times: int = 1, seconds: float = 30.0) -> re.Match[str]:
        """Wait until so many lines match, and return the last match.

        Raises:
            AssertionError: If it was not said in time; with all that was.
        """

        async def enough() -> list[re.Match[str]] | None:
            found = [match for line in self.lines if (match := re.search(pattern, line))]
            return found if len(found) >= times else None

        try:
            return (await until(enough, seconds))[-1]
        except TimeoutError:
            raise AssertionError(
                f"'{pattern}' was not said {times} times:\n" + "\n".join(self.lines)
            ) from None

    def count(self, pattern: str) -> int:
        """Return how many lines match."""
        return sum(1 for line in self.lines if re.search(pattern, line))

    async def http(self, path: str) -> httpx.Response:
        """Ask its health port."""
        port = (await self.said(r"health_port=(\d+)"))[1]
        async with httpx.AsyncClient() as http:
            return await http.get(f"http://127.0.0.1:{port}{path}")

    async def end(self) -> int:
        """Ask it to end, if it has not, and return its exit code."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        return await self.ended()

    async def ended(self) -> int:
        """Wait until it ends by itself, and return its exit code."""
        await self._reader
        return await self._process.wait()

    async def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        async for line in self._process.stdout:
            self.lines.append(line.decode().rstrip())
