"""The check of a bundle on this machine: the one of the cluster, on folders."""

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from wavetank.api.wire import BundleRef, BundleSet, CheckKind, CheckResult, CheckSpec, digest_of
from wavetank.bundles.world import ReadWorld, linked_folders, read
from wavetank.cli.authoring import fault
from wavetank.core.errors import Finding, Severity
from wavetank.worlds.grading.check import check
from wavetank.worlds.grading.members import MemberLostError

_NO_STORE = BundleSet(
    agent=[], grader=[], solutions=[BundleRef(alias="", digest=digest_of(b"a folder"))]
)
"""Folders have no digest that anyone asks for; that there are solutions is to be said."""


@dataclass(frozen=True)
class Looked:
    """A bundle and what its check found."""

    world: ReadWorld
    result: CheckResult

    @property
    def findings(self) -> list[Finding]:
        """Everything that was found, faults first."""
        return [Finding(each.severity, each.path, each.message) for each in self.result.findings]

    @property
    def faults(self) -> list[Finding]:
        """What forbids to use the bundle."""
        return [each for each in self.findings if each.severity is Severity.FAULT]


def look(folder: Path) -> Looked:
    """Read a bundle, import its handlers and run its verifiers, as a check Job does.

    Raises:
        SpecError: When a verifier's process was killed from outside.
    """
    linked = linked_folders(folder)
    world = read(folder, linked)
    spec = CheckSpec(
        kind=CheckKind.BENCHMARK if world.tasks else CheckKind.WORLD,
        uid="local",
        generation=0,
        bundles=_NO_STORE,
        aliases=sorted(world.main.dependencies),
        store="",
    )
    try:
        # What handlers print must not get between the lines of an answer.
        with redirect_stdout(sys.stderr):
            return Looked(world, check(spec, folder, linked))
    except MemberLostError as error:
        words = "the process of a verifier was killed: is there enough memory? Try again."
        raise fault(str(folder), words) from error
