"""Apply: the actions of a decision, against the API server. The ledger first, deletes last."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wavetank.api.run import Run
from wavetank.api.wire import BundleSet, GradeMember, GradeSpec, SessionSpec
from wavetank.controller.logs import get_logger
from wavetank.controller.memory import Created, RunMemory
from wavetank.controller.metrics import Metrics
from wavetank.controller.observing import limits_of
from wavetank.controller.storage import Storage
from wavetank.core import actions
from wavetank.core.identity import AttemptKey, rollout_and_place
from wavetank.core.observed import Failure, Record
from wavetank.core.plan import rollout_seed
from wavetank.kube.client import Client
from wavetank.kube.errors import AlreadyExists, Forbidden, Invalid
from wavetank.kube.objects import JOBS, PODS, Manifest, Resource, controller_of
from wavetank.manifests.objects import RunOwner
from wavetank.manifests.rollout import RolloutPod, agent_choice, rollout_pod
from wavetank.manifests.verifier import Grading, VerifierJob, verifier_job

_log = get_logger(__name__)

_BLOCKED_SECONDS = 15.0
"""How long a used-up quota or a missing permission is waited for before the next create."""

_AT_ONCE = 8
"""Creates under way at once; the client's own limit on writes is what bounds the rate."""

GENERATION = 0
"""Of the ledger. Grading again, and running again what has no score, will raise it."""


@dataclass(frozen=True)
class Images:
    """The images that Pods are made of."""

    world: str
    agent: str
    verifier: str


