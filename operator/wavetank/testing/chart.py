"""The Helm chart as it renders for the value sets in ``tests/chart/values``.

``python -m wavetank.testing.chart`` writes anew what tests compare it with; `make chart` calls it.
"""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import yaml

from wavetank.kube.objects import Manifest

REPOSITORY = Path(__file__).parents[3]
CHART = REPOSITORY / "charts" / "wavetank"
VALUES = REPOSITORY / "tests" / "chart" / "values"
GOLDEN = {
    "default": REPOSITORY / "tests" / "chart" / "golden" / "default.yaml",
    "namespaced": REPOSITORY / "tests" / "chart" / "golden" / "namespaced.yaml",
    "demo": REPOSITORY / "tests" / "cluster" / "demo-install.yaml",
}
"""What a set of values renders to, by its name. The demo applies its own, without helm."""

NAMESPACE = "wavetank-system"
DEMO_FOLDER = "/var/lib/wavetank-store"

# helm as the module proxy has it does not know which Kubernetes it is for.
_KUBERNETES = "1.34.0"

_DEMO_HEAD = f"""\
# Written by `make chart` from charts/wavetank and tests/chart/values/demo.yaml.
# For a cluster of one node on which the folder {DEMO_FOLDER} exists; apply crds/ first.
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""


@cache
def helm() -> str:
    """Return the path of helm; one is built where there is none."""
    found = shutil.which("helm")
    if found is not None:
        return found
    built = subprocess.run(  # noqa: S603 - a script of this repository
        [sys.executable, REPOSITORY / "tests" / "cluster" / "cluster.py", "build-helm"],
        check=True,
        capture_output=True,
        text=True,
    )
    return built.stdout.strip()


def helm_says(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Call helm and return what it said, whether it refused or not."""
    return subprocess.run(  # noqa: S603 - helm, with a test's arguments
        [helm(), *arguments], check=False, capture_output=True, text=True
    )


def template(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Render the chart as release ``wavetank``; a ``--namespace`` among the arguments wins."""
    command: list[str | Path] = ["template", "wavetank", CHART, "--namespace", NAMESPACE]
    return helm_says(*command, "--kube-version", _KUBERNETES, *arguments)


def file_of(name: str) -> Path:
    """Return the file of a set of values."""
    return VALUES / f"{name}.yaml"


def rendered(name: str) -> str:
    """Return what a set of values renders to, without the CRDs: they are compared with ``crds/``.

    Raises:
        RuntimeError: If helm refuses; with its words.
    """
    done = template("--values", file_of(name), "--set", "crds.install=false")
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return _DEMO_HEAD + done.stdout if name == "demo" else done.stdout


def documents(text: str) -> list[Manifest]:
    """Return the objects in what was rendered."""
    return [document for document in yaml.safe_load_all(text) if document is not None]


if __name__ == "__main__":
    for each, file in GOLDEN.items():
        file.write_text(rendered(each))
