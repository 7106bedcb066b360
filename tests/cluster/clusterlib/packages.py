"""What Debian must bring: the container runtime, network plugins and image builders."""

import shutil
from pathlib import Path

from clusterlib import shell, wheels

_PACKAGES = {
    "buildah": "buildah",
    "containerd": "containerd",
    "conntrack": "conntrack",
    "debootstrap": "debootstrap",
    "ethtool": "ethtool",
    "ip": "iproute2",
    "iptables": "iptables",
    "mount": "mount",
    "openssl": "openssl",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "/etc/ssl/certs/ca-certificates.crt": "ca-certificates",
}
"""A program's name or a file's path, and the Debian package that brings it."""


def missing() -> list[str]:
    """Return the Debian packages that the cluster needs and this machine lacks, sorted."""
    wanted = {package for probe, package in _PACKAGES.items() if not _is_there(probe)}
    if wheels.python_with_pip() is None:
        wanted.add("python3-pip")
    return sorted(wanted)


def install() -> None:
    """Install what is missing; do nothing and say nothing if nothing is.

    Raises:
        ClusterToolError: If this is not a Debian machine, or a package cannot be had.
    """
    wanted = missing()
    if not wanted:
        return
    if not _is_there("apt-get"):
        raise shell.ClusterToolError(
            f"These programs are missing and there is no apt-get to install them with: {', '.join(wanted)}. "
            f"The test cluster runs on Debian 12."
        )
    shell.require_root("packages")
    log = Path("/tmp/wavetank-apt.log")
    apt = ["apt-get", "-y", "-q", "-o", "DPkg::Lock::Timeout=300"]
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    shell.run([*apt, "update"], check=False)
    shell.run_with_progress(
        # Recommended packages would start a second container runtime and a firewall front end.
        [*apt, "install", "--no-install-recommends", *wanted],
        f"Installing {', '.join(wanted)}",
        log,
        lambda line: line[:60],
        **quiet,
    )


def _is_there(probe: str) -> bool:
    if probe.startswith("/"):
        return Path(probe).exists()
    return (
        shutil.which(probe, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        is not None
    )
