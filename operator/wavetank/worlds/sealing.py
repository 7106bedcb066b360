"""Sealing: the end state into the store, then a small seal that fixes it, then the message.

The message is what the operator reads first; the store is asked only when it is missing.
"""

import asyncio
import hashlib
import json
import logging
import sqlite3
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import zstandard

from wavetank.api.wire import Seal, SessionSpec, WorldMessage
from wavetank.core.causes import Cause
from wavetank.store.client import StoreClient, StoreRefused, StoreUnavailable, until
from wavetank.worlds.keeper import Ended
from wavetank.worlds.session import Session, wire_time

_LOG = logging.getLogger("wavetank.worlds")
_REASON_LENGTH = 200
_MESSAGE_LENGTH = 1000


class MessageFile:
    """The container's termination message, and a copy that survives a restart in ``/state``."""

    def __init__(self, path: Path, copy: Path) -> None:
        self._path = path
        self._copy = copy

    def write(self, message: WorldMessage) -> None:
        """Say this from now on."""
        text = message.model_dump_json(by_alias=True, exclude_none=True)
        part = self._copy.with_name(f"{self._copy.name}.part")
        part.write_text(text)
        part.replace(self._copy)
        # In place: the kubelet has mounted this very file.
        self._path.write_text(text)

    def earlier(self) -> WorldMessage | None:
        """Return what this container said before it was restarted."""
        if not self._copy.exists():
            return None
        return WorldMessage.model_validate_json(self._copy.read_bytes())


def world_failed(text: str) -> WorldMessage:
    """Return the message of a world that cannot give an end state."""
    return WorldMessage(cause=Cause.WORLD_FAILED, message=text[:_MESSAGE_LENGTH])


@dataclass(frozen=True)
class Attempt:
    """Whose session is sealed."""

    run: str
    """UID of the Run."""
    ordinal: int
    attempt: int


@dataclass(frozen=True)
class Snapshot:
    """An end state as one file."""

    file: Path
    digest: str
    """``sha256:<hex>`` of its bytes."""
    size: int
    """Bytes."""


class StoreSealer:
    """Seals into the store, trying again while it is away."""

    def __init__(
        self, spec: SessionSpec, store: StoreClient, message: MessageFile, folder: Path
    ) -> None:
        self._spec = spec
        self._store = store
        self._message = message
        self._file = folder / "snapshot.tar.zst"
        self._attempt = Attempt(spec.run, spec.ordinal, spec.attempt)
        self._prefix = f"/v1/runs/{spec.run}/{spec.ordinal}/{spec.attempt}"

    async def seal(self, session: Session, ended: Ended) -> WorldMessage:
        """Put snapshot and seal, write the message, and return it."""
        try:
            snapshot = await asyncio.to_thread(packed, session, ended, self._file)
        except (OSError, sqlite3.Error) as error:  # for instance a full disk
            message = world_failed(f"the end state cannot be written: {error}")
        else:
            message = sealed(self._attempt, session, ended, snapshot)
            message = await self._put(message, snapshot, self._last_try(session))
        self._message.write(message)
        _LOG.info("end end=%s cause=%s message=%r", ended.end, message.cause, message.message)
        return message

    async def keep_log(self, log: str) -> None:
        """Put the agent's output, compressed, if the store takes it."""
        try:
            await self._store.put(f"{self._prefix}/agent-log", zstandard.compress(log.encode()))
        except (StoreUnavailable, StoreRefused) as error:
            _LOG.warning("agent-log is not kept error=%r", str(error))

    async def _put(
        self, message: WorldMessage, snapshot: Snapshot, last_try: float
    ) -> WorldMessage:
        """Put both, and return the message, or another if that cannot be done."""
        seal = message.seal.canonical() if message.seal else b""

        async def once() -> None:
            try:
                await self._store.put(f"{self._prefix}/snapshot", snapshot.file)
                await self._store.put(f"{self._prefix}/seal", seal)
            except StoreUnavailable as error:
                # In case this process is ended before the store is back.
                self._message.write(_unavailable(error))
                raise

        try:
            await until(last_try, once)
        except StoreUnavailable as error:
            return _unavailable(error)
        except StoreRefused as error:
            return world_failed(f"the end state cannot be kept: {error}")
        return message

    def _last_try(self, session: Session) -> float:
        """Return when to give up, on the loop's clock."""
        seconds = float(self._spec.seal_wait_seconds)
        if session.deadline and session.stopped_at:
            seconds += max(0.0, (session.deadline - session.stopped_at).total_seconds())
        return asyncio.get_running_loop().time() + seconds


def sealed(attempt: Attempt, session: Session, ended: Ended, snapshot: Snapshot) -> WorldMessage:
    """Return the message with the seal of a stopped session."""
    stopped = session.stopped_at
    if stopped is None:
        raise RuntimeError("a session is stopped before it is sealed")
    seal = Seal(
        run=attempt.run,
        ordinal=attempt.ordinal,
        attempt=attempt.attempt,
        task=session.opening.task.id,
        end=ended.end,
        reason=ended.report.reason[:_REASON_LENGTH],
        exit_code=ended.report.exit_code,
        snapshot=snapshot.digest,
        snapshot_bytes=snapshot.size,
        calls=session.trajectory.calls,
        started_at=wire_time(session.started_at) if session.started_at else None,
        ended_at=wire_time(stopped),
    )
    return WorldMessage(seal=seal, seal_digest=seal.digest())


def packed(session: Session, ended: Ended, file: Path) -> Snapshot:
    """Write the snapshot of a stopped session as ``tar.zst``.

    Everything goes through files and in pieces: a state can be as large as half of the memory.
    """
    with tempfile.TemporaryDirectory(dir=file.parent) as name:
        folder = Path(name)
        session.dump(folder / "worlds")
        told = {
            "task": session.opening.task.id,
            "finalAnswer": ended.report.final_answer,
            "calls": session.trajectory.calls,
            "end": ended.end,
            "reason": ended.report.reason[:_REASON_LENGTH],
        }
        (folder / "session.json").write_text(json.dumps(told))
        files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.*")}
        _write_archive(file, {**files, "trajectory.jsonl": session.trajectory.path})
    with file.open("rb") as written:
        digest = hashlib.file_digest(written, "sha256").hexdigest()
    return Snapshot(file, f"sha256:{digest}", file.stat().st_size)


def _write_archive(file: Path, files: Mapping[str, Path]) -> None:
    """Write files as ``bundles.pack.unpack`` reads them: sorted, without times and owners."""
    with (
        file.open("wb") as out,
        zstandard.ZstdCompressor().stream_writer(out, closefd=False) as zipped,
        tarfile.open(fileobj=zipped, mode="w|", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, path in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size = path.stat().st_size
            with path.open("rb") as content:
                tar.addfile(info, content)


def _unavailable(error: StoreUnavailable) -> WorldMessage:
    return WorldMessage(
        cause=Cause.STORE_UNAVAILABLE,
        message=f"the end state could not be sealed: {error}"[:_MESSAGE_LENGTH],
    )
