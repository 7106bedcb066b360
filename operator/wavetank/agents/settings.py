"""What wrapper and agents are told by their environment; see ``world_http`` on what is imported."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class WrapperSettings:
    """What the wrapper is told."""

    world_url: str
    """WAVETANK_WORLD_URL: where the world of this Pod listens."""
    environment: Mapping[str, str]
    """What the agent's process gets, before the wrapper's own additions."""
    is_init: bool
    """True when this is process 1 of its container: every other process in it is the agent's."""


@dataclass(frozen=True)
class ReplaySettings:
    """What the replaying agent is told."""

    world_url: str
    """WAVETANK_WORLD_URL."""
    solution_file: Path
    """WAVETANK_SOLUTION_FILE: the calls, as JSON."""
    output: Path
    """WAVETANK_OUTPUT_DIR: where ``final_answer.txt`` goes."""


@dataclass(frozen=True)
class SolutionSettings:
    """What the init container that fetches a solution is told."""

    wanted: str
    """WAVETANK_SOLUTION: a ``SolutionSpec`` as JSON."""
    token_file: Path
    """WAVETANK_TOKEN_FILE."""
    target: Path
    """WAVETANK_SOLUTION_FILE: where the calls go."""


def read_wrapper_settings() -> WrapperSettings:
    """Return the settings."""
    environment = dict(os.environ)
    url = environment.get("WAVETANK_WORLD_URL", "http://127.0.0.1:8080")
    return WrapperSettings(url.rstrip("/"), environment, os.getpid() == 1)


def read_replay_settings() -> ReplaySettings:
    """Return the settings; the wrapper sets them all but the file."""
    return ReplaySettings(
        world_url=os.environ["WAVETANK_WORLD_URL"],
        solution_file=Path(os.environ.get("WAVETANK_SOLUTION_FILE", "/solution/calls.json")),
        output=Path(os.environ["WAVETANK_OUTPUT_DIR"]),
    )


def read_solution_settings() -> SolutionSettings:
    """Return the settings."""
    return SolutionSettings(
        wanted=os.environ["WAVETANK_SOLUTION"],
        token_file=Path(os.environ.get("WAVETANK_TOKEN_FILE", "/var/run/wavetank/token")),
        target=Path(os.environ.get("WAVETANK_SOLUTION_FILE", "/solution/calls.json")),
    )
