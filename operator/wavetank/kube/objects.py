"""The kinds of objects that Wavetank talks about, and how to read what all objects share."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from wavetank.core.identity import GROUP, VERSION

Manifest = dict[str, Any]
"""One Kubernetes object (or a part of one to be merged or applied) as JSON."""

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED = f"{MANAGED_BY}=wavetank"
"""Label selector for what the operator made."""


@dataclass(frozen=True)
class Resource:
    """A kind of object, as the API server's paths name it."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return what stands in an object's ``apiVersion``.

        >>> JOBS.api_version
        'batch/v1'
        """
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Return the path of a collection (without ``name``), an object or its subresource.

        >>> RUNS.path("bench", "crm", "status")
        '/apis/wavetank.dev/v1alpha1/namespaces/bench/runs/crm/status'
        """
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if namespace is not None and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name is not None:
            parts.append(quote(name, safe=""))
        if subresource is not None:
            parts.append(subresource)
        return "/".join(parts)


PODS = Resource("", "v1", "pods", "Pod")
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
SERVICES = Resource("", "v1", "services", "Service")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
JOBS = Resource("batch", "v1", "jobs", "Job")
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
WORLDS = Resource(GROUP, VERSION, "worlds", "World")
BENCHMARKS = Resource(GROUP, VERSION, "benchmarks", "Benchmark")
RUNS = Resource(GROUP, VERSION, "runs", "Run")

OWN_KINDS = (WORLDS, BENCHMARKS, RUNS)


@dataclass(frozen=True, order=True)
class ObjectName:
    """Where an object is: its namespace (empty for cluster-wide kinds) and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def name_of(item: Manifest) -> ObjectName:
    """Return where an object is.

    >>> str(name_of({"metadata": {"namespace": "bench", "name": "crm"}}))
    'bench/crm'
    """
    metadata = item["metadata"]
    return ObjectName(metadata.get("namespace", ""), metadata["name"])


def uid_of(item: Manifest) -> str:
    """Return the UID that the API server gave an object."""
    return str(item["metadata"]["uid"])


def version_of(item: Manifest) -> str:
    """Return an object's resourceVersion: opaque, compared for equality only."""
    return str(item["metadata"].get("resourceVersion", ""))


@dataclass(frozen=True)
class Owner:
    """The controlling owner that an object names."""

    api_version: str
    kind: str
    name: str
    uid: str


def controller_of(item: Manifest) -> Owner | None:
    """Return the owner with ``controller: true``, or None when nothing controls the object."""
    for reference in item["metadata"].get("ownerReferences", ()):
        if reference.get("controller"):
            return Owner(
                reference["apiVersion"], reference["kind"], reference["name"], reference["uid"]
            )
    return None


def owner_reference(resource: Resource, name: str, uid: str) -> Manifest:
    """Return the ownerReference that makes an object go when its owner goes."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def trimmed(item: Manifest) -> Manifest:
    """Return the object without what nobody here reads: managedFields and kubectl's last copy.

    They are about a third of an object, and watches keep objects in memory.
    """
    metadata = {k: v for k, v in item["metadata"].items() if k != "managedFields"}
    annotations = metadata.get("annotations")
    if annotations and _LAST_APPLIED in annotations:
        metadata["annotations"] = {k: v for k, v in annotations.items() if k != _LAST_APPLIED}
    return {**item, "metadata": metadata}


_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
