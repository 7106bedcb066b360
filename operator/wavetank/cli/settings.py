"""What the command line reads from the environment: where the kubeconfig is."""

import os
from pathlib import Path


def kubeconfig_path(given: Path | None) -> Path:
    """Return the kubeconfig to use: the option, else the first file of KUBECONFIG, else ~/.kube."""
    if given is not None:
        return given
    named = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(named) if named else Path.home() / ".kube" / "config"
