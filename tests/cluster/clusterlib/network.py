"""The bridge, the sysctls and the firewall rules of the cluster, and how to take them away again."""

import json
import re
import shlex
from pathlib import Path

from clusterlib import settings, shell
from clusterlib.settings import Settings

_NEEDED_SYSCTLS = {
    "net.ipv4.ip_forward": "1",
    # Services are firewall rules, and Pods on one bridge would otherwise pass each other below the firewall.
    "net.bridge.bridge-nf-call-iptables": "1",
    # Every container's log and every mounted Secret is watched; 128, the kernel's default, is a few dozen Pods.
    "fs.inotify.max_user_instances": "4096",
}
_CHANGED_BY_KUBELET = (
    "kernel.keys.root_maxbytes",
    "kernel.keys.root_maxkeys",
    "kernel.panic",
    "kernel.panic_on_oops",
    "vm.overcommit_memory",
    "vm.panic_on_oom",
)
"""Written by the kubelet's container manager when it starts; remembered here so that `stop` can restore them."""

_COMMENT = "wavetank-cluster"
_OWN_CHAIN = re.compile(r"(KUBE|CNI)-")
_OWN_TARGET = re.compile(r"-j (KUBE|CNI)-")
_FAMILIES = ("iptables", "ip6tables")


def make(folders: Settings) -> None:
    """Make the bridge and allow forwarding on it; what was set before is remembered for ``remove``."""
    _remember_sysctls(folders)
    for name, value in _NEEDED_SYSCTLS.items():
        _write_sysctl(name, value)
    if not bridge_exists():
        shell.run(["ip", "link", "add", settings.BRIDGE, "type", "bridge"])
    address = f"{settings.NODE_ADDRESS}/{settings.POD_MASK_BITS}"
    shell.run(["ip", "address", "replace", address, "dev", settings.BRIDGE])
    shell.run(["ip", "link", "set", settings.BRIDGE, "up"])
    # A machine that runs Docker drops whatever is forwarded unless a rule lets it through.
    if not any(_COMMENT in line for _, _, line in firewall_leftovers()):
        rule = [
            "-i",
            settings.BRIDGE,
            "-o",
            settings.BRIDGE,
            "-m",
            "comment",
            "--comment",
            _COMMENT,
        ]
        shell.run(["iptables", "-w", "-I", "FORWARD", *rule, "-j", "ACCEPT"])


def remove(folders: Settings) -> None:
    """Remove the bridge with the Pods' interfaces, the firewall's rules and chains, and restore the sysctls."""
    for interface in interfaces():
        shell.run(["ip", "link", "delete", interface], check=False)
    _remove_firewall_rules()
    remembered = folders.state / "sysctls.json"
    if remembered.exists():
        for name, value in json.loads(remembered.read_text()).items():
            _write_sysctl(name, value)
        remembered.unlink()


def bridge_exists() -> bool:
    """Return whether the cluster's bridge is there."""
    return Path(f"/sys/class/net/{settings.BRIDGE}").exists()


def interfaces() -> list[str]:
    """Return the cluster's interfaces on the machine's side: the Pods' ends first, the bridge last."""
    ports = Path(f"/sys/class/net/{settings.BRIDGE}/brif")
    names = sorted(port.name for port in ports.iterdir()) if ports.is_dir() else []
    return [*names, settings.BRIDGE] if bridge_exists() else names


def firewall_leftovers() -> list[tuple[str, str, str]]:
    """Return (program, table, line) for each rule and chain of a Kubernetes in the machine's firewall."""
    found = []
    for family in _FAMILIES:
        table = ""
        for line in shell.run([f"{family}-save"], check=False).splitlines():
            if line.startswith("*"):
                table = line[1:]
            elif _is_own(line):
                found.append((family, table, line))
    return found


def sysctls_to_restore(folders: Settings) -> list[str]:
    """Return the names of sysctls whose value before the start has not been restored yet."""
    remembered = folders.state / "sysctls.json"
    return sorted(json.loads(remembered.read_text())) if remembered.exists() else []


def _is_own(line: str) -> bool:
    chain = line.split()[0].lstrip(":") if line.startswith(":") else line.partition(" ")[2]
    return bool(_OWN_CHAIN.match(chain)) or bool(_OWN_TARGET.search(line)) or _COMMENT in line


def _remove_firewall_rules() -> None:
    """Remove rules in others' chains first, then empty the own chains, then delete them: none is in use then."""
    leftovers = firewall_leftovers()
    chains = [
        (family, table, line[1:].split()[0]) for family, table, line in leftovers if line[0] == ":"
    ]
    own = {chain for _, _, chain in chains}
    for family, table, line in leftovers:
        if line.startswith("-A ") and line.split()[1] not in own:
            rule = shlex.split(line)[1:]
            shell.run([family, "-w", "-t", table, "-D", *rule], check=False)
    for action in ("-F", "-X"):
        for family, table, chain in chains:
            shell.run([family, "-w", "-t", table, action, chain], check=False)


def _remember_sysctls(folders: Settings) -> None:
    remembered = folders.state / "sysctls.json"
    if remembered.exists():
        return
    names = [*_NEEDED_SYSCTLS, *_CHANGED_BY_KUBELET]
    values = {name: _path(name).read_text().strip() for name in names if _path(name).exists()}
    with shell.whole_file(remembered) as temporary:
        temporary.write_text(json.dumps(values, indent=2) + "\n")


def _write_sysctl(name: str, value: str) -> None:
    if not _path(name).exists():
        shell.run(["modprobe", "br_netfilter"], check=False)
    if _path(name).read_text().strip() != value:
        _path(name).write_text(value)


def _path(name: str) -> Path:
    return Path("/proc/sys") / name.replace(".", "/")
