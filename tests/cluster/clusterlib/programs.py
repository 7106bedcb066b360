"""The cluster's programs with their flags, in the order in which they start."""

from clusterlib import settings
from clusterlib.config import CLIENT_RATE
from clusterlib.processes import Program
from clusterlib.settings import Settings

NAMES = (
    "etcd",
    "containerd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
)
API_URL = f"https://{settings.NODE_ADDRESS}:{settings.API_PORT}"


def etcd(folders: Settings) -> Program:
    """Return etcd, without waiting for the disk: the data only has to survive the process, not a power cut."""
    url = f"http://127.0.0.1:{settings.ETCD_PORT}"
    peers = f"http://127.0.0.1:{settings.ETCD_PEER_PORT}"
    argv = (
        str(folders.etcd / "etcd"),
        "--name=wavetank",
        f"--data-dir={folders.state / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=wavetank={peers}",
        "--unsafe-no-fsync",
        f"--quota-backend-bytes={4 * 1024**3}",
        # The one member elects itself only when this time is over; the default is twice as long.
        "--election-timeout=500",
        "--log-level=warn",
    )
    return Program("etcd", argv, f"{url}/health")


def containerd(folders: Settings) -> Program:
    """Return a containerd of the cluster's own, beside the system's service if there is one."""
    argv = (
        "containerd",
        "--config",
        str(folders.config / "containerd.toml"),
        "--log-level",
        "warn",
    )
    return Program("containerd", argv, str(folders.containerd_socket))


def apiserver(folders: Settings) -> Program:
    """Return the API server; admission has its defaults, with Pod Security among them."""
    keys = folders.certificates
    argv = (
        str(folders.programs / "kube-apiserver"),
        f"--advertise-address={settings.NODE_ADDRESS}",
        f"--bind-address={settings.NODE_ADDRESS}",
        f"--secure-port={settings.API_PORT}",
        f"--etcd-servers=http://127.0.0.1:{settings.ETCD_PORT}",
        f"--service-cluster-ip-range={settings.SERVICE_NETWORK}",
        "--allow-privileged=true",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--client-ca-file={keys / 'authority.crt'}",
        f"--tls-cert-file={keys / 'apiserver.crt'}",
        f"--tls-private-key-file={keys / 'apiserver.key'}",
        f"--kubelet-certificate-authority={keys / 'authority.crt'}",
        f"--kubelet-client-certificate={keys / 'apiserver-to-kubelet.crt'}",
        f"--kubelet-client-key={keys / 'apiserver-to-kubelet.key'}",
        # The node's name is known to no name server.
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={keys / 'tokens.pub'}",
        f"--service-account-signing-key-file={keys / 'tokens.key'}",
        f"--audit-policy-file={folders.config / 'audit.json'}",
        f"--audit-log-path={folders.logs / 'audit.log'}",
        "--audit-log-maxsize=100",
        "--audit-log-maxbackup=2",
        "--profiling=false",
    )
    return Program("kube-apiserver", argv, f"{API_URL}/readyz")


def controller_manager(folders: Settings) -> Program:
    """Return the controller manager, with all default controllers."""
    keys = folders.certificates
    argv = (
        str(folders.programs / "kube-controller-manager"),
        f"--kubeconfig={keys / 'controller-manager.kubeconfig'}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
        "--allocate-node-cidrs=true",
        f"--cluster-cidr={settings.POD_NETWORK}",
        f"--node-cidr-mask-size={settings.POD_MASK_BITS}",
        f"--service-cluster-ip-range={settings.SERVICE_NETWORK}",
        f"--root-ca-file={keys / 'authority.crt'}",
        f"--service-account-private-key-file={keys / 'tokens.key'}",
        "--use-service-account-credentials=true",
        f"--kube-api-qps={CLIENT_RATE}",
        f"--kube-api-burst={2 * CLIENT_RATE}",
        "--profiling=false",
    )
    return Program("kube-controller-manager", argv, "https://127.0.0.1:10257/healthz")


def scheduler(folders: Settings) -> Program:
    """Return the scheduler with its default profile."""
    argv = (
        str(folders.programs / "kube-scheduler"),
        f"--kubeconfig={folders.certificates / 'scheduler.kubeconfig'}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
        f"--kube-api-qps={CLIENT_RATE}",
        f"--kube-api-burst={2 * CLIENT_RATE}",
        "--profiling=false",
    )
    return Program("kube-scheduler", argv, "https://127.0.0.1:10259/healthz")


def kubelet(folders: Settings) -> Program:
    """Return the kubelet of the one node."""
    argv = (
        str(folders.programs / "kubelet"),
        f"--config={folders.config / 'kubelet.json'}",
        f"--kubeconfig={folders.certificates / 'kubelet.kubeconfig'}",
        f"--root-dir={folders.state / 'kubelet'}",
        f"--cert-dir={folders.state / 'kubelet' / 'pki'}",
        f"--hostname-override={settings.NODE_NAME}",
        f"--node-ip={settings.NODE_ADDRESS}",
        # Asking every cgroup for its figures each 10 s, the default, would be most of an idle node's work.
        "--housekeeping-interval=30s",
    )
    return Program("kubelet", argv, "http://127.0.0.1:10248/healthz")


def proxy(folders: Settings) -> Program:
    """Return kube-proxy."""
    argv = (str(folders.programs / "kube-proxy"), f"--config={folders.config / 'proxy.json'}")
    return Program("kube-proxy", argv, "http://127.0.0.1:10256/livez")


def all_of(folders: Settings) -> list[Program]:
    """Return every program, in the order of ``NAMES``."""
    makers = (etcd, containerd, apiserver, controller_manager, scheduler, kubelet, proxy)
    return [make(folders) for make in makers]
