"""What a push brings: a folder and the worlds it is linked to, read, checked and packed.

Everything that can be wrong with the files is found here, before anything is written.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from wavetank.bundles import pack
from wavetank.bundles.pack import Files
from wavetank.bundles.world import linked_folders
from wavetank.bundles.world import read as read_world
from wavetank.bundles.world.config import CONFIG_FILE
from wavetank.core.errors import Finding, Severity, SpecError

_NAME_LENGTH = 63
"""Longest name of a world."""


@dataclass(frozen=True)
class Piece:
    """One world to bring."""

    name: str
    """Of the World."""
    folder: Path
    """As people are told of it: relative to where they are, if it is below."""
    files: Files
    links: dict[str, str]
    """Names of the Worlds it is linked to, by alias."""
    has_tasks: bool

    @property
    def digest(self) -> str:
        """Return the bundle's digest."""
        return pack.digest_of(self.files)


def kind_of(folder: Path) -> str | None:
    """Return what a folder holds, by the files in it; None when it is nothing that is known."""
    return "world" if (folder / CONFIG_FILE).is_file() else None


def pieces_of(folder: Path, name: str | None) -> list[Piece]:
    """Return the worlds to bring, those that others are linked to first, the folder's own last.

    Args:
        folder: Of the benchmark.
        name: Instead of the name in its ``gateway-env.toml``.

    Raises:
        SpecError: With everything that is wrong in any of them.
    """
    tree = _Tree()
    tree.visit(folder, "", name)
    names = [piece.name for piece in tree.pieces.values()]
    for piece in tree.pieces.values():
        if names.count(piece.name) > 1:
            words = f"another of these worlds is named {piece.name!r} too: change [world] name, or "
            words += "give --name for the benchmark's own."
            tree.found(Finding(Severity.FAULT, str(piece.folder / CONFIG_FILE), words))
    faults = [finding for finding in tree.findings if finding.severity is Severity.FAULT]
    if faults:
        raise SpecError(faults)
    return list(tree.pieces.values())


@dataclass
class _Tree:
    """Walks from a world to those it is linked to; each folder is visited once."""

    pieces: dict[Path, Piece] = field(default_factory=dict)
    findings: dict[Finding, None] = field(default_factory=dict)
    _names: dict[Path, str] = field(default_factory=dict)

    def found(self, finding: Finding) -> None:
        self.findings.setdefault(finding)

    def visit(self, folder: Path, prefix: str, name: str | None = None) -> str:
        """Take in a folder and what it is linked to; return the name of its World."""
        place = folder.resolve()
        if place in self._names:
            return self._names[place]
        linked = linked_folders(folder)
        bundle = read_world(folder, linked)
        for finding in bundle.findings:
            self.found(Finding(finding.severity, f"{prefix}{finding.path}", finding.message))
        # Known before its links are visited, so that a cycle ends.
        own = self._names[place] = name or bundle.main.name
        links = {
            alias: self.visit(path, f"{prefix}linked/{alias}/") for alias, path in linked.items()
        }
        shown = place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place
        self.pieces[place] = Piece(own, shown, self._files(shown), links, bool(bundle.tasks))
        return own

    def _files(self, folder: Path) -> Files:
        try:
            return pack.read_folder(folder)
        except SpecError as error:
            for finding in error.findings:
                self.found(Finding(finding.severity, str(folder / finding.path), finding.message))
            return {}


def slug_of(name: str) -> str:
    """Return an object's name for a folder's; empty when nothing of it can be one.

    >>> slug_of("CRM bench")
    'crm-bench'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:_NAME_LENGTH].strip("-")
