"""The cycle of a Run: plan, observe, decide, apply, then one status write and its events."""

from datetime import timedelta

from wavetank.api.conditions import is_true
from wavetank.api.kinds import read
from wavetank.api.ledger import LedgerDamaged
from wavetank.api.moments import rfc3339
from wavetank.api.plan import Plan
from wavetank.api.results import NO_MODEL, figures_of
from wavetank.api.run import Run
from wavetank.api.run_status import RunStatus
from wavetank.controller import reporting
from wavetank.controller.applying import GENERATION, Applier, Images
from wavetank.controller.ledger import RunLedger
from wavetank.controller.logs import get_logger
from wavetank.controller.memory import RunMemory
from wavetank.controller.observing import Sources, children_of, observe, stored_seals
from wavetank.controller.planning import Waiting, plan_of
from wavetank.controller.queue import Key
from wavetank.controller.shell import Shell
from wavetank.controller.storage import (
    EVIDENCE_BYTES,
    RUN_TOKEN_DAYS,
    Storage,
    create,
    get,
    get_bundles,
)
from wavetank.core.actions import Decision
from wavetank.core.decide import decide
from wavetank.core.errors import BugError, SpecError
from wavetank.core.lifecycle import Stage, check_step
from wavetank.core.observed import RunSeen
from wavetank.kube.errors import Conflict, NotFound
from wavetank.kube.objects import CONFIGMAPS, RUNS, SECRETS, Manifest
from wavetank.manifests.objects import RunOwner, TokenKey, results_config_map, tokens_secret

_log = get_logger(__name__)

_WAIT_SECONDS = 3.0
"""Between looks at a Benchmark that is not ready yet."""

_STATUS_SECONDS = 2.0
"""Between two status writes of a Run that goes on; the last one is written at once."""

_AGAIN_SECONDS = 0.5

_TOKEN_SECONDS = 86_400.0
"""How often a Run's tokens are signed anew."""