@dataclass(frozen=True)
class Applier:
    """Does what was decided about one Run."""

    client: Client
    storage: Storage
    metrics: Metrics
    images: Images
    model: str
    clock: Callable[[], float]
    run: Run
    owner: RunOwner
    memory: RunMemory

    async def apply(self, wanted: Sequence[actions.Action]) -> bool:
        """Do the actions; return whether the ledger has new entries.

        Raises:
            ClusterError: If the API server did not take one: the rest waits for the next look.
        """
        added = False
        for action in wanted:
            if isinstance(action, actions.WriteLedger):
                added = await self._write(action) or added
        starts = [action for action in wanted if isinstance(action, actions.StartRollout)]
        if starts:
            await self._start_rollouts([start.key for start in starts])
        for action in wanted:
            if isinstance(action, actions.StartGrading):
                await self._start_grading(action)
        await self._delete(wanted)
        return added

    async def _write(self, action: actions.WriteLedger) -> bool:
        added = await self.memory.ledger.write(action.entries, self.clock())
        for entry in added:
            if isinstance(entry, Record):
                self._count(entry)
            elif isinstance(entry, Failure):
                self.metrics.attempt_failed(entry.cause.value)
                self.memory.refused.pop(entry.key, None)
                _log.info(
                    "attempt failed",
                    run=f"{self.owner.namespace}/{self.owner.name}",
                    rollout=entry.key.ordinal,
                    attempt=entry.key.attempt,
                    cause=entry.cause.value,
                    words=entry.message,
                )
        return bool(added)

    def _count(self, record: Record) -> None:
        benchmark = self.memory.plan.benchmark
        if record.reward is None:
            cause = "" if record.cause is None else record.cause.value
            self.metrics.rollout(benchmark, self.model, "unscored", cause)
        else:
            self.metrics.rollout(benchmark, self.model, "scored")
            self.metrics.reward(benchmark, self.model, "reward", record.reward)
        for score in record.scores:
            if score.value is not None:
                self.metrics.reward(benchmark, self.model, score.name, score.value)
        stages = record.stages
        for stage, seconds in (
            ("queue", stages.queue),
            ("start", stages.start),
            ("act", stages.act),
            ("grade", stages.grade),
        ):
            if seconds is not None:
                self.metrics.stage(stage, seconds)
        self.memory.ended_seen.pop(record.key, None)

    async def _start_rollouts(self, keys: Sequence[AttemptKey]) -> None:
        """Create Pods, after reading again that the ledger does not hold these rollouts already."""
        ledger = self.memory.ledger
        await ledger.refresh(key.ordinal for key in keys)
        view = ledger.view()
        fresh = [
            key
            for key in keys
            if key.ordinal not in view.records
            and all(failure.key != key for failure in view.failures.get(key.ordinal, ()))
        ]
        gate = asyncio.Semaphore(_AT_ONCE)

        async def start(key: AttemptKey) -> None:
            async with gate:
                if self.memory.blocked_until <= self.clock():
                    await self._start_rollout(key)

        await asyncio.gather(*(start(key) for key in fresh))

    async def _start_rollout(self, key: AttemptKey) -> None:
        pod = rollout_pod(self._pod(key))
        try:
            made = await self._create(PODS, pod)
        except Invalid as error:
            self.memory.refused[key] = error.reason_text
            return
        except Forbidden as error:
            self._forbidden(error, key)
            return
        if made is None:
            self.memory.refused[key] = (
                f"a Pod named {pod['metadata']['name']} exists that is not this Run's: delete it"
            )
            return
        self.memory.created[key] = Created(made, self.clock())

    async def _create(self, resource: Resource, body: Manifest) -> Manifest | None:
        """Create an object, or adopt ours of the same name; None when it is somebody else's."""
        try:
            return await self.client.create(resource, self.owner.namespace, body)
        except AlreadyExists:
            name = body["metadata"]["name"]
            found = await self.client.get(resource, self.owner.namespace, name)
            owner = controller_of(found)
            same = owner is not None and owner.uid == self.owner.uid
            notes = found["metadata"].get("annotations") or {}
            wanted = body["metadata"]["annotations"]
            same = same and all(notes.get(name) == text for name, text in wanted.items())
            return found if same else None

    def _forbidden(self, error: Forbidden, key: AttemptKey | None) -> None:
        """Wait for what may come back by itself; refuse for good what will not."""
        if error.is_quota or error.is_missing_rbac or error.is_terminating_namespace or key is None:
            self.memory.blocked_until = self.clock() + _BLOCKED_SECONDS
            self.memory.blocked_by = error.reason_text
        else:
            self.memory.refused[key] = error.reason_text

    def _pod(self, key: AttemptKey) -> RolloutPod:
        plan, spec = self.memory.plan, self.run.spec
        rollout, place = rollout_and_place(key.ordinal, len(plan.tasks))
        task = plan.tasks[place]
        multiplier = float(spec.timeouts.rollout_multiplier)
        seconds = task.timeout_seconds or spec.timeouts.rollout_seconds
        session = SessionSpec(
            run=self.owner.uid,
            ordinal=key.ordinal,
            attempt=key.attempt,
            task=task.id,
            rollout=rollout,
            seed=rollout_seed(task.id, rollout, spec.tasks.seed or 0),
            deadline_seconds=max(1, round(seconds * multiplier)),
            bundles=plan.bundles.agent,
            store=self.storage.base_url,
        )
        image = spec.agent.image or self.images.agent
        agent = agent_choice(spec.agent.name, task.id, image, plan.bundles, self.storage.base_url)
        return RolloutPod(
            run=self.owner,
            session=session,
            agent=agent,
            world_image=self.images.world,
            start_seconds=spec.timeouts.start_seconds,
            overrides=spec.pod_overrides,
            world_resources=plan.world_resources,
            runtime_class_name=plan.runtime_class_name,
        )

    async def _start_grading(self, action: actions.StartGrading) -> None:
        plan = self.memory.plan
        count = len(plan.tasks)
        spec = GradeSpec(
            run=self.owner.uid,
            generation=GENERATION,
            members=[
                GradeMember(
                    ordinal=member.key.ordinal,
                    attempt=member.key.attempt,
                    task=plan.tasks[rollout_and_place(member.key.ordinal, count)[1]].id,
                    seal=member.seal,
                    snapshot=member.snapshot,
                )
                for member in action.members
            ],
            bundles=BundleSet(agent=plan.bundles.agent, grader=plan.bundles.grader),
            store=self.storage.base_url,
        )
        grading = Grading(
            image=self.images.verifier,
            deadline_seconds=round(limits_of(self.run).verifier_seconds) * len(action.members),
            overrides=self.run.spec.pod_overrides,
            resources=plan.world_resources,
            runtime_class_name=plan.runtime_class_name,
        )
        body = verifier_job(
            VerifierJob(run=self.owner, spec=spec, try_number=action.try_number, grading=grading)
        )
        try:
            made = await self._create(JOBS, body)
        except Forbidden as error:
            self._forbidden(error, None)
            return
        if made is None:
            self.memory.blocked_until = self.clock() + _BLOCKED_SECONDS
            self.memory.blocked_by = (
                f"a Job named {body['metadata']['name']} exists that is not this Run's: delete it"
            )

    async def _delete(self, wanted: Sequence[actions.Action]) -> None:
        gate = asyncio.Semaphore(_AT_ONCE)

        async def delete(resource: Resource, name: str, uid: str) -> None:
            async with gate:
                await self.client.delete(resource, self.owner.namespace, name, uid=uid)

        await asyncio.gather(
            *(
                delete(
                    PODS if isinstance(action, actions.DeletePod) else JOBS, action.name, action.uid
                )
                for action in wanted
                if isinstance(action, actions.DeletePod | actions.DeleteJob)
            )
        )
        for action in wanted:
            if isinstance(action, actions.DeleteJob):
                self.memory.reports.pop(action.uid, None)
