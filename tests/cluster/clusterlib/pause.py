"""The sandbox image: one static program, packed without any image builder."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

from clusterlib import settings, shell
from clusterlib.settings import Settings


def import_image(folders: Settings) -> None:
    """Import the sandbox image into the cluster's containerd unless it is there."""
    if settings.PAUSE_IMAGE in images(folders):
        return
    archive = folders.pause / "image.tar"
    if not archive.exists():
        _pack(folders.pause / "pause", archive)
    ctr(folders, "images", "import", "--no-unpack", str(archive))


def images(folders: Settings) -> set[str]:
    """Return the names of the images that the cluster's containerd has."""
    return set(ctr(folders, "images", "list", "--quiet").split())


def ctr(folders: Settings, *argv: str) -> str:
    """Run containerd's client on the cluster's own containerd, in the kubelet's namespace."""
    return shell.run(
        ["ctr", "--address", str(folders.containerd_socket), "--namespace", "k8s.io", *argv]
    )


def _pack(program: Path, archive: Path) -> None:
    """Write an image archive in Docker's format: a layer, a configuration and a manifest that names both."""
    layer = _tar({"pause": (program.read_bytes(), 0o755)})
    digest = hashlib.sha256(layer).hexdigest()
    configuration = {
        "architecture": "amd64",
        "os": "linux",
        # Not root: a Pod that must not run as root can then use this image as it is.
        "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [
        {"Config": "config.json", "RepoTags": [settings.PAUSE_IMAGE], "Layers": ["layer.tar"]}
    ]
    content = {
        "config.json": (json.dumps(configuration).encode(), 0o644),
        "manifest.json": (json.dumps(manifest).encode(), 0o644),
        "layer.tar": (layer, 0o644),
    }
    with shell.whole_file(archive) as temporary:
        temporary.write_bytes(_tar(content))


def _tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, (content, mode) in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
