"""Settings of the store, read from its environment once, at the start."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wavetank.core.errors import Finding, Severity, SpecError

MIB = 1024 * 1024


@dataclass(frozen=True)
class Settings:
    """How one store process runs."""

    folder: Path
    """WAVETANK_STORE_DIR: where uploads arrive, and the objects too unless ``url`` says else."""
    public_key_file: Path
    """WAVETANK_PUBLIC_KEY_FILE: PEM; may appear or change while the store runs."""
    url: str = ""
    """WAVETANK_STORE_URL: where objects are, as obstore reads it (``s3://bucket``); empty for the
    folder. Credentials come from the variables of the object store's own kind."""
    host: str = "0.0.0.0"  # noqa: S104 - Pods reach it by its Service
    """WAVETANK_STORE_HOST."""
    port: int = 8081
    """WAVETANK_STORE_LISTEN_PORT; 0 takes a free one."""
    max_object_bytes: int = 1024 * MIB
    """WAVETANK_STORE_MAX_OBJECT_BYTES: largest bundle, snapshot or log."""
    min_free_bytes: int = 64 * MIB
    """WAVETANK_STORE_MIN_FREE_BYTES: uploads are refused (507) when less would stay free."""
    idle_seconds: int = 60
    """WAVETANK_STORE_IDLE_SECONDS: an upload of which nothing arrives for so long is dropped."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings.

    Raises:
        SpecError: With every variable that is missing or no number.
    """
    findings: list[Finding] = []

    def text(name: str) -> str:
        value = environment.get(name, "")
        if not value:
            findings.append(Finding(Severity.FAULT, name, "is not set: give a path"))
        return value

    def number(name: str, default: int) -> int:
        value = environment.get(name, "") or str(default)
        if not value.isascii() or not value.isdecimal():
            findings.append(
                Finding(Severity.FAULT, name, f"is {value!r}: give a whole number, at least 0")
            )
            return default
        return int(value)

    settings = Settings(
        folder=Path(text("WAVETANK_STORE_DIR")),
        public_key_file=Path(text("WAVETANK_PUBLIC_KEY_FILE")),
        url=environment.get("WAVETANK_STORE_URL", ""),
        host=environment.get("WAVETANK_STORE_HOST", "") or Settings.host,
        port=number("WAVETANK_STORE_LISTEN_PORT", Settings.port),
        max_object_bytes=number("WAVETANK_STORE_MAX_OBJECT_BYTES", Settings.max_object_bytes),
        min_free_bytes=number("WAVETANK_STORE_MIN_FREE_BYTES", Settings.min_free_bytes),
        idle_seconds=number("WAVETANK_STORE_IDLE_SECONDS", Settings.idle_seconds),
    )
    if findings:
        raise SpecError(findings)
    return settings
