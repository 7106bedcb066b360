"""A real world container for tests: its own process, its bundles in a real store."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wavetank.api.wire import (
    SESSION_ENV,
    TOKEN_FILE_ENV,
    BundleRef,
    BundleSet,
    SessionSpec,
    WorldMessage,
)
from wavetank.bundles.pack import Files, digest_of, pack, read_folder, split
from wavetank.testing.store import RunningStore

RUN = "3f2a1b9c-0000-4000-8000-000000000000"
PREFIX = f"/v1/runs/{RUN}/0/1"


async def push(store: RunningStore, folders: Mapping[str, Path]) -> BundleSet:
    """Put bundles into a store, split by who may fetch them; folders by alias."""
    halves: dict[str, list[BundleRef]] = {"agent": [], "grader": [], "solutions": []}
    async with store.client() as client:
        for alias, folder in folders.items():
            parts = split(read_folder(folder))
            for name, refs in halves.items():
                files: Files = getattr(parts, name)
                digest = digest_of(files)
                await client.put(f"/v1/bundles/{digest}", pack(files))
                refs.append(BundleRef(alias=alias, digest=digest))
    return BundleSet(**halves)


def a_session(store: RunningStore, bundles: BundleSet, **changes: object) -> SessionSpec:
    """Return a session of ``close_ticket``, with changes by field name."""
    values: dict[str, object] = {
        "run": RUN,
        "ordinal": 0,
        "attempt": 1,
        "task": "close_ticket",
        "rollout": 0,
        "seed": 7,
        "deadline_seconds": 60,
        "seal_wait_seconds": 20,
        "bundles": bundles.agent,
        "store": store.url,
    }
    return SessionSpec.model_validate(values | changes)


@dataclass
class RunningWorld:
    """The process of a world container; ``folder`` is what outlives its restarts."""

    folder: Path
    session: SessionSpec
    token: str
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def message(self) -> WorldMessage | None:
        """The termination message as it is now."""
        file = self.folder / "termination-log"
        text = file.read_text() if file.exists() else ""
        return WorldMessage.model_validate_json(text) if text else None

    @property
    def log(self) -> str:
        """What it has logged since it was last started."""
        return (self.folder / "log").read_text()

    @property
    def url(self) -> str:
        """Base URL; known once it listens."""
        found = re.search(r"serving url=(http://127\.0\.0\.1:\d+)", self.log)
        if not found:
            raise RuntimeError("the world does not listen")
        return found[1]

    def start(self) -> None:
        """Start the process and wait until it listens or has ended."""
        state = self.folder / "state"
        state.mkdir(parents=True, exist_ok=True)
        (self.folder / "token").write_text(self.token)
        environment = {
            SESSION_ENV: self.session.canonical().decode(),
            TOKEN_FILE_ENV: str(self.folder / "token"),
            "WAVETANK_STATE_DIR": str(state),
            "WAVETANK_TERMINATION_LOG": str(self.folder / "termination-log"),
            "WAVETANK_HOST": "127.0.0.1",
            "WAVETANK_PORT": "0",
            **self.environment,
        }
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "wavetank.worlds"], env=environment, stdout=log, stderr=log
            )
        wait_until(lambda: "serving url" in self.log or self.ended())

    def ended(self) -> bool:
        """Return whether the process has ended."""
        return self.process is not None and self.process.poll() is not None

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        if self.process is None:
            raise RuntimeError("the world is not running: call start()")
        self.process.send_signal(number)
        return self.process.wait(timeout=20)


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Look again and again until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("what was waited for did not come")
        time.sleep(0.01)
