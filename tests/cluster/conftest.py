"""What all tests on the real cluster share: where it is, a client, the CRDs, a namespace of one's own."""

import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from wavetank.kube.client import Client, open_client
from wavetank.kube.connection import Kubeconfig

HERE = Path(__file__).parent
CRDS = HERE.parents[1] / "crds"

Kubectl = Callable[..., str]


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
def kubectl(kubeconfig: Path) -> Kubectl:
    """Call kubectl with these arguments and return what it prints."""

    def call(*arguments: str | Path) -> str:
        ended = subprocess.run(
            ["kubectl", "--kubeconfig", kubeconfig, *arguments],
            check=False,
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return call


@pytest.fixture(scope="session")
def crds(kubectl: Kubectl) -> None:
    """The CRDs of this checkout, established."""
    kubectl("apply", "--server-side", "--force-conflicts", "-f", CRDS)
    kubectl("wait", "--for=condition=Established", "-f", CRDS)


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with open_client(Kubeconfig(kubeconfig)) as opened:
        yield opened


@pytest.fixture(scope="module")
def namespace(kubectl: Kubectl, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace for one module, under the restricted Pod Security Standard; gone afterwards."""
    module = request.path.stem.removeprefix("test_").replace("_", "-")
    name = f"wt-{module}-{uuid.uuid4().hex[:6]}"
    kubectl("create", "namespace", name)
    enforce = "pod-security.kubernetes.io/enforce=restricted"
    kubectl("label", "namespace", name, enforce)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def operator(crds: None, kubeconfig: Path, kubectl: Kubectl) -> str:
    """Wavetank as the demo installs it, ready; the name of its namespace."""
    del crds
    script = HERE / "demo.py"
    ended = subprocess.run(
        [sys.executable, script, "install"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return "wavetank-system"
