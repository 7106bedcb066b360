"""Reading the files of a bundle: text, JSON, TOML; what cannot be read becomes a finding."""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

from wavetank.bundles.world.place import Place

MAX_BYTES = 64 * 1024 * 1024
"""Largest file that is read: the seed data is held in memory by every session."""


def read_text(path: Path, place: Place) -> str | None:
    """Return a file's text, or None with a finding."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            place.fault(f"the file has {size} bytes; at most {MAX_BYTES} are read.")
            return None
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        place.fault(f"byte {error.start} is not UTF-8. Save the file as UTF-8.")
    except OSError as error:
        place.fault(f"the file cannot be read: {error.strerror or error}.")
    return None


def read_json(path: Path, place: Place) -> object:
    """Return a file's JSON value, or None with a finding."""
    text = read_text(path, place)
    if text is None:
        return None
    try:
        return parse_json(text)
    except RecursionError:
        place.fault("the JSON is nested too deeply to be read.")
    except ValueError as error:
        place.fault(f"this is not JSON: {error}.")
    return None


def parse_json(text: str) -> object:
    """Return a JSON value.

    Raises:
        ValueError: Also for keys given twice, NaN and Infinity: silently they would lose data.
        RecursionError: For what is nested too deeply.
    """
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)


def read_toml(path: Path, place: Place) -> object:
    """Return a file's TOML table, or None with a finding."""
    text = read_text(path, place)
    if text is None:
        return None
    try:
        return tomllib.loads(text)
    except RecursionError:
        place.fault("the TOML is nested too deeply to be read.")
    except ValueError as error:
        place.fault(f"this is not TOML: {error}.")
    return None


def listed(folder: Path, place: Place) -> Sequence[Path]:
    """Return what a folder holds, by name; nothing when there is no such folder."""
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return ()
    except NotADirectoryError:
        place.fault("this is a file; it must be a folder.")
    except OSError as error:
        place.fault(f"the folder cannot be read: {error.strerror or error}.")
    return ()


def inside(root: Path, given: str) -> Path | None:
    """Return the file that a relative path names, or None when it is not a file in ``root``."""
    target = resolved(root, given)
    if target is None or not target.is_relative_to(root.resolve()) or not target.is_file():
        return None
    return target


def resolved(root: Path, given: str) -> Path | None:
    """Return where a relative path leads, or None when it leads nowhere."""
    try:
        target = (root / given).resolve()
        target.stat()
    except (OSError, RuntimeError, ValueError):  # absent, too long; a loop of links; a NUL in it
        return None
    return target


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is given twice in one object")
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")
