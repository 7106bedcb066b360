"""What all tests on the real cluster share: where it is, a client, the CRDs, a namespace of one's own."""

import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from wavetank.kube.client import Client, open_client
from wavetank.kube.connection import Kubeconfig

HERE = Path(__file__).parent
CRDS = HERE.parents[1] / "crds"


@pytest.fixture(scope="session")
def kubeconfig() -> Path:
    """The file that KUBECONFIG names, else that of the cluster that cluster.py started."""
    if given := os.environ.get("KUBECONFIG"):
        return Path(given)
    asked = subprocess.run(
        [sys.executable, HERE / "cluster.py", "kubeconfig"],
        check=True,
        capture_output=True,
        text=True,
    )
    return Path(asked.stdout.strip())


@pytest.fixture(scope="session")
def crds(kubeconfig: Path) -> None:
    """The CRDs of this checkout, established."""
    kubectl(kubeconfig, "apply", "--server-side", "--force-conflicts", "-f", CRDS)
    kubectl(kubeconfig, "wait", "--for=condition=Established", "-f", CRDS)


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with open_client(Kubeconfig(kubeconfig)) as opened:
        yield opened


@pytest.fixture(scope="module")
def namespace(kubeconfig: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace for one module, under the restricted Pod Security Standard; gone afterwards."""
    module = request.path.stem.removeprefix("test_").replace("_", "-")
    name = f"wt-{module}-{uuid.uuid4().hex[:6]}"
    kubectl(kubeconfig, "create", "namespace", name)
    enforce = "pod-security.kubernetes.io/enforce=restricted"
    kubectl(kubeconfig, "label", "namespace", name, enforce)
    yield name
    kubectl(kubeconfig, "delete", "namespace", name, "--wait=false")


def kubectl(kubeconfig: Path, *arguments: str | Path) -> str:
    ended = subprocess.run(
        ["kubectl", "--kubeconfig", kubeconfig, *arguments],
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
