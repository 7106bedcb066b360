"""The API server takes all that the operator creates, in a namespace that enforces ``restricted``."""

import copy
import errno

import pytest

from wavetank.kube.client import Client
from wavetank.kube.errors import Forbidden
from wavetank.kube.objects import CONFIGMAPS, JOBS, PODS, SECRETS, Manifest
from wavetank.kube.transport import Call
from wavetank.testing.cluster import until
from wavetank.testing.created import EVERYTHING

RESOURCES = {resource.kind: resource for resource in (PODS, JOBS, SECRETS, CONFIGMAPS)}
CLASSES = ("runtimeClassName", "priorityClassName")
"""Of the overridden objects: such classes must exist, and this cluster has none."""


async def dry_create(client: Client, namespace: str, built: Manifest) -> Manifest:
    body = copy.deepcopy(built)
    body["metadata"]["namespace"] = namespace
    call = Call(
        "create",
        RESOURCES[body["kind"]],
        namespace,
        query={"dryRun": "All", "fieldValidation": "Strict"},
        body=body,
    )
    return await client.transport.json(call)


def _pods() -> dict[str, Manifest]:
    """Return rollout Pods, and the Pods that the Job controller would make."""
    pods = {}
    for name, built in EVERYTHING.items():
        if built["kind"] == "Pod":
            pods[name] = copy.deepcopy(built)
        elif built["kind"] == "Job":
            template = copy.deepcopy(built["spec"]["template"])
            template["metadata"]["name"] = built["metadata"]["name"]
            pods[name] = {"apiVersion": "v1", "kind": "Pod", **template}
    for pod in pods.values():
        for name in CLASSES:
            pod["spec"].pop(name, None)
    return pods


@pytest.mark.parametrize(
    "name", [name for name, built in EVERYTHING.items() if built["kind"] != "Pod"]
)
async def test_the_object_is_taken(client: Client, namespace: str, name: str) -> None:
    taken = await dry_create(client, namespace, EVERYTHING[name])

    assert taken["metadata"]["name"] == EVERYTHING[name]["metadata"]["name"]


@pytest.mark.parametrize("pod", _pods().values(), ids=_pods().keys())
async def test_the_pod_is_taken_under_the_restricted_standard(
    client: Client, namespace: str, pod: Manifest
) -> None:
    taken = await dry_create(client, namespace, pod)

    assert taken["spec"]["securityContext"]["runAsNonRoot"] is True


async def test_the_namespace_does_enforce_the_restricted_standard(
    client: Client, namespace: str
) -> None:
    pod = _pods()["rollout-oracle"]
    del pod["spec"]["securityContext"]["seccompProfile"]

    with pytest.raises(Forbidden, match="violates PodSecurity") as refusal:
        await dry_create(client, namespace, pod)

    assert "seccompProfile" in refusal.value.failure.message


async def test_an_agent_that_fills_its_disk_is_told_so_and_not_evicted(
    client: Client, namespace: str
) -> None:
    fill = (
        "import sys\n"
        "try:\n"
        "    with open('/tmp/x', 'wb', buffering=0) as file:\n"
        "        for _ in range(300): file.write(bytes(1 << 20))\n"
        "except OSError as error:\n"
        "    sys.exit(error.errno)\n"
    )
    pod = _pods()["rollout-nop-overridden"]
    spec = pod["spec"]
    for name in ("nodeSelector", "tolerations", "imagePullSecrets", "initContainers"):
        del spec[name]
    spec["volumes"] = [volume for volume in spec["volumes"] if volume["name"] == "agent-tmp"]
    (agent,) = spec["containers"]
    agent |= {"image": "wavetank.local/agent:dev", "command": ["python", "-c", fill]}
    del pod["metadata"]["ownerReferences"]
    pod["metadata"]["namespace"] = namespace
    name = pod["metadata"]["name"]
    await client.create(PODS, namespace, pod)

    async def ended() -> Manifest | None:
        found = await client.get(PODS, namespace, name)
        statuses = found["status"].get("containerStatuses") or [{"state": {}}]
        return found if "terminated" in statuses[0]["state"] else None

    seen = await until(ended, seconds=120)

    assert "reason" not in seen["status"]
    state = seen["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (errno.ENOSPC, "Error")
