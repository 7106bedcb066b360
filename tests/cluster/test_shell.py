"""The operator's shell on a real cluster, as a process, with the rights that the chart gives it."""

import asyncio
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from wavetank.kube.client import FIELD_MANAGER, Client
from wavetank.kube.objects import (
    EVENTS,
    JOBS,
    PODS,
    WORLDS,
    Manifest,
    Resource,
    owner_reference,
    uid_of,
)
from wavetank.testing.cluster import kubeconfig_of_a_service_account, until
from wavetank.testing.network import Road, road_to
from wavetank.testing.objects import a_world
from wavetank.testing.operator_process import NEEDED, OperatorProcess

pytestmark = pytest.mark.usefixtures("crds")

ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
RULES = [
    {
        "apiGroups": ["wavetank.dev"],
        "resources": ["worlds", "benchmarks", "runs"],
        "verbs": ["get", "list", "watch"],
    },
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "watch"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
]
"""All that the shell needs, in the one namespace that it serves."""


@pytest.fixture
async def account(client: Client, kubeconfig: Path, namespace: str, tmp_path: Path) -> Path:
    """The kubeconfig of an account with the operator's role and no other."""
    name = f"shell-{uuid.uuid4().hex[:6]}"
    path = kubeconfig_of_a_service_account(kubeconfig, namespace, name, tmp_path)
    await client.create(ROLES, namespace, {"metadata": {"name": name}, "rules": RULES})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": ROLES.group, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    await client.create(BINDINGS, namespace, binding)
    return path


@asynccontextmanager
async def running(
    kubeconfig: Path, namespace: str, resync_seconds: int = 100_000
) -> AsyncIterator[OperatorProcess]:
    """The shell, serving one namespace."""
    operator = await OperatorProcess.start(
        {
            **NEEDED,
            "WAVETANK_KUBECONFIG": str(kubeconfig),
            "WAVETANK_WATCH_NAMESPACE": namespace,
            "WAVETANK_RESYNC_SECONDS": str(resync_seconds),
            "WAVETANK_SILENCE_SECONDS": "80",
        },
        [Path(__file__).with_name("shell_driver.py")],
    )
    try:
        await operator.said("operator is ready")
        yield operator
    finally:
        await operator.end()


@pytest.fixture
async def operator(account: Path, namespace: str) -> AsyncIterator[OperatorProcess]:
    async with running(account, namespace) as started:
        yield started


def child(owner: Manifest, kind: Resource, name: str, spec: Manifest) -> Manifest:
    metadata = {
        "name": name,
        "labels": {"app.kubernetes.io/managed-by": "wavetank"},
        "ownerReferences": [owner_reference(kind, owner["metadata"]["name"], uid_of(owner))],
    }
    return {"metadata": metadata, "spec": spec}


