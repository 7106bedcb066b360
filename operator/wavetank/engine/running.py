"""A local Run from its first look to its last: observe, ``core.decide``, apply.

Only apply differs from the operator: processes instead of Pods, a file instead of ConfigMaps.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from wavetank.api.execution import grading_of, limits_of, session_of
from wavetank.api.plan import Plan
from wavetank.core import actions
from wavetank.core.actions import Decision
from wavetank.core.decide import decide
from wavetank.core.errors import SpecError
from wavetank.core.identity import AttemptKey, rollout_and_place, verifier_job_name
from wavetank.core.observed import Ledger, RunSeen
from wavetank.engine import files, planning, storing
from wavetank.engine.files import LocalRun
from wavetank.engine.job import LocalJob
from wavetank.engine.ledger import FileLedger
from wavetank.engine.planning import Asked, Brought
from wavetank.engine.pod import LocalPod, Surroundings, Tokens
from wavetank.engine.processes import Processes
from wavetank.engine.storing import LocalStore
from wavetank.manifests.rollout import agent_choice

Clock = Callable[[], datetime]


@dataclass(frozen=True)
class Progress:
    """How far a Run is, after a look."""

    local: LocalRun
    plan: Plan
    ledger: Ledger
    decision: Decision


Tell = Callable[[Progress], None]


async def run(root: Path, asked: Asked, clock: Clock, tell: Tell) -> LocalRun:
    """Run a benchmark to its end, or go on where an earlier call stopped; return the Run.

    Args:
        root: Where local Runs are kept.
        asked: What to run.
        clock: Gives the moment, UTC.
        tell: Hears of each look.

    Raises:
        SpecError: If the benchmark has faults, or the Run is run by another process already.
        LedgerDamaged: If its ledger was changed by hand.
        ClusterError: If no check was possible.
    """
    brought = await asyncio.to_thread(planning.bring, asked.folder)
    local = planning.found_or_new(root, asked, brought, clock().timestamp())
    with files.held(local.home):
        files.save(local)
        with files.scratch(local) as work:
            async with Processes() as processes, _served(local, work, clock) as store:
                around = _Around(processes, store, work)
                plan = local.plan() or await _planned(local, brought, around)
                if asked.retry_unscored:
                    local = planning.next_generation(local, plan)
                    files.save(local)
                await _drive(local, plan, around, tell)
    return local


@dataclass(frozen=True)
class _Around:
    """What a Run needs while this process runs it."""

    processes: Processes
    store: LocalStore
    work: Path


def _served(local: LocalRun, work: Path, clock: Clock) -> AbstractAsyncContextManager[LocalStore]:
    return storing.served(local.store, work / "public.pem", clock)


async def _planned(local: LocalRun, brought: Brought, around: _Around) -> Plan:
    try:
        return await planning.make_plan(
            local, brought, around.processes, around.store, around.work / "check"
        )
    except SpecError:
        # Refused before it began: there is nothing to keep.
        files.remove(local)
        raise


async def _drive(local: LocalRun, plan: Plan, around: _Around, tell: Tell) -> None:
    try:
        async with asyncio.TaskGroup() as tasks:
            await _Engine(local, plan, around, tasks).run(tell)
    except ExceptionGroup as group:
        # One mistake ends the others: the first is the one to tell of.
        raise group.exceptions[0] from group


class _Engine:
    """The state between looks; all of it can be lost."""

    def __init__(
        self, local: LocalRun, plan: Plan, around: _Around, tasks: asyncio.TaskGroup
    ) -> None:
        self._local = local
        self._plan = plan
        self._store = around.store
        self._work = around.work
        self._tasks = tasks
        self._limits = limits_of(local.run.spec)
        self._ledger = FileLedger(local.ledger_file(local.generation), planning.tasks_of(plan))
        self._earlier = files.merged(
            [FileLedger(local.ledger_file(g), ()).view() for g in range(local.generation)]
        )
        self._pods: dict[str, LocalPod] = {}
        self._jobs: dict[str, LocalJob] = {}
        self._ended_seen: dict[AttemptKey, float] = {}
        self._news = asyncio.Event()
        self._around = Surroundings(around.processes, tasks, self._now, self._news.set)
        self._seals = storing.take_up(local.store, plan.run, self._is_over)

    async def run(self, tell: Tell) -> None:
        """Look and act until every rollout is recorded and every process has ended."""
        while True:
            self._news.clear()
            decision = decide(self._observe(), self._now())
            self._apply(decision.actions)
            tell(Progress(self._local, self._plan, self._view(), decision))
            if decision.complete and not self._pods and not self._jobs:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(decision.look_again_after):
                    await self._news.wait()

    def _observe(self) -> RunSeen:
        pods = tuple(pod.seen() for pod in self._pods.values())
        jobs = tuple(job.seen() for job in self._jobs.values())
        seals = {key: seal for key, seal in self._seals.items() if not self._is_over(key)}
        for key in [*seals, *(pod.key for pod in pods if pod.seal is not None)]:
            self._ended_seen.setdefault(key, self._now())
        return RunSeen(
            total=len(self._plan.tasks) * self._local.run.spec.k,
            limits=self._limits,
            ledger=self._view(),
            pods=pods,
            jobs=jobs,
            seals=seals,
            vanished=frozenset(seals),
            ended_seen=self._ended_seen,
            attempts_before=self._attempts_before(),
        )

    def _view(self) -> Ledger:
        """Return the generation's ledger, and beside it the scores that no generation takes back."""
        own = self._ledger.view()
        scored = {n: r for n, r in self._earlier.records.items() if r.reward is not None}
        return replace(own, records={**scored, **own.records})

    def _attempts_before(self) -> dict[int, int]:
        failed = {n: each[-1].key.attempt for n, each in self._earlier.failures.items()}
        recorded = {n: record.key.attempt for n, record in self._earlier.records.items()}
        return {n: max(failed.get(n, 0), recorded.get(n, 0)) for n in {*failed, *recorded}}

    def _is_over(self, key: AttemptKey) -> bool:
        return self._ledger.view().is_over(key) or self._earlier.is_over(key)

    def _apply(self, wanted: Sequence[actions.Action]) -> None:
        """Do the actions: the ledger comes first among them."""
        for action in wanted:
            match action:
                case actions.WriteLedger(entries):
                    if self._ledger.write(entries, self._now()):
                        self._news.set()
                case actions.StartRollout(key):
                    self._start_rollout(key)
                case actions.StartGrading():
                    self._start_grading(action)
                case actions.DeletePod(_, uid):
                    self._tasks.create_task(self._pods.pop(uid).end())
                case actions.DeleteJob(_, uid):
                    self._tasks.create_task(self._jobs.pop(uid).end())

    def _start_rollout(self, key: AttemptKey) -> None:
        plan, spec, store = self._plan, self._local.run.spec, self._store
        task = plan.tasks[rollout_and_place(key.ordinal, len(plan.tasks))[1]]
        pod = LocalPod(
            self._around,
            session_of(plan, spec, key, store.url),
            agent_choice(spec.agent.name, task.id, "", plan.bundles, store.url),
            Tokens(
                act=store.token(
                    get=storing.bundle_paths(plan.bundles.agent), create=[f"/v1/runs/{plan.run}"]
                ),
                solutions=store.token(get=storing.bundle_paths(plan.bundles.solutions)),
            ),
            self._work / f"{key.ordinal}.{key.attempt}",
        )
        self._pods[pod.seen().uid] = pod
        pod.start()

    def _start_grading(self, action: actions.StartGrading) -> None:
        plan, meta, store = self._plan, self._local.run.metadata, self._store
        keys = [member.key for member in action.members]
        generation = self._local.generation
        name = verifier_job_name(meta.name, meta.uid, keys, generation, action.try_number)
        if name in self._jobs:
            return
        bundles = storing.bundle_paths([*plan.bundles.agent, *plan.bundles.grader])
        root = f"/v1/runs/{plan.run}"
        job = LocalJob(
            self._around,
            plan,
            grading_of(plan, action.members, generation, store.url),
            action.try_number,
            max(1, round(self._limits.verifier_seconds)) * len(keys),
            store.token(get=[*bundles, root], create=[f"{root}/grades"]),
            store.folder,
            self._work / name,
        )
        self._jobs[name] = job
        job.start()

    def _now(self) -> float:
        return self._store.now().timestamp()
