"""What the cluster holds, as commands need it: Runs with plan and ledger, and names that exist."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from wavetank.api.conditions import is_true
from wavetank.api.kinds import read
from wavetank.api.ledger import decode, ledger_of
from wavetank.api.plan import Plan
from wavetank.api.results import RunFacts, document, figures_of, rollout_rows
from wavetank.api.run import Run
from wavetank.api.run_status import RunStatus
from wavetank.cli.target import Place
from wavetank.core.errors import Finding, Severity, SpecError
from wavetank.core.identity import plan_name
from wavetank.core.observed import Ledger
from wavetank.kube.client import Client
from wavetank.kube.errors import Forbidden
from wavetank.kube.objects import CONFIGMAPS, NAMESPACES, RUNS, Resource

_LEDGER = "app.kubernetes.io/component=ledger"
_NAMES_SHOWN = 20
_DEAD_ENDS = frozenset({"NoTasks", "SolutionsMissing", "NameConflict"})
"""Reasons for which a Run waits that do not go away by themselves."""


@dataclass(frozen=True)
class RunRead:
    """A Run with what is recorded of it."""

    run: Run
    plan: Plan | None
    """None while the Run waits for its Benchmark."""
    ledger: Ledger = field(default_factory=Ledger)
    entries: Mapping[str, Any] = field(default_factory=dict)
    """The ledger's entries as they are kept, by key."""
    store: str | None = None
    """Folder of the store, for a Run on this machine; None in a cluster."""

    @property
    def name(self) -> str:
        """Return the Run's name."""
        return self.run.metadata.name


async def runs_of(place: Place, benchmark: str | None = None) -> list[Run]:
    """Return the Runs of a namespace, or of one benchmark in it, oldest first."""
    listing = await place.client.list(RUNS, place.namespace)
    found = [read(Run, item) for item in listing.items]
    wanted = [r for r in found if benchmark is None or r.spec.benchmark_ref.name == benchmark]
    return sorted(wanted, key=lambda r: (r.metadata.creation_timestamp or "", r.metadata.name))


async def run_of(place: Place, name: str) -> Run:
    """Return a Run.

    Raises:
        SpecError: If there is none of that name, with the names that there are.
    """
    raw = await place.client.find(RUNS, place.namespace, name)
    if raw is None:
        raise await unknown(place, RUNS, name)
    return read(Run, raw)


async def read_run(client: Client, run: Run) -> RunRead:
    """Return a Run with its plan and ledger.

    Raises:
        LedgerDamaged: If the ledger was changed by hand.
    """
    meta = run.metadata
    item = await client.find(CONFIGMAPS, meta.namespace, plan_name(meta.name))
    plan = None if item is None else Plan.model_validate_json(item["data"]["plan"])
    if plan is None or plan.run != meta.uid:
        return RunRead(run, None)
    selector = f"wavetank.dev/run-uid={meta.uid},{_LEDGER}"
    shards = await client.list(CONFIGMAPS, meta.namespace, label_selector=selector)
    decoded, entries = [], {}
    for shard in shards.items:
        for key, text in (shard.get("data") or {}).items():
            decoded.append(decode(shard["metadata"]["name"], key, text))
            entries[key] = json.loads(text)
    return RunRead(run, plan, ledger_of(decoded), entries)


def state_of(status: RunStatus) -> str:
    """Return a Run's state as one word: Complete, Failed, Suspended, Running or Waiting."""
    for condition in ("Complete", "Failed", "Suspended"):
        if is_true(status.conditions, condition):
            return condition
    return "Waiting" if status.started_at is None else "Running"


def is_over(run: Run) -> bool:
    """Tell whether nothing more will happen: Complete, Failed, or waiting in vain."""
    status = run.status
    if status.observed_generation != run.metadata.generation:
        return False  # Its spec was changed, and the operator has not looked at it again.
    return state_of(status) in ("Complete", "Failed") or _waits_in_vain(status)


def _waits_in_vain(status: RunStatus) -> bool:
    reasons = {c.reason for c in status.conditions if c.type == "Progressing"}
    return state_of(status) == "Waiting" and bool(reasons & _DEAD_ENDS)


def problem_of(run: Run) -> str:
    """Return the sentence on what a Run waits for or failed by; empty when it runs well."""
    if run.status.observed_generation is None:
        return "no operator has looked at it yet"
    if run.status.last_problem:
        return run.status.last_problem
    return next((c.message for c in run.status.conditions if c.type == "Failed" and c.message), "")


def results_of(found: RunRead, *, with_rollouts: bool) -> dict[str, JsonValue]:
    """Return a Run's results for programs, computed from its ledger."""
    run = found.run
    plan = found.plan or _empty_plan(run)
    facts = RunFacts(
        name=found.name, agent=run.spec.agent.name, k=run.spec.k, state=state_of(run.status)
    )
    results = document(facts, figures_of(plan, run.spec.k, found.ledger))
    results["usage"] = None  # Of a model: agents without one use none.
    if with_rollouts:
        rows = rollout_rows(plan, run.spec.k, found.ledger)
        results["rollouts"] = [_with_evidence(found, row) for row in rows]
    return results


def _with_evidence(found: RunRead, row: JsonValue) -> JsonValue:
    """Add where in the store a rollout's evidence is; null when it left no sealed end state."""
    if not isinstance(row, dict):
        return row
    record = found.ledger.records[int(str(row["ordinal"]))]
    path = evidence_path(found.run, record.key.ordinal, record.key.attempt)
    place = f"{found.store or ''}{path}"
    return {**row, "usage": None, "evidence": place if record.seal else None}


def evidence_path(run: Run, ordinal: int, attempt: int) -> str:
    """Return the path in the store under which the evidence of an attempt is kept."""
    return f"/v1/runs/{run.metadata.uid}/{ordinal}/{attempt}"


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


async def unknown(place: Place, resource: Resource, name: str) -> SpecError:
    """Return the error for a name that is not there: with those that are, or for the namespace."""
    await require_namespace(place)
    listing = await place.client.list(resource, place.namespace)
    known = [item["metadata"]["name"] for item in listing.items]
    return fault(
        f"{resource.kind} {name}", f"{place.namespace} has none of that name. {name_one_of(known)}"
    )


async def require_namespace(place: Place) -> None:
    """Make sure that a namespace exists, before anybody concludes from its being empty.

    Raises:
        SpecError: If it does not, with the namespaces that do.
    """
    try:
        if await place.client.find(NAMESPACES, None, place.namespace) is not None:
            return
        listing = await place.client.list(NAMESPACES)
    except Forbidden:
        return  # Who may not look at namespaces was given one that they may use.
    known = [item["metadata"]["name"] for item in listing.items]
    raise fault(
        f"namespace {place.namespace}", f"the cluster has none of that name. {name_one_of(known)}"
    )


def name_one_of(names: Sequence[str]) -> str:
    """Return the sentence that tells what would be right.

    >>> name_one_of(["crm", "hr"])
    'Name one of: crm, hr.'
    """
    if not names:
        return "There is none to name."
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"Name one of: {', '.join(names[:_NAMES_SHOWN])}{more}."


def fault(path: str, message: str) -> SpecError:
    """Return the error for one thing that is wrong in what was asked for."""
    return SpecError([Finding(Severity.FAULT, path, message)])
