"""What the operator is told from outside: read once from the environment, passed down.

The chart sets every variable; the names and defaults stand here.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wavetank.controller.logs import LogFormat
from wavetank.core.errors import Finding, Severity, SpecError
from wavetank.kube.connection import Kubeconfig


@dataclass(frozen=True)
class Settings:
    """The operator's settings."""

    namespace: str
    """The operator's own namespace: its Secret, the public key and the store are there."""
    image_world: str
    """Image of the container that serves a world."""
    image_agent: str
    """Image of the built-in agents."""
    image_verifier: str
    """Image of verifier and check Jobs."""
    version: str
    """The release, for ``status.resolved.operatorVersion`` and ``wavetank_build_info``."""
    watch_namespace: str | None = None
    """The one namespace to serve; None means all."""
    store_service: str = "wavetank-store"
    """Name of the store's Service in the operator's own namespace."""
    resync_seconds: float = 120.0
    """How often all objects are listed, to find what no event told of. Seconds; at least 1."""
    write_rate: float = 50.0
    """Writes to the API server per second in the long run; more than 0."""
    workers: int = 8
    """How many objects are reconciled at once; at least 1."""
    health_port: int = 8080
    """Port of /healthz, /readyz and /metrics; 0 takes a free one."""
    silence_seconds: float = 300.0
    """/healthz fails when a watch heard nothing for so long. Seconds; at least 30."""
    log_format: LogFormat = LogFormat.TEXT
    """``text`` or ``json``."""
    log_level: str = "INFO"
    """The lowest level that is logged."""
    kubeconfig: Kubeconfig | None = None
    """How to reach the API server from outside; None means as a Pod of the cluster."""


_PREFIX = "WAVETANK_"
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings, all faults at once.

    Args:
        environment: Instead of the process's own.

    Raises:
        SpecError: If a variable is missing or has a value that cannot be used.
    """
    reader = _Reader(os.environ if environment is None else environment)
    kubeconfig = reader.text("KUBECONFIG", "")
    context = reader.text("CONTEXT", "")
    settings = Settings(
        namespace=reader.text("NAMESPACE"),
        image_world=reader.text("IMAGE_WORLD"),
        image_agent=reader.text("IMAGE_AGENT"),
        image_verifier=reader.text("IMAGE_VERIFIER"),
        version=reader.text("VERSION"),
        watch_namespace=reader.text("WATCH_NAMESPACE", "") or None,
        store_service=reader.text("STORE_SERVICE", Settings.store_service),
        resync_seconds=reader.number("RESYNC_SECONDS", Settings.resync_seconds, least=1),
        write_rate=reader.number("WRITE_RATE", Settings.write_rate, least=0.1),
        workers=int(reader.number("WORKERS", Settings.workers, least=1)),
        health_port=int(reader.number("HEALTH_PORT", Settings.health_port, least=0)),
        silence_seconds=reader.number("SILENCE_SECONDS", Settings.silence_seconds, least=30),
        log_format=LogFormat(
            reader.one_of("LOG_FORMAT", Settings.log_format, tuple(LogFormat), str.lower)
        ),
        log_level=reader.one_of("LOG_LEVEL", Settings.log_level, _LEVELS, str.upper),
        kubeconfig=Kubeconfig(Path(kubeconfig), context or None) if kubeconfig else None,
    )
    if reader.findings:
        raise SpecError(reader.findings)
    return settings


class _Reader:
    """Reads variables and keeps what is wrong with them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.findings: list[Finding] = []

    def text(self, name: str, default: str | None = None) -> str:
        value = self._environment.get(_PREFIX + name, "").strip()
        if value or default is not None:
            return value or default or ""
        self._fault(name, "is not set. The chart sets it; without the chart, export it.")
        return ""

    def number(self, name: str, default: float, *, least: float) -> float:
        text = self.text(name, str(default))
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not value >= least:
            self._fault(name, f"is '{text}'. Give a number of at least {least:g}.")
            return default
        return value

    def one_of(
        self, name: str, default: str, known: tuple[str, ...], form: Callable[[str], str]
    ) -> str:
        value = form(self.text(name, default))
        if value not in known:
            self._fault(name, f"is '{value}'. Give one of: {', '.join(known)}.")
            return default
        return value

    def _fault(self, name: str, message: str) -> None:
        self.findings.append(Finding(Severity.FAULT, _PREFIX + name, message))
