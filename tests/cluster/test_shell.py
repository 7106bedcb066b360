"""The operator's shell on a real cluster, as a process, with the rights that the chart gives it."""

import asyncio
import re
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

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
from wavetank.testing.objects import a_world

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


class Operator:
    """The process, and what it said so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self.port = 0
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(line.decode().rstrip())

    async def said(self, pattern: str, times: int = 1) -> None:
        """Wait until so many lines match."""

        async def enough() -> bool:
            return self.count(pattern) >= times

        try:
            await until(enough, seconds=30)
        except TimeoutError:
            pytest.fail(f"'{pattern}' was not said:\n" + "\n".join(self.lines))

    def count(self, pattern: str) -> int:
        return sum(1 for line in self.lines if re.search(pattern, line))

    async def http(self, path: str) -> httpx.Response:
        async with httpx.AsyncClient() as http:
            return await http.get(f"http://127.0.0.1:{self.port}{path}")

    async def end(self) -> int:
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        code = await self.process.wait()
        await self._reader
        return code


@pytest.fixture
async def operator(
    client: Client, kubeconfig: Path, namespace: str, tmp_path: Path
) -> AsyncIterator[Operator]:
    """The shell, serving the module's namespace as an account that may do nothing else."""
    name = f"shell-{uuid.uuid4().hex[:6]}"
    account = kubeconfig_of_a_service_account(kubeconfig, namespace, name, tmp_path)
    await client.create(ROLES, namespace, {"metadata": {"name": name}, "rules": RULES})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": ROLES.group, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    await client.create(BINDINGS, namespace, binding)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        Path(__file__).with_name("shell_driver.py"),
        env={
            "WAVETANK_KUBECONFIG": str(account),
            "WAVETANK_NAMESPACE": namespace,
            "WAVETANK_WATCH_NAMESPACE": namespace,
            "WAVETANK_IMAGE_WORLD": "none",
            "WAVETANK_IMAGE_AGENT": "none",
            "WAVETANK_IMAGE_VERIFIER": "none",
            "WAVETANK_VERSION": "test",
            "WAVETANK_HEALTH_PORT": "0",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    operator = Operator(process)
    await operator.said("operator starts")
    found = re.search(r"health_port=(\d+)", "\n".join(operator.lines))
    assert found is not None
    operator.port = int(found[1])
    await operator.said("operator is ready")
    yield operator
    await operator.end()


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
    operator: Operator, client: Client, namespace: str
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
    operator: Operator, client: Client, namespace: str
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
    operator: Operator, client: Client, namespace: str
) -> None:
    created = await client.create(WORLDS, namespace, a_world("untouched"))
    await operator.said("looked World .*/untouched there")

    metadata = (await client.get(WORLDS, namespace, "untouched"))["metadata"]
    assert "annotations" not in metadata
    assert "finalizers" not in metadata
    # An operator that serves the whole cluster may have written its status.
    assert {field["manager"] for field in metadata["managedFields"]} == {FIELD_MANAGER}
    await client.delete(WORLDS, namespace, "untouched", uid=uid_of(created))


async def test_the_role_is_enough(operator: Operator, client: Client, namespace: str) -> None:
    world = await client.create(WORLDS, namespace, a_world("modest"))
    await operator.said("looked World .*/modest there")
    await client.delete(WORLDS, namespace, "modest", uid=uid_of(world))
    await operator.said("looked World .*/modest gone")

    assert operator.count("(?i)forbidden|warning|error|Traceback") == 0, operator.lines


async def test_an_event_is_posted_once_whoever_says_it_again(
    operator: Operator, client: Client, namespace: str
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


async def test_it_is_healthy_ready_and_tells_prometheus(operator: Operator) -> None:
    health, ready = await operator.http("/healthz"), await operator.http("/readyz")
    metrics = await operator.http("/metrics")

    assert (health.status_code, health.text) == (200, "ok\n")
    assert (ready.status_code, ready.text) == (200, "ok\n")
    assert metrics.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    ages = dict(re.findall(r'wavetank_watch_age_seconds{resource="(\w+)"} (\S+)', metrics.text))
    assert set(ages) == {"pods", "jobs", "worlds", "benchmarks", "runs"}
    assert all(0 <= float(age) < 120 for age in ages.values())


async def test_on_sigterm_a_running_look_ends_and_then_the_process(
    operator: Operator, client: Client, namespace: str
) -> None:
    world = await client.create(WORLDS, namespace, a_world("slow"))
    await operator.said("begins World .*/slow")

    async with asyncio.timeout(20):
        code = await operator.end()

    assert code == 0
    assert operator.count("looked World .*/slow there") == 1
    assert operator.lines[-1].endswith("operator stops")
    await client.delete(WORLDS, namespace, "slow", uid=uid_of(world))
