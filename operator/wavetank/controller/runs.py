"""The cycle of a Run: plan, observe, decide, apply, then one status write and its events."""

from contextlib import suppress
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
from wavetank.controller.applying import Applier, Images
from wavetank.controller.ledger import GENERATION, RunLedger
from wavetank.controller.logs import get_logger
from wavetank.controller.memory import RunMemory
from wavetank.controller.observing import Sources, children_of, observe, stored_seals
from wavetank.controller.planning import PlanDamaged, Waiting, name_conflict, plan_of
from wavetank.controller.queue import Key
from wavetank.controller.shell import Shell
from wavetank.controller.statuses import write_status
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
from wavetank.core.errors import BugError, ClusterError, SpecError
from wavetank.core.figures import Aggregate
from wavetank.core.lifecycle import Stage, check_step
from wavetank.core.observed import RunSeen
from wavetank.kube.errors import ApiError, Invalid
from wavetank.kube.objects import CONFIGMAPS, RUNS, SECRETS, Manifest, version_of
from wavetank.manifests.objects import RunOwner, TokenKey, results_config_map, tokens_secret

_log = get_logger(__name__)

_STATUS_SECONDS = 2.0
"""Between two status writes of a Run that goes on, longer for a large one: its figures take 10 ms
for 1,000 rollouts. The last one is written at once."""

_AGAIN_SECONDS = 0.5

_STUBBORN = 3
"""Looks in a row that the cluster does not let end well: from then on the status says why. One is
no news."""

_TOKEN_SECONDS = 86_400.0
"""How often a Run's tokens are signed anew."""


