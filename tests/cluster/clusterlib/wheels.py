"""The wheels that images install: downloaded outside the build by the locks, so that a build needs no network."""

import contextlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path

from clusterlib import settings, shell
from clusterlib.settings import Settings

_TARGET_PYTHON = "3.11"
"""The base image's: Debian 12's."""

_GLIBC_MINORS = range(36, 4, -1)
"""Debian 12 has glibc 2.36, so it runs wheels for manylinux_2_5 to manylinux_2_36. pip wants each of them named."""


def pip() -> list[str]:
    """Return the command that runs pip: this interpreter's, or another's if this one has none.

    Raises:
        ClusterToolError: If no Python on this machine has pip.
    """
    python = python_with_pip()
    if python is None:
        raise shell.ClusterToolError(
            "No Python on this machine has pip. Install Debian's python3-pip, or run 'packages'."
        )
    return [python, "-m", "pip"]


def python_with_pip() -> str | None:
    """Return the path of a Python that has pip, or None if there is none."""
    if importlib.util.find_spec("pip") is not None:
        return sys.executable
    path = settings.program_environment()["PATH"]
    for python in (shutil.which("python3", path=path), "/usr/bin/python3"):
        with contextlib.suppress(shell.ClusterToolError):
            if python and shell.run([python, "-c", "import pip; print(pip)"], check=False):
                return python
    return None


def gather(folders: Settings) -> None:
    """Fill .build in the repository for the Dockerfiles to copy from.

    ``.build/wheels`` has everything: what the locks of all images name, and the project's own wheel. The same is in
    ``.build/dependencies`` and ``.build/package`` apart: a Dockerfile that installs the first in one layer and the
    second in the next has only the small one built again after a change of the project's sources.
    """
    (folders.cache / "wheels").mkdir(parents=True, exist_ok=True)
    locked = [
        wheel for lock in locks(folders) for wheel in _locked_wheels(folders.cache / "wheels", lock)
    ]
    own = _own_wheel(folders)
    contents = {"wheels": [*locked, *own], "dependencies": locked, "package": own}
    for name, files in contents.items():
        target = folders.repository / ".build" / name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for wheel in files:
            _link(wheel, target / wheel.name)


def locks(folders: Settings) -> list[Path]:
    """Return the lock files of images: all but the developers'."""
    return sorted(
        lock for lock in (folders.repository / "locks").glob("*.txt") if lock.stem != "dev"
    )


def package_digest(folders: Settings) -> str:
    """Return a digest that changes with anything that goes into the project's own wheel."""
    tree = folders.repository / "operator" / "wavetank"
    files = [
        file
        for file in sorted(tree.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    ]
    names = ("pyproject.toml", "README.md", "LICENSE")
    return settings.digest_of([folders.repository / name for name in names] + files)


def _locked_wheels(cache: Path, lock: Path) -> list[Path]:
    """Download what the lock names, unless that was done for the same lock before; pip checks every hash."""
    folder = cache / f"{lock.stem}-{settings.digest_of([lock])}"
    if not folder.is_dir():
        progress = shell.Progress(f"Downloading wheels of {lock.name}")
        for old in cache.glob(f"{lock.stem}-*"):
            shutil.rmtree(old)
        unfinished = cache / f"{lock.stem}.part"
        shutil.rmtree(unfinished, ignore_errors=True)
        machine = os.uname().machine
        platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in _GLIBC_MINORS]
        platforms += [f"--platform=manylinux2014_{machine}", f"--platform=linux_{machine}"]
        options = ["--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"]
        target = [f"--python-version={_TARGET_PYTHON}", "--implementation=cp", *platforms]
        shell.run([*pip(), "download", *options, *target, "-d", str(unfinished), "-r", str(lock)])
        unfinished.rename(folder)
        progress.done()
    return sorted(folder.glob("*.whl"))


def _own_wheel(folders: Settings) -> list[Path]:
    """Build the project's wheel unless it was built from the same sources, and return it alone in a list."""
    folder = folders.cache / "wheels" / f"own-{package_digest(folders)}"
    if not folder.is_dir():
        progress = shell.Progress("Building the project's wheel")
        for old in folder.parent.glob("own*"):
            shutil.rmtree(old)
        unfinished = folder.parent / "own.part"
        python = folders.repository / ".venv" / "bin" / "python"
        if python.exists() and shell.run(
            [str(python), "-c", "import hatchling; print(1)"], check=False
        ):
            build = [str(python), "-m", "hatchling", "build", "-t", "wheel", "-d", str(unfinished)]
            shell.run(build, cwd=folders.repository)
        else:
            shell.run(
                [*pip(), "wheel", "-q", "--no-deps", "-w", str(unfinished), str(folders.repository)]
            )
        unfinished.rename(folder)
        progress.done()
    return list(folder.glob("*.whl"))


def _link(source: Path, target: Path) -> None:
    if target.exists():
        return
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
