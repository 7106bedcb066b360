"""What the engine reads from its environment: where it keeps Runs, and what its children get."""

import os
from pathlib import Path

import platformdirs

_PASSED_ON = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "SSL_CERT_FILE", "SYSTEMROOT")
"""What programs need to start at all. The rest stays here: people keep keys in it."""


def runs_folder() -> Path:
    """Return where local Runs are kept, in the user's data folder."""
    return platformdirs.user_data_path("wavetank") / "runs"


def child_environment() -> dict[str, str]:
    """Return what every process of a Run gets, before its own settings."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


def cpu_count() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
