"""The record of a session's calls, one JSON line each, written as they happen."""

import json
from collections.abc import Mapping
from pathlib import Path

from wavetank.bundles.world import JsonValue

_MAX_BYTES = 64 * 1024 * 1024
"""Beyond this only the size of a call's arguments and result is recorded: an agent that calls in
a loop must not fill the disk that its own seal needs."""


class Trajectory:
    """Appends to a file; the record is complete whenever it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.calls = 0
        """How many calls are recorded."""
        self._bytes = 0
        path.write_bytes(b"")

    def add(self, record: Mapping[str, JsonValue]) -> None:
        """Append one call; its number is added."""
        self.calls += 1
        line = _line({"n": self.calls, **record})
        if self._bytes + len(line) > _MAX_BYTES:
            line = _line({"n": self.calls, **_shortened(record)})
        self._bytes += len(line)
        with self.path.open("ab") as file:
            file.write(line)


def _line(record: Mapping[str, JsonValue]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _shortened(record: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    long = ("arguments", "result", "traceback")
    kept = {key: value for key, value in record.items() if key not in long}
    left_out: dict[str, JsonValue] = {
        key: len(_line({key: record[key]})) for key in long if key in record
    }
    return {**kept, "leftOutBytes": left_out}