class RunReconciler:
    """Looks at Runs; one instance per operator."""

    def __init__(self, shell: Shell, storage: Storage) -> None:
        self._shell = shell
        self._storage = storage
        self._memories: dict[Key, RunMemory] = {}
        self._states: dict[Key, str] = {}
        self._troubles: dict[Key, int] = {}
        """Looks in a row that the cluster did not let end well."""

    async def __call__(self, key: Key) -> float | None:
        """Look at one Run; return in how many seconds to look again at the latest."""
        raw = await self._shell.client.find(RUNS, key.namespace, key.name)
        if raw is None or raw["metadata"].get("deletionTimestamp"):
            self._memories.pop(key, None)
            self._states.pop(key, None)
            self._troubles.pop(key, None)
            self._tell_counts()
            return None
        try:
            run = read(Run, raw)
        except SpecError as error:
            # Stored under another version of the CRD: nothing can be done until it is changed.
            _log.warning("run cannot be read", run=f"{key.namespace}/{key.name}", problem=error)
            return None
        if _says_complete(run) and not self._has_children(run):
            self._tell_state(key, run.status)
            self._memories.pop(key, None)
            return None
        return await self._cycle(key, raw, run)

    async def _cycle(self, key: Key, raw: Manifest, run: Run) -> float | None:
        meta = run.metadata
        owner = RunOwner(meta.name, meta.namespace, meta.uid)
        try:
            memory = self._memories.get(key)
            if memory is None or memory.uid != meta.uid:
                plan = await plan_of(self._shell.client, self._storage.client, run, owner)
                if isinstance(plan, Waiting):
                    return await self._wait(key, raw, run, plan)
                memory = await self._open(key, run, owner, plan)
            wait = await self._look(key, raw, run, owner, memory)
        except (LedgerDamaged, PlanDamaged) as error:
            # Read anew at the next look: somebody may have restored it.
            self._memories.pop(key, None)
            reason = "LedgerDamaged" if isinstance(error, LedgerDamaged) else "PlanDamaged"
            return await self._fail(key, raw, run, reason, str(error))
        except (ClusterError, Invalid) as error:
            await self._tell_trouble(key, run, error)
            raise
        self._troubles.pop(key, None)
        return wait

    async def _open(self, key: Key, run: Run, owner: RunOwner, plan: Plan) -> RunMemory:
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
        if open_ordinals:
            memory.seals = await stored_seals(self._storage.client, owner.uid, open_ordinals)
        self._memories[key] = memory
        return memory

    async def _look(
        self, key: Key, raw: Manifest, run: Run, owner: RunOwner, memory: RunMemory
    ) -> float | None:
        now = self._now()
        await self._sign_tokens(owner, memory, now)
        shell = self._shell
        children = children_of(shell.pods, shell.jobs, owner.uid)
        sources = Sources(shell.client, self._storage.client)
        seen = await observe(run, memory, children, sources, now)
        decision = decide(seen, now)
        if not decision.complete and _says_complete(run):
            # Another operator has written more than is known here.
            self._memories.pop(key, None)
            return _AGAIN_SECONDS
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
        try:
            has_news = await applier.apply(decision.actions)
        except ClusterError:
            if decision.complete:
                # That something cannot be deleted takes nothing from the results.
                await self._report(key, raw, run, memory, decision)
            raise
        wait = await self._report(key, raw, run, memory, decision)
        if has_news:
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
        # That something is recorded is the ledger's to say: the write may still fail.
        memory.stages = {
            ordinal: stage
            for ordinal, stage in decision.stages.items()
            if stage is not Stage.RECORDED
        }

    async def _report(
        self, key: Key, raw: Manifest, run: Run, memory: RunMemory, decision: Decision
    ) -> float | None:
        """Write the status if it changed and is due; return when it will be due, if not yet."""
        now = self._now()
        since = now - memory.status_at
        wait = _status_seconds(len(memory.plan.tasks) * run.spec.k)
        # A clock that was set back must not make it wait for long.
        if not decision.complete and 0 <= since < wait:
            return wait - since
        ledger = memory.ledger.view()
        figures = _figures(memory, run.spec.k)
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
        if decision.complete:
            owner = RunOwner(run.metadata.name, run.metadata.namespace, run.metadata.uid)
            results = reporting.results_text(run, memory.plan, ledger, figures, "Complete")
            await self._keep_results(raw, owner, results)
        if not await self._write_status(key, run, status):
            return _AGAIN_SECONDS
        memory.status_at, memory.status_text = now, text
        await self._tell_events(raw, run, status, decision)
        return None

    async def _keep_results(self, raw: Manifest, owner: RunOwner, results: str) -> None:
        """Write the table of results, unless its name is somebody else's: say so then."""
        client, body = self._shell.client, results_config_map(owner, {"results.json": results})
        name = body["metadata"]["name"]
        found = await client.find(CONFIGMAPS, owner.namespace, name)
        foreign = None if found is None else name_conflict(found, owner)
        if foreign is None:
            version = None if found is None else version_of(found)
            await client.apply(CONFIGMAPS, owner.namespace, name, body, resource_version=version)
        else:
            await self._shell.events.post(raw, foreign.reason, foreign.message, warning=True)

    async def _write_status(self, key: Key, run: Run, status: RunStatus) -> bool:
        """Write a status; False when the Run was changed or deleted since it was read."""
        if not await write_status(self._shell.client, RUNS, run.metadata, status):
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
        return why.again_after

    async def _fail(
        self, key: Key, raw: Manifest, run: Run, reason: str, message: str
    ) -> float | None:
        if _says_complete(run):
            _log.error("run is damaged", run=f"{key.namespace}/{key.name}", problem=message)
            return None
        status = reporting.failed_status(run, reason, message, rfc3339(self._now()))
        self._tell_state(key, status)
        if status != run.status:
            await self._write_status(key, run, status)
            await self._shell.events.post(raw, reason, message, warning=True)
        return None

    async def _tell_trouble(self, key: Key, run: Run, error: ClusterError | Invalid) -> None:
        """Say in the status what keeps looks from ending well, if it does so again and again."""
        self._troubles[key] = self._troubles.get(key, 0) + 1
        if self._troubles[key] < _STUBBORN or _says_complete(run):
            return
        words = error.reason_text if isinstance(error, ApiError | Invalid) else str(error)
        status = reporting.waiting_status(run, "Blocked", words, rfc3339(self._now()))
        if memory := self._memories.get(key):
            memory.status_text = ""  # what it was before is news again, once this is over
        if status != run.status:
            with suppress(ClusterError):  # it may be the API server itself that is in trouble
                await self._write_status(key, run, status)

    def _has_children(self, run: Run) -> bool:
        children = children_of(self._shell.pods, self._shell.jobs, run.metadata.uid)
        return bool(children.pods or children.jobs)

    def _tell_state(self, key: Key, status: RunStatus) -> None:
        self._states[key] = _state(status)
        self._tell_counts()

    def _tell_counts(self) -> None:
        counts = dict.fromkeys(("waiting", "running", "suspended", "complete", "failed"), 0)
        for state in self._states.values():
            counts[state] += 1
        self._shell.metrics.runs(counts)

    def _now(self) -> float:
        return self._shell.now()


def _status_seconds(total: int) -> float:
    """Return how long after a status write the next one comes, in a Run of so many rollouts.

    >>> [_status_seconds(total) for total in (15, 10_000, 100_000)]
    [2.0, 10.0, 30.0]
    """
    return max(_STATUS_SECONDS, min(total / 1000, 30.0))


def _figures(memory: RunMemory, k: int) -> Aggregate:
    """Return the figures of what is recorded, computed anew only when that has changed."""
    ledger, known = memory.ledger.view(), memory.figures
    if known is None or known[0] is not ledger or known[1] != k:
        known = memory.figures = (ledger, k, figures_of(memory.plan, k, ledger))
    return known[2]


def _state(status: RunStatus) -> str:
    for condition in ("Complete", "Failed", "Suspended"):
        if is_true(status.conditions, condition):
            return condition.lower()
    return "waiting" if status.started_at is None else "running"


def _says_complete(run: Run) -> bool:
    """Tell whether a Run's status says that its present spec is done."""
    current = run.status.observed_generation == run.metadata.generation
    return current and is_true(run.status.conditions, "Complete")


def _images(shell: Shell) -> Images:
    settings = shell.settings
    return Images(settings.image_world, settings.image_agent, settings.image_verifier)
