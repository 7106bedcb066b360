"""What a tool's Google docstring says about the tool and its arguments."""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Returns|Return|Yields|Raises|Examples?|Notes?|Attributes):"
)
_ARGUMENTS = ("Args", "Arguments", "Parameters")
_ENTRY = re.compile(r"(\w+)(?:\s*\([^)]*\))?:\s*(.*)")


@dataclass(frozen=True)
class Described:
    """A docstring's parts."""

    text: str = ""
    """Everything before the first section."""
    arguments: Mapping[str, str] = field(default_factory=dict)


def parse(docstring: str | None) -> Described:
    """Return what a docstring says; empty parts for what it does not.

    >>> parse("Close a ticket.").text
    'Close a ticket.'
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    sections: dict[str, list[str]] = {"": []}
    current = ""
    for line in lines:
        if found := _SECTION.fullmatch(line.rstrip()):
            current = found[1]
        else:
            sections.setdefault(current, []).append(line)
    arguments: dict[str, str] = {}
    for name in _ARGUMENTS:
        arguments |= _entries(sections.get(name, []))
    return Described("\n".join(sections[""]).strip(), arguments)


def _entries(lines: list[str]) -> dict[str, str]:
    """Return ``name: text`` entries, each with the lines indented below it."""
    block = inspect.cleandoc("\n" + "\n".join(lines)).splitlines()
    found: dict[str, str] = {}
    name = ""
    for line in block:
        entry = _ENTRY.fullmatch(line)
        if entry and not line[0].isspace():
            name = entry[1]
            found[name] = entry[2].strip()
        elif name and line.strip():
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found
