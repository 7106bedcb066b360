"""What the operator costs, as a ratio: a Run against a script that makes the same Pods itself."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from wavetank.api.plan import Plan
from wavetank.api.wire import BundleSet, GradeMember, GradeSpec, SessionSpec, WorldMessage
from wavetank.core.identity import plan_name
from wavetank.kube.client import Client
from wavetank.kube.objects import CONFIGMAPS, JOBS, PODS, Manifest, Resource, uid_of
from wavetank.kube.watch import Change, Watch
from wavetank.manifests.objects import RunOwner
from wavetank.manifests.rollout import RolloutPod, agent_choice, rollout_pod
from wavetank.manifests.verifier import Grading, VerifierJob, verifier_job
from wavetank.testing import tally
from wavetank.testing.cluster import until
from wavetank.testing.following import apply, over, run_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900), pytest.mark.usefixtures("operator")]

T = TypeVar("T")

ROLLOUTS = 40
PARALLELISM = 4
LABEL = "wavetank.test/raw"


async def test_a_run_is_at_least_as_quick_as_a_script_with_a_pod_and_a_job_for_each_rollout(
    namespace: str, client: Client
) -> None:
    tasks = {"include": ["ten", "half"]}
    spec: dict[str, Any] = {
        "agent": "nop",
        "tasks": tasks,
        "k": ROLLOUTS // 2,
        "parallelism": PARALLELISM,
    }
    await apply(client, namespace, tally.world(), tally.benchmark())
    # A warm-up, and the plan and tokens that the script's Pods need: suspended, it starts none.
    await apply(client, namespace, tally.run("warm", **{**spec, "k": 2}))
    await apply(client, namespace, tally.run("raw", **spec, suspend=True))
    await over(client, namespace, "warm")

    raw = await _raw_seconds(client, namespace)
    began = time.monotonic()
    await apply(client, namespace, tally.run("ours", **spec))
    await over(client, namespace, "ours")
    ours = time.monotonic() - began

    print(
        f"\n{ROLLOUTS} rollouts, {PARALLELISM} at a time: Run {ROLLOUTS / ours:.2f}/s, script "
        f"{ROLLOUTS / raw:.2f}/s, ratio {raw / ours:.2f}"
    )
    assert raw / ours >= 1.0


async def _raw_seconds(client: Client, namespace: str) -> float:
    """Make the Pods and Jobs of all rollouts, as a script would; return how long it took."""

    async def planned() -> Plan | None:
        item = await client.find(CONFIGMAPS, namespace, plan_name("raw"))
        return None if item is None else Plan.model_validate_json(item["data"]["plan"])

    script = Script(client, await run_owner(client, namespace), await until(planned, 60))
    return await script.run()


async def run_owner(client: Client, namespace: str) -> RunOwner:
    run = await run_of(client, namespace, "raw")
    return RunOwner("raw", namespace, run.metadata.uid)


class Script:
    """What people write today: one Pod and one Job per rollout, so many at a time."""

    def __init__(self, client: Client, owner: RunOwner, plan: Plan) -> None:
        self._client = client
        self._owner = owner
        self._plan = plan
        self._changed = asyncio.Condition()
        self._store = ""

    async def run(self) -> float:
        services = Resource("", "v1", "services", "Service")
        service = await self._client.get(services, "wavetank-system", "wavetank-store")
        self._store = f"http://{service['spec']['clusterIP']}:8081"
        self._pods = self._watch(PODS)
        self._jobs = self._watch(JOBS)
        watches = [asyncio.create_task(watch.run()) for watch in (self._pods, self._jobs)]
        await self._pods.synced.wait()
        await self._jobs.synced.wait()
        gate = asyncio.Semaphore(PARALLELISM)
        began = time.monotonic()
        await asyncio.gather(*(self._rollout(ordinal, gate) for ordinal in range(ROLLOUTS)))
        seconds = time.monotonic() - began
        for watch in watches:
            watch.cancel()
        return seconds

    def _watch(self, resource: Resource) -> Watch:
        return Watch(
            self._client,
            resource,
            self._tell,
            namespace=self._owner.namespace,
            label_selector=LABEL,
        )

    def _tell(self, change: Change, item: Manifest) -> None:
        del change, item
        asyncio.get_running_loop().create_task(self._wake())

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _rollout(self, ordinal: int, gate: asyncio.Semaphore) -> None:
        async with gate:
            pod = await self._create(PODS, _stripped(self._pod(ordinal)))
            ended = await self._wait(self._pods, pod, _world_message)
            job = await self._create(JOBS, _stripped(self._job(ordinal, ended)))
            await self._wait(self._jobs, job, _succeeded)
            await self._delete(PODS, pod)
            await self._delete(JOBS, job)

    async def _create(self, resource: Resource, body: Manifest) -> Manifest:
        return await self._client.create(resource, self._owner.namespace, body)

    async def _delete(self, resource: Resource, item: Manifest) -> None:
        name = item["metadata"]["name"]
        await self._client.delete(resource, self._owner.namespace, name, uid=uid_of(item))

    async def _wait(self, watch: Watch, item: Manifest, look: Callable[[Manifest], T | None]) -> T:
        def seen() -> T | None:
            now = [each for each in watch.objects.values() if uid_of(each) == uid_of(item)]
            return look(now[0]) if now else None

        async with self._changed:
            await self._changed.wait_for(seen)
        found = seen()
        assert found is not None
        return found

    def _pod(self, ordinal: int) -> Manifest:
        task = self._plan.tasks[ordinal % len(self._plan.tasks)].id
        session = SessionSpec(
            run=self._owner.uid,
            ordinal=ordinal,
            attempt=1,
            task=task,
            rollout=ordinal // len(self._plan.tasks),
            seed=0,
            deadline_seconds=300,
            bundles=self._plan.bundles.agent,
            store=self._store,
        )
        agent = agent_choice(
            "nop", task, "wavetank.local/agent:dev", self._plan.bundles, self._store
        )
        return rollout_pod(
            RolloutPod(
                run=self._owner,
                session=session,
                agent=agent,
                world_image="wavetank.local/world:dev",
                start_seconds=300,
            )
        )

    def _job(self, ordinal: int, ended: WorldMessage) -> Manifest:
        assert ended.seal is not None
        member = GradeMember(
            ordinal=ordinal,
            attempt=1,
            task=ended.seal.task,
            seal=ended.seal.digest(),
            snapshot=ended.seal.snapshot,
        )
        bundles = BundleSet(agent=self._plan.bundles.agent, grader=self._plan.bundles.grader)
        spec = GradeSpec(
            run=self._owner.uid,
            generation=0,
            members=[member],
            bundles=bundles,
            store=self._store,
        )
        grading = Grading(image="wavetank.local/verifier:dev", deadline_seconds=300)
        return verifier_job(VerifierJob(run=self._owner, spec=spec, try_number=1, grading=grading))


def _stripped(item: Manifest) -> Manifest:
    """Return the object without what makes it the operator's."""
    metadata = {"name": f"raw-{item['metadata']['name']}", "labels": {LABEL: "1"}}
    stripped = {**item, "metadata": metadata}
    if item["kind"] == "Job":
        template = {**item["spec"]["template"], "metadata": {}}
        stripped["spec"] = {**item["spec"], "template": template}
    return stripped


def _world_message(pod: Manifest) -> WorldMessage | None:
    for status in pod.get("status", {}).get("initContainerStatuses", ()):
        text = status.get("state", {}).get("terminated", {}).get("message")
        if status["name"] == "world" and text:
            return WorldMessage.model_validate_json(text)
    return None


def _succeeded(job: Manifest) -> bool | None:
    return bool(job.get("status", {}).get("succeeded")) or None
