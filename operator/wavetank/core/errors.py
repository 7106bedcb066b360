"""Whose fault decides what happens next: the user's, the cluster's, or ours.

``WavetankError`` is the root; catch a leaf.

    WavetankError
      SpecError     what a person wrote cannot work: permanent until it is changed
      ClusterError  the surroundings failed: the same step again, later
      BugError      our own promise is broken: loud, and nothing is written
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters: faults block, warnings inform."""

    FAULT = "fault"
    WARNING = "warning"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong in what a person brought."""

    severity: Severity
    path: str
    """Where: ``file``, ``file: key.path`` or ``spec.tasks[2].verifiers[0]``."""
    message: str
    """What, and how to fix it; values quoted."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class WavetankError(Exception):
    """The root of Wavetank's own errors."""


class SpecError(WavetankError):
    """What a person wrote cannot work. Carries every finding, not only the first."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(str(finding) for finding in findings))


class ClusterError(WavetankError):
    """The surroundings (API server, store) failed: the same step may work later."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message)


class BugError(WavetankError):
    """One of Wavetank's own promises is broken."""
