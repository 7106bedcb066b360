"""Building the project's images and importing them into the cluster, each only when its inputs have changed.

Layers go uncompressed into one OCI layout, in which images share what they have in common, and from there into
containerd in one go: compressing the base once for each image took longer than everything else together.
"""

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from clusterlib import base, build, pause, settings, shell, wheels
from clusterlib.settings import Settings

_STEPS_KEPT = 150
"""Cached build steps from which on all are dropped: some ten builds of each image, a few GB at most."""


@dataclass(frozen=True)
class Image:
    """An image that has been built."""

    name: str
    """The folder's name below images/, such as ``operator``."""
    reference: str
    """What a Pod names, such as ``wavetank.local/operator:dev``."""
    digest: str
    """The manifest's, with ``sha256:``."""


def make(
    folders: Settings, names: list[str], tag: str, *, import_into_cluster: bool
) -> list[Image]:
    """Build the named images, or all, and import them if asked to; what is up to date is left as it is.

    Raises:
        ClusterToolError: If a name has no Dockerfile, or a build does not succeed: its output is in the message.
    """
    with build.one_at_a_time(folders):
        recorded = _read_record(folders)
        chosen = names or _all_names(folders)
        # Taken before anything is built: a source that is edited meanwhile makes the next run build again.
        keys = {name: _key(folders, name) for name in chosen}
        stale = [name for name in chosen if recorded.get(name, {}).get("key") != keys[name]]
        if stale:
            base_name = base.make(folders)
            wheels.gather(folders)
            for name in stale:
                recorded[name] = {"key": keys[name], "digest": _build(folders, name, base_name)}
                _write_record(folders, recorded)
            _forget_unused(folders, recorded)
        images = [
            Image(name, f"{settings.IMAGE_PREFIX}{name}:{tag}", recorded[name]["digest"])
            for name in chosen
        ]
        if import_into_cluster:
            _import(folders, images)
        return images


def _all_names(folders: Settings) -> list[str]:
    return sorted(file.parent.name for file in (folders.repository / "images").glob("*/Dockerfile"))


def _dockerfile(folders: Settings, name: str) -> Path:
    file = folders.repository / "images" / name / "Dockerfile"
    if not file.is_file():
        known = ", ".join(_all_names(folders)) or "none yet"
        raise shell.ClusterToolError(f"There is no '{file}'. Images with a Dockerfile: {known}.")
    return file


def _key(folders: Settings, name: str) -> str:
    """Return a digest of everything that goes into an image."""
    folder = _dockerfile(folders, name).parent
    own = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    ]
    ignored = folders.repository / ".dockerignore"
    parts = [base.key(), wheels.package_digest(folders), settings.digest_of([*own, ignored])]
    # All locks: which of them a Dockerfile installs from is its own affair.
    parts.append(settings.digest_of(wheels.locks(folders)))
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def _build(folders: Settings, name: str, base_name: str) -> str:
    """Build one image, copy it into the OCI layout and return its manifest's digest."""
    local = f"localhost/wavetank-{name}"
    options = ["--isolation", "chroot", "--network", "host", "--pull=never", "--format", "oci"]
    # buildah takes a step from its cache without looking into what the step mounts.
    options.append(
        "--no-cache" if "--mount" in _dockerfile(folders, name).read_text() else "--layers"
    )
    options += ["--build-arg", f"BASE={base_name}", "--ignorefile", str(_ignore_file(folders))]
    shell.run_with_progress(
        # Changing the root is the isolation that needs no cgroups, and has no network of its own to switch off:
        # a network namespace around it without any interface does that.
        [
            *("unshare", "--net", *base.buildah(folders), "build", *options, "--tag", local),
            *("--file", str(_dockerfile(folders, name)), str(folders.repository)),
        ],
        f"Building image {name}",
        folders.cache / "logs" / f"image-{name}.log",
        lambda line: line[:60],
    )
    return _store(folders, local)


def _store(folders: Settings, local: str) -> str:
    """Copy an image from buildah's storage into the OCI layout and return its manifest's digest."""
    # Not buildah's own way into an OCI layout: it compresses each layer, shared ones for every image.
    unpacked = folders.cache / "image.part"
    shutil.rmtree(unpacked, ignore_errors=True)
    push = [*base.buildah(folders), "push", "--quiet", "--format", "oci", "--disable-compression"]
    shell.run([*push, local, f"dir:{unpacked}"])
    manifest = (unpacked / "manifest.json").read_bytes()
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    blob = _blob(_layout(folders), digest)
    blob.parent.mkdir(parents=True, exist_ok=True)
    for file in unpacked.iterdir():
        # Blobs are named by their digest; beside them there are only the manifest and a version.
        if len(file.name) == len(digest.removeprefix("sha256:")):
            file.replace(blob.parent / file.name)
    blob.write_bytes(manifest)
    shutil.rmtree(unpacked)
    return digest


def _ignore_file(folders: Settings) -> Path:
    """Return a copy of .dockerignore that lets the wheels through, whatever the repository's own says of them."""
    own = folders.repository / ".dockerignore"
    text = own.read_text() if own.is_file() else "*\n!operator/wavetank\n!images\n"
    file = folders.cache / "dockerignore"
    file.write_text(f"{text}\n!.build\n")
    return file


