"""Where the cluster keeps its files, and the addresses and versions that its parts agree on.

The one module that reads the environment. Everything else takes a ``Settings``.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

KUBERNETES_VERSION = "v1.34.4"
"""The newest minor version whose kubelet still accepts cgroup v1. Must agree with go.mod."""

NODE_NAME = "wavetank"
BRIDGE = "wavetank0"
"""The bridge that every Pod hangs on. At most 15 characters, the kernel's limit for an interface's name."""

NODE_ADDRESS = "10.244.0.1"
"""The bridge's address: the node's, the API server's and the Pods' gateway."""

POD_NETWORK = "10.244.0.0/16"
POD_MASK_BITS = 22
"""Pods of the one node get 10.244.0.0/22: 1,021 addresses, so that 250 Pods can come and go without waiting."""

NODE_POD_NETWORK = f"10.244.0.0/{POD_MASK_BITS}"
SERVICE_NETWORK = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
API_PORT = 6443
ETCD_PORT = 23790
ETCD_PEER_PORT = 23800
"""Not etcd's usual 2379 and 2380: an etcd of the machine's own may have those."""

CGROUP = "wavetank"
"""Every process of the cluster lives below this cgroup, so `stop` finds the Pods' processes too."""

PAUSE_IMAGE = "wavetank.local/pause:1"
BASE_IMAGE = "localhost/wavetank-base:bookworm"
IMAGE_PREFIX = "wavetank.local/"


@dataclass(frozen=True)
class Settings:
    """The folders of one cluster."""

    state: Path
    """Everything of the running cluster: certificates, etcd's data, images, logs. One cluster per machine."""
    cache: Path
    """What may outlive the cluster: built programs, the base image, wheels."""
    repository: Path
    """The repository's root: the context in which images are built."""

    @property
    def sources(self) -> Path:
        """The folder with go.mod and the programs' sources."""
        return self.repository / "tests" / "cluster"

    @property
    def programs(self) -> Path:
        """The folder with the built programs; its name changes when what they are built from changes."""
        inputs = [self.sources / name for name in ("go.mod", "go.sum", "multicall/main.go")]
        return self.cache / "kubernetes" / digest_of(inputs)

    @property
    def etcd(self) -> Path:
        """The folder with the etcd program."""
        return self.cache / "etcd-3.5.1"

    @property
    def pause(self) -> Path:
        """The folder with the sandbox program and its image archive."""
        return self.cache / "pause" / digest_of([self.sources / "pause" / "main.go"])

    @property
    def helm(self) -> Path:
        """The folder with the helm program."""
        inputs = [self.sources / "helm" / name for name in ("go.mod", "go.sum")]
        return self.cache / "helm" / digest_of(inputs)

    @property
    def certificates(self) -> Path:
        """The folder with keys and certificates."""
        return self.state / "certificates"

    @property
    def config(self) -> Path:
        """The folder with the programs' configuration."""
        return self.state / "config"

    @property
    def logs(self) -> Path:
        """The folder with one log per program."""
        return self.state / "logs"

    @property
    def run(self) -> Path:
        """The folder with pid files and sockets."""
        return self.state / "run"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.state / "kubeconfig"

    @property
    def containerd_socket(self) -> Path:
        """The socket of the cluster's own containerd."""
        return self.run / "containerd.sock"

    @property
    def buildah_root(self) -> Path:
        """buildah's storage. A cache: images are built again from it when the state is gone."""
        return self.cache / "buildah"


def from_environment(state: Path | None, cache: Path | None) -> Settings:
    """Return the settings: an option goes before the environment, which goes before the default."""
    default_cache = Path.home() / ".cache" / "wavetank"
    return Settings(
        state=state or Path(os.environ.get("WAVETANK_STATE") or "/var/lib/wavetank-cluster"),
        cache=cache or Path(os.environ.get("WAVETANK_CACHE") or default_cache),
        repository=Path(__file__).resolve().parents[3],
    )


def program_environment(**extra: str) -> dict[str, str]:
    """Return the environment for a child process, with the folders of system programs on its PATH."""
    path = os.environ.get("PATH", "")
    return {**os.environ, "PATH": f"{path}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin", **extra}


def digest_of(files: list[Path]) -> str:
    """Return 16 hexadecimal digits that change when the content of one of the files changes."""
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes() if file.is_file() else b""
        digest.update(f"{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]
