"""The parts that Pods of all components are made of: restricted, bounded, without credentials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wavetank.api.fields import Quantities, Resources
from wavetank.api.run import PodOverrides
from wavetank.manifests.objects import Manifest, TokenKey

USER = 65532
"""The user of all images, known as nonroot."""

TOKEN_FOLDER = "/var/run/wavetank"  # noqa: S105 - a folder, not a secret
TOKEN_FILE = f"{TOKEN_FOLDER}/token"

TMP = "512Mi"
"""Size of each container's /tmp."""


@dataclass(frozen=True)
class Amounts:
    """Requests and limits of a container, where nobody says otherwise."""

    cpu: tuple[str, str]
    """Request and limit."""
    memory: tuple[str, str]
    disk: tuple[str, str]
    """Request and limit of ephemeral storage: emptyDirs, logs and the writable layer."""


def resources(amounts: Amounts, given: Resources | None) -> Manifest:
    """Return a container's resources.

    A resource that is named in ``given`` is taken from there alone: a lone request is the limit
    too, and a lone limit is the request too, as in Kubernetes.
    """
    requests = given.requests if given and given.requests else Quantities()
    limits = given.limits if given and given.limits else Quantities()
    rows = (
        ("cpu", amounts.cpu, requests.cpu, limits.cpu),
        ("memory", amounts.memory, requests.memory, limits.memory),
        (
            "ephemeral-storage",
            amounts.disk,
            requests.ephemeral_storage,
            limits.ephemeral_storage,
        ),
    )
    built: Manifest = {"requests": {}, "limits": {}}
    for name, (low, high), request, limit in rows:
        if request is None and limit is None:
            request, limit = low, high
        built["requests"][name] = str(limit if request is None else request)
        built["limits"][name] = str(request if limit is None else limit)
    return built


@dataclass(frozen=True)
class Mount:
    """A volume in a container."""

    volume: str
    path: str
    read_only: bool = False


@dataclass(frozen=True, kw_only=True)
class Container:
    """What differs between containers; everything else is the same for all."""

    name: str
    image: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    mounts: tuple[Mount, ...]
    resources: Manifest


def container(spec: Container) -> Manifest:
    """Return a container as the restricted Pod Security Standard wants it.

    Its root file system is read-only; what it may write are its mounts.
    """
    return {
        "name": spec.name,
        "image": spec.image,
        # Images are named by version or digest; asking the registry at every rollout costs time.
        "imagePullPolicy": "IfNotPresent",
        "command": list(spec.command),
        "env": [{"name": name, "value": value} for name, value in spec.env.items()],
        "resources": spec.resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {
                "name": mount.volume,
                "mountPath": mount.path,
                **({"readOnly": True} if mount.read_only else {}),
            }
            for mount in spec.mounts
        ],
    }


def scratch(name: str, size: str) -> Manifest:
    """Return a volume that lives as long as its Pod; a Pod that overfills it is evicted."""
    return {"name": name, "emptyDir": {"sizeLimit": size}}


def memory_scratch(name: str, size: str) -> Manifest:
    """Return a volume in memory: who overfills it is told so (ENOSPC), and nobody is evicted.

    What is in it counts as memory of the container that wrote it.
    """
    return {"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": size}}


def token_volume(name: str, secret: str, key: TokenKey) -> Manifest:
    """Return a volume with one token of a Secret, as the file ``token``."""
    return {
        "name": name,
        "secret": {
            "secretName": secret,
            "items": [{"key": key.value, "path": "token"}],
            "defaultMode": 0o440,
        },
    }


@dataclass(frozen=True, kw_only=True)
class PodSpec:
    """What differs between Pods; everything else is the same for all."""

    containers: Sequence[Manifest]
    init_containers: Sequence[Manifest] = ()
    volumes: Sequence[Manifest]
    deadline_seconds: int
    """From the kubelet's acceptance of the Pod to its end by force."""
    grace_seconds: int
    """From SIGTERM to SIGKILL."""
    overrides: PodOverrides
    runtime_class_name: str | None
    """Of the World; the Run's own comes first."""


def pod_spec(spec: PodSpec) -> Manifest:
    """Return the spec of a Pod that never restarts and has no credentials of the cluster."""
    built: Manifest = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": spec.deadline_seconds,
        "terminationGracePeriodSeconds": spec.grace_seconds,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # Store and gateway are reached by address: no Pod needs the cluster's names.
        "dnsPolicy": "Default",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": list(spec.containers),
        "volumes": list(spec.volumes),
    }
    if spec.init_containers:
        built["initContainers"] = list(spec.init_containers)
    return built | _overridden(spec.overrides, spec.runtime_class_name)


def _overridden(overrides: PodOverrides, runtime_class_name: str | None) -> Manifest:
    given = overrides.document()
    wanted: Manifest = {
        "nodeSelector": given["nodeSelector"],
        "tolerations": given["tolerations"],
        "imagePullSecrets": given["imagePullSecrets"],
        "priorityClassName": overrides.priority_class_name,
        "runtimeClassName": overrides.runtime_class_name or runtime_class_name,
    }
    return {name: value for name, value in wanted.items() if value}
