"""Apply: the actions of a decision, against the API server. The ledger first, deletes last."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass

from wavetank.api.execution import grading_of, limits_of, session_of
from wavetank.api.run import Run
from wavetank.controller.logs import get_logger
from wavetank.controller.memory import Created, RunMemory
from wavetank.controller.metrics import Metrics
from wavetank.controller.storage import Storage
from wavetank.core import actions
from wavetank.core.identity import AttemptKey
from wavetank.core.observed import Failure, Record
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
        """Do the actions, each of them although others fail.

        Returns:
            Whether to look again at once: the ledger has news, or a Pod was refused for good.

        Raises:
            ClusterError: If the API server did not take one: the next look asks again.
            LedgerDamaged: If the ledger is not as it was written; nothing was created or deleted.
        """
        has_news = False
        for action in wanted:
            if isinstance(action, actions.WriteLedger):
                has_news = await self._write(action) or has_news
        fresh = await self._not_over(wanted)
        problems = await _all(
            self._start(action)
            for action in fresh
            if isinstance(action, actions.StartRollout | actions.StartGrading)
        )
        problems += await _all(
            self._delete(action)
            for action in fresh
            if isinstance(action, actions.DeletePod | actions.DeleteJob)
        )
        if problems:
            raise problems[0]
        return has_news or len(fresh) < len(wanted) or bool(self.memory.refused)

    async def _not_over(self, wanted: Sequence[actions.Action]) -> Sequence[actions.Action]:
        """Return the actions without creates for what the ledger, read again, has the end of."""
        keys = {action: _keys_of(action) for action in wanted}
        ordinals = {key.ordinal for some in keys.values() for key in some}
        if not ordinals:
            return wanted
        ledger = self.memory.ledger
        await ledger.refresh(ordinals)
        is_over = ledger.view().is_over
        return [action for action in wanted if not any(is_over(key) for key in keys[action])]

    async def _write(self, action: actions.WriteLedger) -> bool:
        added = await self.memory.ledger.write(action.entries, self.clock())
        for entry in added:
            if isinstance(entry, Record):
                self._count(entry)
            elif isinstance(entry, Failure):
                self.metrics.attempt_failed(entry.cause.value)
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

    async def _start(self, action: actions.StartRollout | actions.StartGrading) -> None:
        if self.memory.blocked_until > self.clock():
            return
        if isinstance(action, actions.StartRollout):
            await self._start_rollout(action.key)
        else:
            await self._start_grading(action)

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

    def _forbidden(self, error: Forbidden, key: AttemptKey) -> None:
        """Wait for what may come back by itself; refuse for good what will not."""
        if error.is_quota or error.is_missing_rbac or error.is_terminating_namespace:
            self._block(error.reason_text)
        else:
            self.memory.refused[key] = error.reason_text

    def _block(self, words: str) -> None:
        self.memory.blocked_until = self.clock() + _BLOCKED_SECONDS
        self.memory.blocked_by = words

    def _pod(self, key: AttemptKey) -> RolloutPod:
        plan, spec = self.memory.plan, self.run.spec
        session = session_of(plan, spec, key, self.storage.base_url)
        image = spec.agent.image or self.images.agent
        agent = agent_choice(
            spec.agent.name, session.task, image, plan.bundles, self.storage.base_url
        )
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
        plan, seconds = self.memory.plan, limits_of(self.run.spec).verifier_seconds
        generation = self.memory.ledger.generation
        spec = grading_of(plan, action.members, generation, self.storage.base_url)
        grading = Grading(
            image=self.images.verifier,
            deadline_seconds=max(1, round(seconds)) * len(action.members),
            overrides=self.run.spec.pod_overrides,
            resources=plan.world_resources,
            runtime_class_name=plan.runtime_class_name,
        )
        body = verifier_job(
            VerifierJob(run=self.owner, spec=spec, try_number=action.try_number, grading=grading)
        )
        try:
            made = await self._create(JOBS, body)
        except (Forbidden, Invalid) as error:
            self._block(error.reason_text)
            return
        if made is None:
            self._block(
                f"a Job named {body['metadata']['name']} exists that is not this Run's: delete it"
            )

    async def _delete(self, action: actions.DeletePod | actions.DeleteJob) -> None:
        resource = PODS if isinstance(action, actions.DeletePod) else JOBS
        await self.client.delete(resource, self.owner.namespace, action.name, uid=action.uid)


def _keys_of(action: actions.Action) -> Sequence[AttemptKey]:
    """Return the attempts that an action creates something for."""
    if isinstance(action, actions.StartRollout):
        return [action.key]
    if isinstance(action, actions.StartGrading):
        return [member.key for member in action.members]
    return ()


async def _all(steps: Iterable[Coroutine[None, None, None]]) -> list[BaseException]:
    """Take all steps, a few at a time, and return what went wrong."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def take(step: Coroutine[None, None, None]) -> None:
        async with gate:
            await step

    taken = await asyncio.gather(*(take(step) for step in steps), return_exceptions=True)
    return [error for error in taken if error is not None]
