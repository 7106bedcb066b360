"""Keys, certificates and kubeconfigs, made once per state folder with openssl."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path

from clusterlib import settings, shell
from clusterlib.settings import Settings

_DAYS = "3650"


@dataclass(frozen=True)
class _Leaf:
    name: str
    user: str
    group: str = ""
    addresses: tuple[str, ...] = ()
    """Subject alternative names; a certificate with any is a server's, and a client's too."""

    kubeconfig: bool = False


_LEAVES = (
    _Leaf(
        "apiserver",
        "kube-apiserver",
        addresses=(
            f"IP:{settings.NODE_ADDRESS}",
            f"IP:{settings.API_SERVICE_ADDRESS}",
            "IP:127.0.0.1",
            "DNS:localhost",
            "DNS:kubernetes",
            "DNS:kubernetes.default",
            "DNS:kubernetes.default.svc",
            "DNS:kubernetes.default.svc.cluster.local",
        ),
    ),
    # The API server is an administrator for the kubelet: it reads logs and runs commands in Pods.
    _Leaf("apiserver-to-kubelet", "kube-apiserver-kubelet-client", "system:masters"),
    _Leaf(
        "kubelet",
        f"system:node:{settings.NODE_NAME}",
        "system:nodes",
        addresses=(f"IP:{settings.NODE_ADDRESS}", f"DNS:{settings.NODE_NAME}"),
        kubeconfig=True,
    ),
    _Leaf("controller-manager", "system:kube-controller-manager", kubeconfig=True),
    _Leaf("scheduler", "system:kube-scheduler", kubeconfig=True),
    _Leaf("proxy", "system:kube-proxy", kubeconfig=True),
    _Leaf("administrator", "wavetank-administrator", "system:masters", kubeconfig=True),
)


def make(folders: Settings) -> None:
    """Make what is missing: the authority, a key pair for each program, kubeconfigs, the token key."""
    folder = folders.certificates
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (folder / "complete").exists():
        _make_authority(folder)
        for leaf in _LEAVES:
            _make_leaf(folder, leaf)
        _openssl("genrsa", "-out", str(folder / "tokens.key"), "2048")
        _openssl(
            "rsa", "-in", str(folder / "tokens.key"), "-pubout", "-out", str(folder / "tokens.pub")
        )
        (folder / "complete").touch()
    for leaf in _LEAVES:
        if leaf.kubeconfig:
            _write_kubeconfig(folder, leaf.name, folder / f"{leaf.name}.kubeconfig")
    _write_kubeconfig(folder, "administrator", folders.kubeconfig)


def _make_authority(folder: Path) -> None:
    _make_key(folder / "authority.key")
    _openssl(
        *(
            "req",
            "-x509",
            "-new",
            "-key",
            str(folder / "authority.key"),
            "-subj",
            "/CN=wavetank-cluster",
        ),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign", "-days", _DAYS),
        *("-out", str(folder / "authority.crt")),
    )


def _make_leaf(folder: Path, leaf: _Leaf) -> None:
    key, request, certificate = (
        folder / f"{leaf.name}.{ending}" for ending in ("key", "csr", "crt")
    )
    _make_key(key)
    subject = (f"/O={leaf.group}" if leaf.group else "") + f"/CN={leaf.user}"
    _openssl("req", "-new", "-key", str(key), "-subj", subject, "-out", str(request))
    extensions = folder / f"{leaf.name}.ext"
    lines = ["extendedKeyUsage=clientAuth" + (",serverAuth" if leaf.addresses else "")]
    if leaf.addresses:
        lines.append(f"subjectAltName={','.join(leaf.addresses)}")
    extensions.write_text("\n".join(lines) + "\n")
    _openssl(
        *(
            "x509",
            "-req",
            "-in",
            str(request),
            "-extfile",
            str(extensions),
            "-days",
            _DAYS,
            "-CAcreateserial",
        ),
        *("-CA", str(folder / "authority.crt"), "-CAkey", str(folder / "authority.key")),
        *("-out", str(certificate)),
    )
    request.unlink()
    extensions.unlink()


def _make_key(path: Path) -> None:
    # Elliptic keys: seven RSA keys would take seconds of each first start.
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path))


def _openssl(*argv: str) -> None:
    shell.run(["openssl", *argv])


def _write_kubeconfig(folder: Path, name: str, target: Path) -> None:
    def encoded(file: str) -> str:
        return base64.b64encode((folder / file).read_bytes()).decode()

    server = {
        "server": f"https://{settings.NODE_ADDRESS}:{settings.API_PORT}",
        "certificate-authority-data": encoded("authority.crt"),
    }
    user = {
        "client-certificate-data": encoded(f"{name}.crt"),
        "client-key-data": encoded(f"{name}.key"),
    }
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "wavetank", "cluster": server}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "wavetank", "context": {"cluster": "wavetank", "user": name}}],
        "current-context": "wavetank",
    }
    with shell.whole_file(target) as temporary:
        temporary.touch(mode=0o600)
        # JSON is YAML, and the standard library writes only the first.
        temporary.write_text(json.dumps(content, indent=2) + "\n")
