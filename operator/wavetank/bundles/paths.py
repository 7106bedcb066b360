"""Which file names a bundle may hold: those that mean the same on every system."""

import unicodedata
from collections.abc import Iterable

PATH_BYTES = 512
SEGMENT_BYTES = 255
"""What Linux file systems take: NAME_MAX."""
DEPTH = 16

# Control and format characters (NUL, line ends, right-to-left marks, zero-width ones), lone
# surrogates, unassigned and private ones, line separators: a name must show what it is.
_HIDDEN = {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}


def path_fault(path: str) -> str | None:
    """Return what is wrong with a file's path in a bundle, or None.

    >>> path_fault("schema/world.json")
    >>> path_fault("../etc/passwd")
    "has a segment '..': write the path from the bundle's root, without '.', '..' or '//'"
    """
    segments = path.split("/")
    if any(unicodedata.category(char) in _HIDDEN for char in path):
        return "holds a control, formatting or unassigned character: rename it"
    if path.startswith("/"):
        return "is absolute: write the path from the bundle's root"
    if "\\" in path:
        return "holds a backslash: separate folders by '/'"
    for segment in segments:
        if segment in ("", ".", ".."):
            return (
                f"has a segment {segment!r}: write the path from the bundle's root, without '.', "
                "'..' or '//'"
            )
        if len(segment.encode()) > SEGMENT_BYTES:
            return f"has a segment of more than {SEGMENT_BYTES} bytes: shorten it"
    if len(path.encode()) > PATH_BYTES or len(segments) > DEPTH:
        return f"is longer than {PATH_BYTES} bytes or deeper than {DEPTH} folders: shorten it"
    return None


def shown(path: str) -> str:
    r"""Return a path as a message may hold it: quoted and escaped if it is not plain to see.

    >>> shown("a/b"), shown("a\n")
    ('a/b', "'a\\n'")
    """
    return path if path.isprintable() and path else repr(path)


class Clashes:
    """Finds paths that would meet on some file system: twice, by case, or file against folder."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, bool]] = {}
        self._files: set[str] = set()

    def add(self, path: str) -> str | None:
        """Return what ``path`` clashes with, in words, or None; remembers it."""
        segments = path.split("/")
        for end in range(1, len(segments) + 1):
            name = segments[end - 1]
            is_file = end == len(segments)
            key = unicodedata.normalize("NFKC", "/".join(segments[:end])).casefold()
            before, was_file = self._seen.setdefault(key, (name, is_file))
            if before != name:
                return f"has {name!r} where another path has {before!r}: rename one of them"
            if is_file != was_file:
                return f"needs {name!r} to be both a file and a folder: rename one of them"
        if path in self._files:
            return "is there twice: keep one"
        self._files.add(path)
        return None


def clash_faults(paths: Iterable[str]) -> list[tuple[str, str]]:
    """Return (path, what is wrong) for every path that clashes with one before it."""
    clashes = Clashes()
    return [(path, fault) for path in paths if (fault := clashes.add(path))]
