"""Where in a bundle something stands, and how what is wrong there is said.

Every reading function gets a ``Place`` and reports into it; none raises for bad content.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from wavetank.core.errors import Finding, Severity

_PER_FILE = 200
"""Findings listed of one file; the rest is counted. Nobody mends more between two checks."""
_PATH_LENGTH = 300
_MESSAGE_LENGTH = 1000
"""Lengths that ``api.wire.WireFinding`` can carry."""
_SHOWN_LENGTH = 80


@dataclass
class Sink:
    """Collects findings in the order they are met."""

    findings: list[Finding] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)

    def add(self, file: str, finding: Finding) -> None:
        """Keep a finding, unless its file has more than anyone reads."""
        self._counts[file] += 1
        if self._counts[file] <= _PER_FILE:
            self.findings.append(finding)

    def closed(self) -> tuple[Finding, ...]:
        """Return all findings; a file with too many ends with how many were left out."""
        rest = [
            Finding(Severity.FAULT, file, f"and {count - _PER_FILE} findings more in this file.")
            for file, count in self._counts.items()
            if count > _PER_FILE
        ]
        return (*self.findings, *rest)


@dataclass(frozen=True)
class Place:
    """A file of a bundle, or a value in it."""

    sink: Sink
    file: str
    """Relative to the bundle; a linked world's starts with ``linked/<alias>/``."""
    path: str = ""
    """Like ``tasks[2].verifiers``; empty for the file as a whole."""

    def at(self, key: str | int) -> "Place":
        """Return the place of a key or list item below this one."""
        if isinstance(key, int):
            return replace(self, path=f"{self.path}[{key}]")
        return replace(self, path=f"{self.path}.{key}" if self.path else key)

    def fault(self, message: str) -> None:
        """Report what must be mended before the bundle can be used."""
        self._report(Severity.FAULT, message)

    def warn(self, message: str) -> None:
        """Report what a person should look at."""
        self._report(Severity.WARNING, message)

    def _report(self, severity: Severity, message: str) -> None:
        where = f"{self.file}: {self.path}" if self.path else self.file
        finding = Finding(
            severity, _printable(where, _PATH_LENGTH), _printable(message, _MESSAGE_LENGTH)
        )
        self.sink.add(self.file, finding)


def shown(value: object) -> str:
    """Return a value as people wrote it, cut to what fits a line.

    >>> shown("pendign")
    "'pendign'"
    """
    try:
        text = repr(value[:_SHOWN_LENGTH]) if isinstance(value, str) else repr(value)
    except (RecursionError, ValueError):  # nested too deeply; a number of over 4,300 digits
        text = f"a {type(value).__name__} too large to show"
    return text if len(text) <= _SHOWN_LENGTH else f"{text[: _SHOWN_LENGTH - 3]}..."


def name_one_of(names: Iterable[str]) -> str:
    """Return the sentence that tells what would be right.

    >>> name_one_of(["open", "closed"])
    'Name one of: open, closed.'
    """
    listed = ", ".join(names)
    return f"Name one of: {listed}." if listed else "There is none to name."


def _printable(text: str, length: int) -> str:
    """Return text that is valid UTF-8 and not longer than allowed."""
    clean = text.encode("utf-8", "backslashreplace").decode()
    return clean if len(clean) <= length else f"{clean[: length - 3]}..."
