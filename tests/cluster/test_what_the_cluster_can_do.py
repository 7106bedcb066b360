"""What the product needs of a Kubernetes, on the one that cluster.py starts.

When one of these fails, so do others, and this is the place to begin: nothing of the product is in them but an image
with Python.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Kubectl = Callable[..., str]

IMAGE = "wavetank.local/agent:dev"
SERVE = "python -m http.server 8000 --directory /etc"
FETCH = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=20).status)"


def _container(name: str, *command: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": list(command),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        **more,
    }


def _server(**more: Any) -> dict[str, Any]:
    ready = {"httpGet": {"path": "/hostname", "port": 8000}, "periodSeconds": 1}
    return _container("server", *SERVE.split(), readinessProbe=ready, startupProbe=ready, **more)


def _pod(containers: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": containers,
        **more,
    }


def _apply(kubectl: Kubectl, namespace: str, manifest: dict[str, Any]) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(manifest, file)
        file.flush()
        kubectl("-n", namespace, "apply", "-f", Path(file.name))


def _job(name: str, pod: dict[str, Any]) -> dict[str, Any]:
    spec = {"backoffLimit": 0, "template": {"spec": pod}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def test_a_job_completes_beside_its_native_sidecar(kubectl: Kubectl, namespace: str) -> None:
    fetch = _container("fetch", "python", "-c", FETCH, "http://127.0.0.1:8000/hostname")
    pod = _pod([fetch], initContainers=[_server(restartPolicy="Always")])

    _apply(kubectl, namespace, _job("sidecar", pod))
    kubectl("-n", namespace, "wait", "job/sidecar", "--for=condition=Complete", "--timeout=90s")

    assert kubectl("-n", namespace, "logs", "job/sidecar", "-c", "fetch").strip() == "200"


def test_a_service_is_reached_from_a_pod_and_through_the_api_server(
    kubectl: Kubectl, namespace: str
) -> None:
    labels = {"app": "server"}
    metadata = {"name": "server", "labels": labels}
    server = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _pod([_server()])}
    spec = {"selector": labels, "ports": [{"port": 80, "targetPort": 8000}]}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "server"},
        "spec": spec,
    }

    _apply(kubectl, namespace, service)
    _apply(kubectl, namespace, server)
    kubectl("-n", namespace, "wait", "pod/server", "--for=condition=Ready", "--timeout=90s")
    get_address = ("get", "service", "server", "-o", "jsonpath={.spec.clusterIP}")
    address = kubectl("-n", namespace, *get_address)
    fetch = _container("fetch", "python", "-c", FETCH, f"http://{address}/hostname")
    _apply(kubectl, namespace, _job("fetch", _pod([fetch])))
    kubectl("-n", namespace, "wait", "job/fetch", "--for=condition=Complete", "--timeout=90s")
    path = f"/api/v1/namespaces/{namespace}/services/server:80/proxy/debian_version"

    assert kubectl("-n", namespace, "logs", "job/fetch").strip() == "200"
    assert kubectl("get", "--raw", path).startswith("12")


def test_a_pod_over_its_memory_limit_is_killed_for_that(kubectl: Kubectl, namespace: str) -> None:
    limits = {"limits": {"memory": "32Mi"}, "requests": {"memory": "32Mi"}}
    eat = _container("eat", "python", "-c", "x = bytearray(10**9)", resources=limits)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "eat"}, "spec": _pod([eat])}
    reason = "{.status.containerStatuses[0].state.terminated.reason}"

    _apply(kubectl, namespace, pod)
    failed = "--for=jsonpath={.status.phase}=Failed"
    kubectl("-n", namespace, "wait", "pod/eat", failed, "--timeout=90s")

    ended_by = kubectl("-n", namespace, "get", "pod", "eat", "-o", f"jsonpath={reason}")
    assert ended_by == "OOMKilled"
