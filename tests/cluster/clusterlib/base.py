"""The base image: a small Debian 12 with Python, made by debootstrap because no image registry may be at hand.

It stands in for Docker's official Python image: `python` and `pip` are in /usr/local/bin and install there.
"""

import hashlib
import shutil
from pathlib import Path

from clusterlib import settings, shell
from clusterlib.settings import Settings

_RECIPE = 1
"""To be raised when the base is made in another way; what it is made of is in its key anyway."""

_PACKAGES = "ca-certificates,python3,python3-venv"
_UNWANTED = (
    *("usr/share/doc", "usr/share/info", "usr/share/lintian", "usr/share/locale", "usr/share/man"),
    *("var/cache/apt", "var/lib/apt/lists", "var/log", "var/cache/debconf"),
)
"""Half of a fresh system's size, and nothing that a program reads. Made anew, empty."""

_BUILDERS = ("etc/resolv.conf", "etc/hostname")
"""Copied by debootstrap from the machine it ran on."""


def key() -> str:
    """Return a digest of what the base is made of; another one means that it must be made anew."""
    recipe = repr((_RECIPE, _PACKAGES, _UNWANTED, _BUILDERS))
    return hashlib.sha256(recipe.encode()).hexdigest()[:16]


def make(folders: Settings) -> str:
    """Make the base image in buildah's storage unless it is there, and return its name."""
    name = f"{settings.BASE_IMAGE}-{key()}"
    if shell.run([*buildah(folders), "images", "--quiet", name], check=False).strip():
        return name
    root = folders.cache / "base.part"
    shutil.rmtree(root, ignore_errors=True)
    try:
        _bootstrap(folders, root)
        progress = shell.Progress("Packing the base image")
        container = shell.run([*buildah(folders), "from", "scratch"]).strip()
        shell.run([*buildah(folders), "add", "--quiet", container, str(root), "/"])
        environment = [
            "--env",
            "PYTHONUNBUFFERED=1",
            "--env",
            "LANG=C.UTF-8",
            "--env",
            _path(),
        ]
        shell.run([*buildah(folders), "config", *environment, "--cmd", "python3", container])
        shell.run([*buildah(folders), "commit", "--quiet", "--rm", container, name])
        progress.done()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return name


def buildah(folders: Settings) -> list[str]:
    """Return buildah's command with a storage of the project's own: the user's images are not touched."""
    root, run = folders.buildah_root, folders.cache / "buildah-run"
    return ["buildah", "--root", str(root), "--runroot", str(run), "--storage-driver", "overlay"]


def _bootstrap(folders: Settings, root: Path) -> None:
    options = ["--variant=minbase", f"--include={_PACKAGES}"]
    mirror = _mirror()
    shell.run_with_progress(
        ["debootstrap", *options, "bookworm", str(root), *([mirror] if mirror else [])],
        "Making the base image",
        folders.cache / "debootstrap.log",
        lambda line: line.removeprefix("I: ")[:60],
    )
    # An environment at /usr/local, where the official image has its Python: there pip may install, in Debian's own
    # it may not.
    shell.run(["chroot", str(root), "python3", "-m", "venv", "/usr/local"])
    for name in _UNWANTED:
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir()
    for name in _BUILDERS:
        (root / name).unlink(missing_ok=True)


def _mirror() -> str:
    """Return the mirror that this machine's apt uses for Debian 12, or nothing: then debootstrap has a default."""
    lines = shell.run(
        ["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)"], check=False
    )
    mirrors = [line.split()[1] for line in lines.splitlines() if line.startswith("bookworm ")]
    return mirrors[0] if mirrors else ""


def _path() -> str:
    return "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