def _import(folders: Settings, images: list[Image]) -> None:
    """Import the images that containerd does not have under their names with the same digest."""
    if not folders.containerd_socket.exists():
        raise shell.ClusterToolError(
            "The cluster does not run, so there is nothing to import into. Run 'start'."
        )
    present = _present(folders)
    missing = [image for image in images if present.get(image.reference) != image.digest]
    if not missing:
        return
    progress = shell.Progress(f"Importing {', '.join(image.name for image in missing)}")
    # The base and other layers that an image shares with one that is there need not be sent again.
    there = set(pause.ctr(folders, "content", "list", "--quiet").split())
    argv = ["ctr", "--address", str(folders.containerd_socket), "--namespace", "k8s.io"]
    with subprocess.Popen(
        [*argv, "images", "import", "-"],
        env=settings.program_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        if process.stdin is None or process.stderr is None:
            raise AssertionError("Popen was asked for pipes")
        try:
            _write_archive(_layout(folders), missing, process.stdin, without=there)
            process.stdin.close()
        except BrokenPipeError:
            pass  # ctr says below why it stopped reading.
        said = process.stderr.read().decode(errors="replace")
    if process.returncode != 0:
        raise shell.ClusterToolError(
            f"'ctr images import' ended with code {process.returncode}:\n{said}"
        )
    _forget_old_images(folders, missing)
    progress.done()


def _present(folders: Settings) -> dict[str, str]:
    """Return the digest of each image in containerd, by name."""
    lines = pause.ctr(folders, "images", "list").splitlines()[1:]
    return {fields[0]: fields[2] for line in lines if len(fields := line.split()) > 2}


def _forget_old_images(folders: Settings, imported: list[Image]) -> None:
    """Remove what the builds before have left: their by-digest names, and the names that containerd itself gave them.

    containerd then deletes the layers that nothing else needs; a container that still runs keeps its own.
    """
    present = _present(folders)
    old = {
        reference
        for reference, digest in present.items()
        for image in imported
        if reference.startswith(f"{settings.IMAGE_PREFIX}{image.name}@") and digest != image.digest
    }
    named = {
        digest
        for reference, digest in present.items()
        if reference not in old and not reference.startswith("sha256:")
    }
    old |= {
        reference
        for reference, digest in present.items()
        if reference.startswith("sha256:") and digest not in named
    }
    if old:
        pause.ctr(folders, "images", "remove", "--sync", *sorted(old))


def _write_archive(layout: Path, images: list[Image], out: IO[bytes], without: set[str]) -> None:
    """Write an OCI archive of the images, each under its tag and under its digest, without the given blobs."""
    entries: list[dict[str, Any]] = []
    blobs: set[str] = set()
    for image in images:
        blobs |= _blobs(layout, image.digest)
        descriptor = {
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": image.digest,
            "size": _blob(layout, image.digest).stat().st_size,
        }
        by_digest = f"{settings.IMAGE_PREFIX}{image.name}@{image.digest}"
        for reference in (image.reference, by_digest):
            entries.append({**descriptor, "annotations": {"io.containerd.image.name": reference}})
    index = {"schemaVersion": 2, "manifests": entries}
    with tarfile.open(fileobj=out, mode="w|") as archive:
        _add(archive, "oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
        for digest in sorted(blobs - without):
            archive.add(_blob(layout, digest), f"blobs/sha256/{digest.removeprefix('sha256:')}")
        _add(archive, "index.json", json.dumps(index).encode())


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def _blobs(layout: Path, manifest_digest: str) -> set[str]:
    """Return the digests of a manifest and all it names."""
    manifest = json.loads(_blob(layout, manifest_digest).read_text())
    named = [manifest["config"], *manifest["layers"]]
    return {manifest_digest, *(descriptor["digest"] for descriptor in named)}


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / "sha256" / digest.removeprefix("sha256:")


def _layout(folders: Settings) -> Path:
    return folders.cache / "images"


def _record_file(folders: Settings) -> Path:
    return _layout(folders) / "wavetank.json"


def _read_record(folders: Settings) -> dict[str, dict[str, str]]:
    """Return key and digest of each built image, by name, without those whose layers are gone."""
    file = _record_file(folders)
    recorded: dict[str, dict[str, str]] = json.loads(file.read_text()) if file.is_file() else {}
    return {
        name: entry
        for name, entry in recorded.items()
        if _blob(_layout(folders), entry["digest"]).exists()
    }


def _write_record(folders: Settings, recorded: dict[str, dict[str, str]]) -> None:
    with shell.whole_file(_record_file(folders)) as temporary:
        temporary.write_text(json.dumps(recorded, indent=2) + "\n")


def _forget_unused(folders: Settings, recorded: dict[str, dict[str, str]]) -> None:
    """Delete layers of images that have been built anew since, here and in buildah's storage."""
    layout = _layout(folders)
    used: set[str] = set()
    for entry in recorded.values():
        used |= _blobs(layout, entry["digest"])
    for blob in (layout / "blobs" / "sha256").iterdir():
        if f"sha256:{blob.name}" not in used:
            blob.unlink()
    # buildah's cache of steps is the images that have no name; pruning them all makes the next build a slow one.
    steps = shell.run([*base.buildah(folders), "images", "--all", "--quiet"], check=False).split()
    if len(steps) > _STEPS_KEPT:
        shell.run([*base.buildah(folders), "rmi", "--prune"], check=False)
