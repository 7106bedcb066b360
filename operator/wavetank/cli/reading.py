"""A Run's documents as the cluster holds them: the object, its plan, its ledger."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from wavetank.api.conditions import is_true
from wavetank.api.kinds import read
from wavetank.api.ledger import decode, ledger_of
from wavetank.api.plan import Plan
from wavetank.api.results import RunFacts, document, figures_of, rollout_rows
from wavetank.api.run import Run
from wavetank.api.run_status import RunStatus
from wavetank.core.identity import plan_name
from wavetank.core.observed import Ledger
from wavetank.kube.client import Client
from wavetank.kube.objects import CONFIGMAPS, RUNS

_LEDGER = "app.kubernetes.io/component=ledger"


@dataclass(frozen=True)
class RunRead:
    """A Run with what is recorded of it."""

    run: Run
    plan: Plan | None
    """None while the Run waits for its Benchmark."""
    ledger: Ledger

    @property
    def name(self) -> str:
        """Return the Run's name."""
        return self.run.metadata.name


async def runs_of(client: Client, namespace: str, benchmark: str | None = None) -> list[Run]:
    """Return the Runs of a namespace, or of one benchmark in it, oldest first."""
    listing = await client.list(RUNS, namespace)
    found = [read(Run, item) for item in listing.items]
    wanted = [r for r in found if benchmark is None or r.spec.benchmark_ref.name == benchmark]
    return sorted(wanted, key=lambda r: (r.metadata.creation_timestamp or "", r.metadata.name))


async def read_run(client: Client, run: Run) -> RunRead:
    """Return a Run with its plan and ledger.

    Raises:
        LedgerDamaged: If the ledger was changed by hand.
    """
    meta = run.metadata
    item = await client.find(CONFIGMAPS, meta.namespace, plan_name(meta.name))
    plan = None if item is None else Plan.model_validate_json(item["data"]["plan"])
    if plan is None or plan.run != meta.uid:
        return RunRead(run, None, Ledger())
    selector = f"wavetank.dev/run-uid={meta.uid},{_LEDGER}"
    shards = await client.list(CONFIGMAPS, meta.namespace, label_selector=selector)
    entries = [
        decode(shard["metadata"]["name"], key, text)
        for shard in shards.items
        for key, text in (shard.get("data") or {}).items()
    ]
    return RunRead(run, plan, ledger_of(entries))


def state_of(status: RunStatus) -> str:
    """Return a Run's state as one word: Complete, Failed, Suspended, Running or Waiting."""
    for condition in ("Complete", "Failed", "Suspended"):
        if is_true(status.conditions, condition):
            return condition
    return "Waiting" if status.started_at is None else "Running"


def results_of(found: RunRead, *, with_rollouts: bool) -> dict[str, JsonValue]:
    """Return a Run's results for programs, computed from its ledger."""
    run = found.run
    plan = found.plan or _empty_plan(run)
    facts = RunFacts(
        name=found.name, agent=run.spec.agent.name, k=run.spec.k, state=state_of(run.status)
    )
    results = document(facts, figures_of(plan, run.spec.k, found.ledger))
    if with_rollouts:
        results["rollouts"] = rollout_rows(plan, run.spec.k, found.ledger)
    return results


def _empty_plan(run: Run) -> Plan:
    return Plan.model_validate(
        {
            "run": run.metadata.uid,
            "benchmark": run.spec.benchmark_ref.name,
            "benchmarkGeneration": 0,
            "tasks": [],
            "bundles": {"agent": [], "grader": []},
        }
    )


def problem_of(run: Run) -> str:
    """Return the sentence on what a Run waits for or failed by; empty when it runs well."""
    if run.status.last_problem:
        return run.status.last_problem
    return next((c.message for c in run.status.conditions if c.type == "Failed" and c.message), "")


def names(found: Sequence[Run]) -> str:
    """Return names for a message.

    >>> names([])
    'none'
    """
    return ", ".join(run.metadata.name for run in found) or "none"