POD_SPEC: Manifest = {
    "restartPolicy": "Never",
    "schedulingGates": [{"name": "wavetank.dev/never"}],
    "securityContext": {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    "containers": [
        {
            "name": "main",
            "image": "none.invalid/none",
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
        }
    ],
}


async def test_what_happens_to_an_object_or_its_children_brings_a_look(
    operator: OperatorProcess, client: Client, namespace: str
) -> None:
    world = await client.create(WORLDS, namespace, a_world("crm"))
    await operator.said(rf"looked World {namespace}/crm there")

    before = operator.count("looked World")
    pod = await client.create(PODS, namespace, child(world, WORLDS, "pod", POD_SPEC))
    await operator.said("looked World", before + 1)

    before = operator.count("looked World")
    template = {
        "metadata": {"labels": {"app.kubernetes.io/managed-by": "wavetank"}},
        "spec": POD_SPEC,
    }
    spec = {"backoffLimit": 0, "template": template}
    job = await client.create(JOBS, namespace, child(world, WORLDS, "job", spec))
    await operator.said("looked World", before + 1)

    await client.delete(PODS, namespace, "pod", uid=uid_of(pod), grace_seconds=0)
    await client.delete(JOBS, namespace, "job", uid=uid_of(job))
    await client.delete(WORLDS, namespace, "crm", uid=uid_of(world))
    await operator.said(rf"looked World {namespace}/crm gone")


async def test_what_a_stranger_labels_as_ours_brings_no_look(
    operator: OperatorProcess, client: Client, namespace: str
) -> None:
    item = {
        "metadata": {"name": "stranger", "labels": {"app.kubernetes.io/managed-by": "wavetank"}}
    }
    await client.create(PODS, namespace, {**item, "spec": POD_SPEC})
    world = await client.create(WORLDS, namespace, a_world("after"))
    await operator.said("looked World .*/after there")

    assert operator.count("looked (?!World .*/after)") == 0
    await client.delete(WORLDS, namespace, "after", uid=uid_of(world))


async def test_kopf_writes_nothing_to_our_objects(
    operator: OperatorProcess, client: Client, namespace: str
) -> None:
    created = await client.create(WORLDS, namespace, a_world("untouched"))
    await operator.said("looked World .*/untouched there")

    metadata = (await client.get(WORLDS, namespace, "untouched"))["metadata"]
    assert "annotations" not in metadata
    assert "finalizers" not in metadata
    # An operator that serves the whole cluster may have written its status.
    assert {field["manager"] for field in metadata["managedFields"]} == {FIELD_MANAGER}
    await client.delete(WORLDS, namespace, "untouched", uid=uid_of(created))


async def test_the_role_is_enough(
    operator: OperatorProcess, client: Client, namespace: str
) -> None:
    world = await client.create(WORLDS, namespace, a_world("modest"))
    await operator.said("looked World .*/modest there")
    await client.delete(WORLDS, namespace, "modest", uid=uid_of(world))
    await operator.said("looked World .*/modest gone")

    assert operator.count("(?i)forbidden|warning|error|Traceback") == 0, operator.lines


async def test_an_event_is_posted_once_whoever_says_it_again(
    operator: OperatorProcess, client: Client, namespace: str
) -> None:
    world = await client.create(WORLDS, namespace, a_world("told"))
    await operator.said("looked World .*/told there")
    await client.merge_patch(WORLDS, namespace, "told", {"metadata": {"labels": {"a": "b"}}})
    await operator.said("looked World .*/told there", 2)

    events = (await client.list(EVENTS, namespace)).items
    told = [
        event
        for event in events
        if (event["regarding"]["uid"], event["reason"]) == (uid_of(world), "Looked")
    ]
    assert [
        (event["reason"], event["note"], event["type"], event["reportingController"])
        for event in told
    ] == [("Looked", "Somebody looked.", "Normal", "wavetank.dev/operator")]
    await client.delete(WORLDS, namespace, "told", uid=uid_of(world))


async def test_it_is_healthy_ready_and_tells_prometheus(operator: OperatorProcess) -> None:
    health, ready = await operator.http("/healthz"), await operator.http("/readyz")
    metrics = await operator.http("/metrics")

    assert (health.status_code, health.text) == (200, "ok\n")
    assert (ready.status_code, ready.text) == (200, "ok\n")
    assert metrics.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    ages = dict(re.findall(r'wavetank_watch_age_seconds{resource="(\w+)"} (\S+)', metrics.text))
    assert set(ages) == {"pods", "jobs", "worlds", "benchmarks", "runs"}
    assert all(0 <= float(age) < 120 for age in ages.values())


async def test_on_sigterm_a_running_look_ends_and_then_the_process(
    operator: OperatorProcess, client: Client, namespace: str
) -> None:
    world = await client.create(WORLDS, namespace, a_world("slow"))
    await operator.said("begins World .*/slow")

    async with asyncio.timeout(20):
        code = await operator.end()

    assert code == 0
    assert operator.count("looked World .*/slow there") == 1
    assert operator.lines[-1].endswith("operator stops")
    await client.delete(WORLDS, namespace, "slow", uid=uid_of(world))


@pytest.fixture
async def road(account: Path) -> AsyncIterator[Road]:
    """A way to the API server that can be made to fail; the account's kubeconfig takes it."""
    known = yaml.safe_load(account.read_text())
    server = urlsplit(known["clusters"][0]["cluster"]["server"])
    async with road_to(str(server.hostname), server.port or 443) as road:
        known["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{road.port}"
        account.write_text(yaml.safe_dump(known))
        yield road


async def test_after_an_outage_of_the_api_server_it_sees_what_happened_meanwhile(
    account: Path, client: Client, namespace: str, road: Road
) -> None:
    async with running(account, namespace) as operator:
        road.close()
        world = await client.create(WORLDS, namespace, a_world("meanwhile"))
        pod = await client.create(PODS, namespace, child(world, WORLDS, "meanwhile", POD_SPEC))
        await operator.said("pods: the watch was cut")
        assert operator.count("looked World .*/meanwhile") == 0

        road.open()
        await operator.said("looked World .*/meanwhile there", seconds=60)

        before = operator.count("looked World .*/meanwhile")
        await client.delete(PODS, namespace, "meanwhile", uid=uid_of(pod), grace_seconds=0)
        await operator.said("looked World .*/meanwhile", before + 1, seconds=60)
    await client.delete(WORLDS, namespace, "meanwhile", uid=uid_of(world))


@pytest.mark.prove
async def test_watches_that_went_silent_are_found_and_begun_anew(
    account: Path, client: Client, namespace: str, road: Road
) -> None:
    world = await client.create(WORLDS, namespace, a_world("silent"))
    async with running(account, namespace) as operator:
        await operator.said("looked World .*/silent there")
        road.freeze()
        before = operator.count("looked World .*/silent")
        await client.merge_patch(WORLDS, namespace, "silent", {"metadata": {"labels": {"a": "b"}}})
        await client.create(PODS, namespace, child(world, WORLDS, "silent", POD_SPEC))

        # kopf's and our own watch each have to find out; there is no resync here.
        await operator.said("looked World .*/silent", before + 2, seconds=120)
        await operator.said("pods: the watch was cut", seconds=120)
        assert (await operator.http("/healthz")).status_code == 200
    await client.delete(WORLDS, namespace, "silent", uid=uid_of(world))


@pytest.mark.prove
async def test_it_is_unhealthy_while_its_watches_hear_nothing_for_too_long(
    account: Path, namespace: str, road: Road
) -> None:
    async with running(account, namespace, resync_seconds=20) as operator:

        async def is_unhealthy() -> str | None:
            answer = await operator.http("/healthz")
            return answer.text if answer.status_code == 503 else None

        async def is_healthy() -> bool:
            return await is_unhealthy() is None

        road.close()
        complaints = await until(is_unhealthy, seconds=200)
        assert re.search(r"the watch of (pods|jobs) heard nothing for \d+ s", complaints)
        road.open()
        await until(is_healthy, seconds=60)
