"""What ``worlds serve`` leaves for ``worlds call``: the token that may grade, by port."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs


def _file(port: int) -> Path:
    folder = platformdirs.user_state_path("wavetank", appauthor=False) / "serving"
    return folder / f"{port}.token"


@contextmanager
def token_left(port: int, token: str) -> Iterator[None]:
    """Leave a token for the time of a block; nobody but the user may read it."""
    file = _file(port)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
        written.write(token)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def token_for(port: int) -> str:
    """Return the token of what this user serves on a port; empty when that is nothing."""
    try:
        return _file(port).read_text()
    except FileNotFoundError:
        return ""
