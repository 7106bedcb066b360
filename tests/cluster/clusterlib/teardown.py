"""Stopping the cluster so that nothing of it is left on the machine, and listing what is."""

import shutil
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from clusterlib import cgroups, network, processes, programs, shell
from clusterlib.settings import Settings

_FIXED_FOLDERS = (
    Path("/var/log/containers"),
    Path("/var/lib/cni/results"),
    Path("/var/lib/cni"),
    Path("/var/lib/kubelet/device-plugins"),
    Path("/var/lib/kubelet"),
    Path("/run/containerd/s"),
    Path("/run/containerd"),
)
"""Folders whose place the kubelet, containerd and its plugins give no choice of; removed when nothing is in them."""


def stop(folders: Settings, *, purge: bool) -> list[str]:
    """Stop the cluster and return what is left of it, one line each; an empty list when all is clean.

    Args:
        folders: The cluster to stop.
        purge: Whether to delete the state folder too. Without it the next start finds images and objects again.
    """
    if not folders.state.is_dir():
        shell.say(f"There is no '{folders.state}': nothing to stop.")
        return leftovers(folders)
    with one_at_a_time(folders):
        progress = shell.Progress("Stopping the cluster")
        remaining = clean(folders, progress)
        if purge:
            shutil.rmtree(folders.state, ignore_errors=True)
        progress.done("nothing is left" if not remaining else f"{len(remaining)} things are left")
    return remaining


def one_at_a_time(folders: Settings) -> AbstractContextManager[None]:
    """Let one command at a time start or stop the cluster."""
    return shell.locked(folders.state / "lock", "Another start or stop is running; waiting for it.")


def clean(folders: Settings, progress: shell.Progress) -> list[str]:
    """End all processes of the cluster, remove what it did to the machine, and return what is left of that."""
    # The kubelet and the controllers first, or they would replace the Pods as fast as they are killed.
    processes.stop(folders, [name for name in programs.NAMES if name.startswith("kube")])
    daemons = {processes.pid_of(folders, name) for name in ("etcd", "containerd")}
    progress.update("ending the Pods")
    cgroups.kill_all(except_pids={pid for pid in daemons if pid is not None})
    processes.stop(folders, ["containerd", "etcd"])
    # A shim that containerd was starting at that moment comes after the first round.
    cgroups.kill_all(except_pids=set())
    progress.update("removing mounts, interfaces and firewall rules")
    _unmount(folders)
    network.remove(folders)
    _remove_cgroups()
    _remove_runtime_folders(folders)
    return leftovers(folders)


def leftovers(folders: Settings) -> list[str]:
    """Return what of the cluster is on this machine while it should be stopped, one line each."""
    found = [f"process {pid}: {_command(pid)}" for pid in sorted(cgroups.members())]
    found += [f"mount {path}" for path in _mounts(folders)]
    found += [f"interface {name}" for name in network.interfaces()]
    found += [f"cgroup {group}" for group in cgroups.existing()]
    found += [f"{family} {table}: {line}" for family, table, line in network.firewall_leftovers()]
    found += [f"sysctl {name} not restored" for name in network.sysctls_to_restore(folders)]
    found += [f"file {path}" for path in _runtime_entries(folders)]
    return found


def _mounts(folders: Settings) -> list[str]:
    """Return the mounts below the state folder, the innermost first."""
    paths = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    # mountinfo writes a space as \040; proc(5).
    plain = [path.encode().decode("unicode_escape") for path in paths]
    return sorted((path for path in plain if path.startswith(f"{folders.state}/")), reverse=True)


def _unmount(folders: Settings) -> None:
    for path in _mounts(folders):
        shell.run(["umount", path], check=False)
    for path in _mounts(folders):
        shell.run(["umount", "--lazy", path], check=False)


def _remove_cgroups() -> None:
    # The kernel empties a cgroup a moment after its last process was reaped.
    deadline = time.monotonic() + 5
    while cgroups.existing() and time.monotonic() < deadline:
        cgroups.remove()
        time.sleep(0.05)


def _remove_runtime_folders(folders: Settings) -> None:
    for entry in _runtime_entries(folders):
        entry.unlink(missing_ok=True)
    for folder in _FIXED_FOLDERS:
        # One that has something in it, or that the machine mounts something on, is not only this cluster's.
        with suppress(OSError):
            folder.rmdir()
    shutil.rmtree(folders.run, ignore_errors=True)


def _runtime_entries(folders: Settings) -> list[Path]:
    """Return the cluster's files outside the state folder: they point into it, or name its network, or are dead."""

    def entries(folder: str) -> list[Path]:
        return sorted(Path(folder).iterdir()) if Path(folder).is_dir() else []

    logs = [
        link
        for link in entries("/var/log/containers")
        if link.is_symlink() and str(link.readlink()).startswith(f"{folders.state}/")
    ]
    # Named NETWORK-CONTAINER-INTERFACE, for the loopback too: that one is known by its container.
    results = entries("/var/lib/cni/results")
    containers = {file.name.split("-")[1] for file in results if file.name.startswith("wavetank-")}
    results = [file for file in results if containers & set(file.name.split("-"))]
    sockets = [*entries("/run/containerd/s"), *entries("/var/lib/kubelet/device-plugins")]
    listening = {line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines()}
    return [*logs, *results, *(socket for socket in sockets if str(socket) not in listening)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()[:120]
    except OSError:
        return "?"
