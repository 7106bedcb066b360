"""A local Run's ledger: one file for each generation, one line for each entry, only ever appended.

A line is a key of ``api.ledger``, a blank, and the entry's JSON. It is on the disk before anything
is built on it, so neither Ctrl-C nor ``kill -9`` loses what was graded. Only the process that holds
the Run's lock writes.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from wavetank.api.ledger import LedgerDamaged, decode, encode, key_of, ledger_of
from wavetank.core.actions import Entry
from wavetank.core.observed import Ledger


class FileLedger:
    """The ledger of one generation."""

    def __init__(self, file: Path, task_ids: Sequence[str]) -> None:
        """Read what is there.

        Raises:
            LedgerDamaged: If a line is not as it was written.
        """
        self._file = file
        self._task_ids = task_ids
        self._entries, self._size = _read(file)
        self._view: Ledger | None = None

    def view(self) -> Ledger:
        """Return all entries."""
        if self._view is None:
            self._view = ledger_of(self._entries.values())
        return self._view

    def write(self, entries: Sequence[Entry], now: float) -> int:
        """Add the entries whose key is not there yet, through to the disk; return how many."""
        missing = {key_of(e): e for e in entries if key_of(e) not in self._entries}
        if not missing:
            return 0
        lines = [f"{key} {encode(entry, self._task_ids, now)}\n" for key, entry in missing.items()]
        data = "".join(lines).encode()
        is_new = not self._file.exists()
        with self._file.open("ab") as file:
            # A process that was killed while it wrote has left half a line.
            file.truncate(self._size)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync_folder(self._file.parent)
        self._size += len(data)
        self._entries |= missing
        self._view = None
        return len(missing)


def read_entries(file: Path) -> dict[str, str]:
    """Return the entries of a ledger as they are written, by key; half a line at the end is none."""
    if not file.exists():
        return {}
    entries: dict[str, str] = {}
    # Not splitlines(): JSON leaves the line separators of other scripts as they are.
    for line in _whole(file.read_bytes()).decode(errors="replace").split("\n")[:-1]:
        key, _, text = line.partition(" ")
        entries.setdefault(key, text)
    return entries


def _read(file: Path) -> tuple[dict[str, Entry], int]:
    entries: dict[str, Entry] = {}
    for key, text in read_entries(file).items():
        try:
            entries[key] = decode(str(file), key, text)
        except LedgerDamaged as error:
            words = f"{error} Or, of a local Run: delete its folder {file.parent}."
            raise LedgerDamaged(words) from error
    return entries, len(_whole(file.read_bytes())) if file.exists() else 0


def _whole(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
