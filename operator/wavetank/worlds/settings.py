"""Settings of the world container, read from its environment once, at the start."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pydantic

from wavetank.api.wire import SESSION_ENV, TOKEN_FILE_ENV, SessionSpec
from wavetank.core.errors import Finding, Severity, SpecError


@dataclass(frozen=True)
class Settings:
    """How one world container runs."""

    session: SessionSpec
    """WAVETANK_SESSION: what to serve, as JSON."""
    token_file: Path
    """WAVETANK_TOKEN_FILE: holds the store token; it may be renewed while this runs."""
    state: Path
    """WAVETANK_STATE_DIR: a folder that outlives a restart of the container but not the Pod."""
    termination_log: Path
    """WAVETANK_TERMINATION_LOG: where the kubelet reads the container's last words."""
    host: str
    """WAVETANK_HOST."""
    port: int
    """WAVETANK_PORT."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings.

    Raises:
        SpecError: When the session is missing or is none.
    """
    try:
        session = SessionSpec.model_validate_json(environment.get(SESSION_ENV, ""))
    except pydantic.ValidationError as error:
        text = f"is no SessionSpec: {error}"
        raise SpecError([Finding(Severity.FAULT, SESSION_ENV, text)]) from error
    return Settings(
        session=session,
        token_file=Path(environment.get(TOKEN_FILE_ENV, "/var/run/wavetank/token")),
        state=Path(environment.get("WAVETANK_STATE_DIR", "/state")),
        termination_log=Path(environment.get("WAVETANK_TERMINATION_LOG", "/dev/termination-log")),
        host=environment.get("WAVETANK_HOST", "0.0.0.0"),  # noqa: S104 - the kubelet probes it
        port=int(environment.get("WAVETANK_PORT", "8080")),
    )
