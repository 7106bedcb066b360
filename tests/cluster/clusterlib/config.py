"""The configuration files of the cluster's programs. JSON where the program reads YAML: it is a part of YAML."""

import json
from pathlib import Path
from typing import Any

from clusterlib import settings, shell
from clusterlib.settings import Settings

CLIENT_RATE = 200
"""Requests a second that the kubelet, scheduler and controllers may make: their defaults (5 to 50) are for clusters
of thousands of nodes that share one API server, and would be the bottleneck here."""


def write(folders: Settings) -> None:
    """Write every file; one whose content is unchanged is not touched."""
    _write_text(folders.config / "containerd.toml", _containerd(folders))
    _write_json(folders.config / "cni" / "10-wavetank.conflist", _network(folders))
    _write_json(folders.config / "kubelet.json", _kubelet(folders))
    _write_json(folders.config / "proxy.json", _proxy(folders))
    _write_json(folders.config / "audit.json", _audit_policy())


def _containerd(folders: Settings) -> str:
    """Return containerd's configuration. TOML, which JSON's strings and numbers are a part of."""
    unused = [
        f"io.containerd.snapshotter.v1.{name}" for name in ("aufs", "btrfs", "devmapper", "zfs")
    ]
    # The opt plugin makes /opt/containerd, and tracing asks for a server that is not there.
    unused += ["io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp"]
    cri = '[plugins."io.containerd.grpc.v1.cri"'
    runtime = ".containerd.runtimes.runc"
    return f"""version = 2
root = {json.dumps(str(folders.state / "containerd"))}
state = {json.dumps(str(folders.run / "containerd"))}
disabled_plugins = {json.dumps(unused)}

[grpc]
address = {json.dumps(str(folders.containerd_socket))}

{cri}]
sandbox_image = "{settings.PAUSE_IMAGE}"
# A machine may withhold CAP_SYS_RESOURCE; then no process can be made less likely to be killed than its parent.
restrict_oom_score_adj = true
# Namespaces below the state folder are known to be this cluster's when it is stopped.
netns_mounts_under_state_dir = true
disable_apparmor = true
disable_tcp_service = true
stream_server_address = "127.0.0.1"
max_concurrent_downloads = 3

{cri}.cni]
bin_dir = "/usr/lib/cni"
conf_dir = {json.dumps(str(folders.config / "cni"))}

{cri}.containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"

{cri}{runtime}]
runtime_type = "io.containerd.runc.v2"

{cri}{runtime}.options]
SystemdCgroup = false
Root = {json.dumps(str(folders.run / "runc"))}
"""


def _network(folders: Settings) -> dict[str, Any]:
    bridge = {
        "type": "bridge",
        "bridge": settings.BRIDGE,
        # The bridge has its address before the first Pod: it is the node's.
        "isGateway": False,
        # Pods reach each other and Services, and nothing outside: a test must not depend on the machine's network.
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(folders.run / "addresses"),
            "ranges": [[{"subnet": settings.NODE_POD_NETWORK, "gateway": settings.NODE_ADDRESS}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return {"cniVersion": "0.4.0", "name": "wavetank", "plugins": [bridge]}


def _kubelet(folders: Settings) -> dict[str, Any]:
    certificates = folders.certificates
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": settings.NODE_ADDRESS,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(certificates / "authority.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certificates / "kubelet.crt"),
        "tlsPrivateKeyFile": str(certificates / "kubelet.key"),
        "containerRuntimeEndpoint": f"unix://{folders.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{settings.CGROUP}",
        "podLogsDir": str(folders.state / "pod-logs"),
        "volumePluginDir": str(folders.state / "volume-plugins"),
        "failSwapOn": False,
        "oomScoreAdj": 0,
        # kube-proxy makes the chains that Services need; the kubelet's would only have to be removed again.
        "makeIPTablesUtilChains": False,
        "maxPods": 250,
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "10s",
        # Measuring every volume's size would be most of an idle node's work.
        "volumeStatsAggPeriod": "-1s",
        "serializeImagePulls": False,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "kubeAPIQPS": CLIENT_RATE,
        "kubeAPIBurst": 2 * CLIENT_RATE,
        # 100 switches it off: images are imported by hand, and what is collected cannot be pulled again.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        "containerLogMaxSize": "10Mi",
        "containerLogMaxFiles": 2,
    }


def _proxy(folders: Settings) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clusterCIDR": settings.POD_NETWORK,
        "hostnameOverride": settings.NODE_NAME,
        "clientConnection": {"kubeconfig": str(folders.certificates / "proxy.kubeconfig")},
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        # 0 leaves the machine's own limits alone, which a confined root could not change.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
        # Node ports on 127.0.0.1 would need route_localnet, a sysctl that opens the loopback to the bridge.
        "iptables": {"localhostNodePorts": False, "minSyncPeriod": "500ms"},
        "oomScoreAdj": 0,
    }


def _audit_policy() -> dict[str, Any]:
    """Return a policy that records who wrote what and nothing of its content: bodies may hold keys."""
    written = ["create", "update", "patch", "delete", "deletecollection"]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [
            {"level": "None", "resources": [{"group": "coordination.k8s.io"}]},
            {"level": "None", "resources": [{"group": "", "resources": ["events"]}]},
            {"level": "None", "resources": [{"group": "events.k8s.io"}]},
            {"level": "Metadata", "verbs": written},
            {"level": "None"},
        ],
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    _write_text(path, json.dumps(content, indent=2) + "\n")


def _write_text(path: Path, content: str) -> None:
    if path.exists() and path.read_text() == content:
        return
    with shell.whole_file(path) as temporary:
        temporary.write_text(content)