class RunReconciler:
    """Looks at Runs; one instance per operator."""

    def __init__(self, shell: Shell, storage: Storage) -> None:
        self._shell = shell
        self._storage = storage
        self._memories: dict[str, RunMemory] = {}
        self._states: dict[Key, str] = {}

    async def __call__(self, key: Key) -> float | None:
        """Look at one Run; return in how many seconds to look again at the latest."""
        raw = await self._shell.client.find(RUNS, key.namespace, key.name)
        if raw is None or raw["metadata"].get("deletionTimestamp"):
            self._forget(key, raw)
            return None
        try:
            run = read(Run, raw)
        except SpecError as error:
            # Stored under another version of the CRD: nothing can be done until it is changed.
            _log.warning("run cannot be read", run=f"{key.namespace}/{key.name}", problem=error)
            return None
        if _is_at_rest(run) and not self._has_children(run):
            self._tell_state(key, run.status)
            self._memories.pop(run.metadata.uid, None)
            return None
        return await self._cycle(key, raw, run)

    def _forget(self, key: Key, raw: Manifest | None) -> None:
        self._states.pop(key, None)
        if raw is not None:
            self._memories.pop(raw["metadata"]["uid"], None)
        self._tell_counts()

    async def _cycle(self, key: Key, raw: Manifest, run: Run) -> float | None:
        meta = run.metadata
        owner = RunOwner(meta.name, meta.namespace, meta.uid)
        memory = self._memories.get(meta.uid)
        if memory is None:
            plan = await plan_of(self._shell.client, self._storage.client, run, owner)
            if isinstance(plan, Waiting):
                return await self._wait(key, raw, run, plan)
            try:
                memory = await self._open(run, owner, plan)
            except LedgerDamaged as error:
                return await self._fail(key, raw, run, "LedgerDamaged", str(error))
        try:
            return await self._look(key, raw, run, owner, memory)
        except LedgerDamaged as error:
            return await self._fail(key, raw, run, "LedgerDamaged", str(error))

    async def _open(self, run: Run, owner: RunOwner, plan: Plan) -> RunMemory:
        """Load the ledger and the seals that are not in it: what a new operator must know."""
        ledger = RunLedger(self._shell.client, owner, GENERATION, [task.id for task in plan.tasks])
        known = run.status.ledger
        await ledger.load(
            least_shards=known.shards if known else 0, least_records=known.records if known else 0
        )
        memory = RunMemory(uid=owner.uid, plan=plan, ledger=ledger)
        if run.status.resolved and run.status.resolved.images:
            memory.images = run.status.resolved.images
        open_ordinals = set(range(len(plan.tasks) * run.spec.k)) - set(ledger.view().records)
        if run.status.started_at is not None and open_ordinals:
            memory.seals = await stored_seals(self._storage.client, owner.uid, open_ordinals)
        self._memories[owner.uid] = memory
        return memory

    async def _look(
        self, key: Key, raw: Manifest, run: Run, owner: RunOwner, memory: RunMemory
    ) -> float | None:
        now = self._now()
        await self._sign_tokens(owner, memory, now)
        shell = self._shell
        children = children_of(shell.pods.objects.values(), shell.jobs.objects.values(), owner.uid)
        sources = Sources(shell.client, self._storage.client)
        seen = await observe(run, memory, children, sources, now)
        decision = decide(seen, now)
        self._check_steps(key, memory, seen, decision)
        if run.status.started_at is None:
            await self._announce(raw, memory, seen)
        applier = Applier(
            client=shell.client,
            storage=self._storage,
            metrics=shell.metrics,
            images=_images(shell),
            model=NO_MODEL,
            clock=self._now,
            run=run,
            owner=owner,
            memory=memory,
        )
        added = await applier.apply(decision.actions)
        wait = await self._report(key, raw, run, memory, decision)
        if added:
            return 0.0
        waits = [w for w in (wait, decision.look_again_after) if w is not None]
        if memory.created or memory.blocked_until > now:
            waits.append(5.0)
        return min(waits, default=None)

    async def _sign_tokens(self, owner: RunOwner, memory: RunMemory, now: float) -> None:
        if now - memory.tokens_at < _TOKEN_SECONDS:
            return
        bundles, root = memory.plan.bundles, f"/v1/runs/{owner.uid}"
        valid = timedelta(days=RUN_TOKEN_DAYS)
        tokens = {
            TokenKey.ACT: [*get_bundles(bundles.agent), create(root, EVIDENCE_BYTES)],
            TokenKey.GRADE: [
                *get_bundles([*bundles.agent, *bundles.grader]),
                get(root),
                create(f"{root}/grades"),
            ],
            TokenKey.SOLUTIONS: get_bundles(bundles.solutions),
            TokenKey.READ: [get(root)],
        }
        signed = {name: self._storage.token(grants, valid) for name, grants in tokens.items()}
        secret = tokens_secret(owner, signed)
        await self._shell.client.apply(SECRETS, owner.namespace, secret["metadata"]["name"], secret)
        memory.tokens_at = now

    def _check_steps(self, key: Key, memory: RunMemory, seen: RunSeen, decision: Decision) -> None:
        """Notice a step that no path of the life cycle allows: log it, and go on."""
        for ordinal, before in memory.stages.items():
            after = decision.stages.get(ordinal, Stage.PLANNED)
            if ordinal in seen.ledger.records:
                after = Stage.RECORDED
            try:
                check_step(ordinal, before, after)
            except BugError as error:
                _log.error("impossible step", run=f"{key.namespace}/{key.name}", problem=error)
        memory.stages = dict(decision.stages)

    async def _report(
        self, key: Key, raw: Manifest, run: Run, memory: RunMemory, decision: Decision
    ) -> float | None:
        """Write the status if it changed and is due; return when it will be due, if not yet."""
        now = self._now()
        ledger = memory.ledger.view()
        figures = figures_of(memory.plan, run.spec.k, ledger)
        progress = reporting.Progress(
            plan=memory.plan,
            decision=decision,
            figures=figures,
            shards=memory.ledger.shard_count,
            records=len(ledger.records),
            operator_version=self._shell.settings.version,
            store=self._storage.service,
            images=memory.images,
        )
        status = reporting.status_of(run, progress, rfc3339(now))
        text = status.model_dump_json()
        if text == memory.status_text:
            return None
        due = memory.status_at + _STATUS_SECONDS
        if not decision.complete and now < due:
            return due - now
        if decision.complete:
            owner = RunOwner(run.metadata.name, run.metadata.namespace, run.metadata.uid)
            results = reporting.results_text(run, memory.plan, ledger, figures, "Complete")
            body = results_config_map(owner, {"results.json": results})
            await self._shell.client.apply(
                CONFIGMAPS, owner.namespace, body["metadata"]["name"], body
            )
        if not await self._write_status(key, run, status):
            return _AGAIN_SECONDS
        memory.status_at, memory.status_text = now, text
        await self._tell_events(raw, run, status, decision)
        return None

    async def _write_status(self, key: Key, run: Run, status: RunStatus) -> bool:
        """Write a status; False when the Run was changed or deleted since it was read."""
        try:
            await self._shell.client.apply(
                RUNS,
                key.namespace,
                key.name,
                {"status": status.document()},
                resource_version=run.metadata.resource_version,
                subresource="status",
            )
        except (Conflict, NotFound):
            # The next look reads it again and decides on that.
            return False
        self._tell_state(key, status)
        return True

    async def _tell_events(
        self, raw: Manifest, run: Run, status: RunStatus, decision: Decision
    ) -> None:
        post = self._shell.events.post
        if decision.complete and not is_true(run.status.conditions, "Complete"):
            words = next(c.message for c in status.conditions if c.type == "Complete")
            await post(raw, "RunCompleted", words)
        elif decision.problem and run.status.last_problem != status.last_problem:
            await post(raw, "RunBlocked", decision.problem, warning=True)

    async def _announce(self, raw: Manifest, memory: RunMemory, seen: RunSeen) -> None:
        count = len(memory.plan.tasks)
        note = (
            f"{seen.total} rollouts are planned: {count} tasks, each {seen.total // count} times."
        )
        await self._shell.events.post(raw, "RunStarted", note)

    async def _wait(self, key: Key, raw: Manifest, run: Run, why: Waiting) -> float:
        status = reporting.waiting_status(run, why.reason, why.message, rfc3339(self._now()))
        if status != run.status:
            await self._write_status(key, run, status)
            await self._shell.events.post(raw, why.reason, why.message, warning=True)
        self._tell_state(key, status)
        return _WAIT_SECONDS

    async def _fail(
        self, key: Key, raw: Manifest, run: Run, reason: str, message: str
    ) -> float | None:
        status = reporting.failed_status(run, reason, message, rfc3339(self._now()))
        if status != run.status:
            await self._write_status(key, run, status)
            await self._shell.events.post(raw, reason, message, warning=True)
        return None

    def _has_children(self, run: Run) -> bool:
        shell, uid = self._shell, run.metadata.uid
        children = children_of(shell.pods.objects.values(), shell.jobs.objects.values(), uid)
        return bool(children.rollouts or children.jobs)

    def _tell_state(self, key: Key, status: RunStatus) -> None:
        self._states[key] = _state(status)
        self._tell_counts()

    def _tell_counts(self) -> None:
        counts = dict.fromkeys(("waiting", "running", "suspended", "complete", "failed"), 0)
        for state in self._states.values():
            counts[state] += 1
        self._shell.metrics.runs(counts)

    def _now(self) -> float:
        return self._shell.clock().timestamp()


def _state(status: RunStatus) -> str:
    for condition in ("Complete", "Failed", "Suspended"):
        if is_true(status.conditions, condition):
            return condition.lower()
    return "waiting" if status.started_at is None else "running"


def _is_at_rest(run: Run) -> bool:
    """Tell whether a Run is over, and said so of its present spec."""
    current = run.status.observed_generation == run.metadata.generation
    over = is_true(run.status.conditions, "Complete") or is_true(run.status.conditions, "Failed")
    return current and over


def _images(shell: Shell) -> Images:
    settings = shell.settings
    return Images(settings.image_world, settings.image_agent, settings.image_verifier)
