"""A user's machine for tests of local Runs: a data folder of its own, and who works in it."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wavetank.testing import command
from wavetank.testing.command import Ended


@dataclass(frozen=True)
class Machine:
    """Where local Runs of a test are kept."""

    data: Path

    async def wavetank(self, *arguments: str | Path) -> Ended:
        """Call ``wavetank`` on this machine, and wait for its end."""
        return await command.wavetank(*arguments, XDG_DATA_HOME=str(self.data))

    async def start(self, *arguments: str | Path) -> asyncio.subprocess.Process:
        """Start ``wavetank`` on this machine."""
        return await command.start(*arguments, XDG_DATA_HOME=str(self.data))

    async def results(self, name: str | Path, *more: str) -> dict[str, Any]:
        """Return the results of the newest Run that a name means."""
        ended = await self.wavetank("benchmarks", "results", name, "--json", *more)
        if ended.code != 0:
            raise AssertionError(ended.err)
        results: dict[str, Any] = json.loads(ended.out)["runs"][-1]
        return results

    def home(self, name: str) -> Path:
        """Return the folder of a Run."""
        return self.data / "wavetank" / "runs" / name

    def ledger(self, name: str, generation: int = 0) -> str:
        """Return a Run's ledger as it is written; empty before there is one."""
        file = self.home(name) / f"ledger-g{generation}.jsonl"
        return file.read_text() if file.exists() else ""

    def seals(self, name: str) -> dict[str, int]:
        """Return when each seal of a Run was written, by attempt: ``0/1``."""
        root = self.home(name) / "store" / "v1" / "runs"
        found = root.glob("*/*/*/seal")
        return {f"{s.parts[-3]}/{s.parts[-2]}": s.stat().st_mtime_ns for s in found}

    def busy(self) -> list[int]:
        """Return the processes of Runs that live on this machine."""
        place = f"{self.data}/".encode()
        return [int(each.name) for each in Path("/proc").glob("[0-9]*") if place in _environ(each)]


def _environ(process: Path) -> bytes:
    try:
        environment = (process / "environ").read_bytes()
    except OSError:  # it is gone, or somebody else's
        return b""
    # XDG_DATA_HOME is the command's own; its children know their scratch folder.
    return b"\0".join(part for part in environment.split(b"\0") if part.startswith(b"TMPDIR="))


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Return when a condition holds.

    Raises:
        AssertionError: If it does not in time.
    """
    end = asyncio.get_running_loop().time() + seconds
    while not condition():
        if asyncio.get_running_loop().time() > end:
            raise AssertionError(f"the condition did not come to hold within {seconds:g} s")
        await asyncio.sleep(0.02)
