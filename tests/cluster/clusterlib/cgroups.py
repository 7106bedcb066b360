"""The cgroup below which everything of the cluster lives, on cgroup v1 and v2.

It is how `stop` finds processes that the cluster's programs started: Pods and the shims between them and containerd.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

from clusterlib import settings

_ROOT = Path("/sys/fs/cgroup")
_TRACKING = ("pids", "systemd", "memory")
"""Hierarchies of cgroup v1 to keep the programs' own processes in: the first that is mounted."""


def make() -> None:
    """Make the cluster's cgroup in every hierarchy: the kubelet wants its root to exist.

    Not in a v2 hierarchy that is mounted beside those of v1: it limits nothing, and runc makes its own there.
    """
    for hierarchy in _hierarchies():
        if (hierarchy / "cgroup.controllers").exists() and not _is_v2():
            continue
        group = hierarchy / settings.CGROUP
        group.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            # In cgroup v1 a cpuset that names no processor takes no process.
            if (group / name).exists() and not _is_v2() and not (group / name).read_text().strip():
                (group / name).write_text((hierarchy / name).read_text())
    if _is_v2():
        available = (_ROOT / "cgroup.controllers").read_text().split()
        enabled = " ".join(f"+{controller}" for controller in available)
        for group in (_ROOT, _ROOT / settings.CGROUP):
            (group / "cgroup.subtree_control").write_text(enabled)
    _daemons().mkdir(exist_ok=True)


def adopt(pid: int) -> None:
    """Move a process that was just started into the cluster's cgroup; its children follow."""
    with contextlib.suppress(ProcessLookupError):
        (_daemons() / "cgroup.procs").write_text(str(pid))


def kill_all(except_pids: set[int]) -> None:
    """Kill every process in the cluster's cgroup but the given ones, and wait until they are gone."""
    deadline = time.monotonic() + 30
    while remaining := members() - except_pids:
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)


def members() -> set[int]:
    """Return the numbers of all processes in the cluster's cgroup."""
    found: set[int] = set()
    for hierarchy in _hierarchies():
        for file in (hierarchy / settings.CGROUP).rglob("cgroup.procs"):
            with contextlib.suppress(OSError):
                found.update(int(line) for line in file.read_text().split())
    return found


def remove() -> None:
    """Remove the cluster's cgroup with all below it; what still has a process stays and is a leftover."""
    for top in existing():
        for folder, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()


def existing() -> list[Path]:
    """Return the cluster's cgroups, one for each hierarchy that has it."""
    groups = [hierarchy / settings.CGROUP for hierarchy in _hierarchies()]
    return [group for group in groups if group.is_dir()]


def _is_v2() -> bool:
    return (_ROOT / "cgroup.controllers").exists()


def _hierarchies() -> list[Path]:
    if _is_v2():
        return [_ROOT]
    # One hierarchy may have several names, such as cpu and cpu,cpuacct.
    return sorted(
        {folder.resolve() for folder in _ROOT.iterdir() if (folder / "cgroup.procs").exists()}
    )


def _daemons() -> Path:
    base = (
        _ROOT if _is_v2() else next(_ROOT / name for name in _TRACKING if (_ROOT / name).is_dir())
    )
    return base / settings.CGROUP / "daemons"
