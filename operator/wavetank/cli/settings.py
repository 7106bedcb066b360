"""What the command line reads from the environment: the kubeconfig, and what agents inherit."""

import os
from pathlib import Path


def kubeconfig_path(given: Path | None) -> Path:
    """Return the kubeconfig to use: the option, else KUBECONFIG, else ``~/.kube/config``.

    KUBECONFIG may name several files, as kubectl allows; the path holds them all then.
    """
    if given is not None:
        return given
    named = os.environ.get("KUBECONFIG", "")
    return Path(named) if named else Path.home() / ".kube" / "config"


def files_of(kubeconfig: Path) -> list[Path]:
    """Return the files that a kubeconfig is merged from.

    >>> [str(file) for file in files_of(Path("a:b"))]
    ['a', 'b']
    """
    return [Path(part) for part in str(kubeconfig).split(os.pathsep) if part]


def agent_environment(world_url: str, solution: Path) -> dict[str, str]:
    """Return the environment of an agent that is played on this machine."""
    return {
        **os.environ,
        "WAVETANK_WORLD_URL": world_url,
        "WAVETANK_SOLUTION_FILE": str(solution),
    }
