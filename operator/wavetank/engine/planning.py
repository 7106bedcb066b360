"""From a folder to a Run with a plan: packed, checked, and refused with all that is wrong in it."""

import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wavetank.api.execution import selected, without_script
from wavetank.api.fields import ObjectMeta
from wavetank.api.moments import rfc3339
from wavetank.api.plan import Plan
from wavetank.api.run import Run, RunSpec
from wavetank.api.wire import BundleSet, CheckKind, CheckResult, CheckSpec
from wavetank.bundles.world import linked_folders
from wavetank.core.errors import Finding, Severity, SpecError
from wavetank.engine import files, storing
from wavetank.engine.files import LocalRun
from wavetank.engine.job import check
from wavetank.engine.processes import Processes
from wavetank.engine.storing import LocalStore


@dataclass(frozen=True)
class Asked:
    """What somebody wants to run."""

    folder: Path
    """Of the benchmark."""
    spec: RunSpec
    name: str | None = None
    """Of the Run; made from benchmark, agent and content where it is not given."""
    retry_unscored: bool = False


@dataclass(frozen=True)
class Brought:
    """A benchmark as it is in its folder now."""

    bundles: BundleSet
    archives: Mapping[str, bytes]
    """By digest."""
    aliases: tuple[str, ...]


def bring(folder: Path) -> Brought:
    """Pack a benchmark and the worlds that it is linked to.

    Raises:
        SpecError: With every file that no bundle may hold.
    """
    linked = linked_folders(folder)
    bundles, archives = storing.packed({"": folder, **linked})
    return Brought(bundles, archives, tuple(sorted(linked)))


def found_or_new(root: Path, asked: Asked, brought: Brought, now: float) -> LocalRun:
    """Return the Run that this command has begun before, or a new one; nothing is written yet.

    The same content, agent and choice of tasks make the same Run: whoever calls again goes on.

    Raises:
        SpecError: If the name is taken by another Run.
    """
    spec, folder = asked.spec, asked.folder.resolve()
    identity = _identity(folder, spec, brought.bundles)
    name = asked.name or _name(spec, identity)
    known = files.load(root / name)
    if known is None:
        meta = ObjectMeta(
            name=name, uid=str(uuid.uuid4()), generation=1, creation_timestamp=rfc3339(now)
        )
        return LocalRun(root / name, folder, identity, Run(metadata=meta, spec=spec))
    if known.identity != identity:
        words = (
            f"there is a local Run of this name of {known.benchmark}, by agent "
            f"{known.run.spec.agent.name}, of other files or other tasks. Give another --name."
        )
        raise SpecError([Finding(Severity.FAULT, f"Run {name}", words)])
    # As in a cluster k only grows: what was recorded stays.
    wider = spec.model_copy(update={"k": max(spec.k, known.run.spec.k)})
    return known.with_spec(wider)


def _identity(folder: Path, spec: RunSpec, bundles: BundleSet) -> str:
    chosen = spec.model_dump(mode="json", by_alias=True, exclude={"k", "parallelism"})
    told = json.dumps([str(folder), chosen, bundles.digest()], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def _name(spec: RunSpec, identity: str) -> str:
    words = f"{spec.benchmark_ref.name}-{spec.agent.name}".lower()
    return f"{re.sub(r'[^a-z0-9]+', '-', words)[:80].strip('-')}-{identity[:6]}"


async def make_plan(
    local: LocalRun, brought: Brought, processes: Processes, store: LocalStore, scratch: Path
) -> Plan:
    """Check a benchmark and pin what will be done.

    Raises:
        SpecError: With its faults, unless the Run allows them; or if there is nothing to run.
        ClusterError: If no check was possible.
    """
    uid = local.run.metadata.uid
    bundles = brought.bundles
    storing.keep(local.store, brought.archives)
    token = store.token(
        get=storing.bundle_paths([*bundles.agent, *bundles.grader, *bundles.solutions]),
        create=[f"/v1/checks/{uid}"],
    )
    asked = CheckSpec(
        kind=CheckKind.BENCHMARK,
        uid=uid,
        generation=1,
        bundles=bundles,
        aliases=list(brought.aliases),
        store=store.url,
    )
    result = await check(processes, asked, token, local.store, scratch)
    plan = _plan(local.run, result)
    files.write(local.home / "plan.json", plan.canonical())
    return plan


def _plan(run: Run, result: CheckResult) -> Plan:
    _require_no_faults(run, result)
    tasks = selected(run.spec, result.tasks)
    benchmark = run.spec.benchmark_ref.name
    if not tasks:
        known = ", ".join(task.id for task in result.tasks) or "none"
        raise _fault("--task", f"none of the tasks of {benchmark} is chosen. It has: {known}.")
    agent = run.spec.agent.name
    if missing := without_script(agent, tasks):
        words = (
            f"it has nothing to replay for {', '.join(missing)}. Add the files, or choose other "
            f"tasks by --task."
        )
        raise _fault(f"agent {agent}", words)
    return Plan(
        run=run.metadata.uid,
        benchmark=benchmark,
        benchmark_generation=1,
        tasks=tasks,
        bundles=result.bundles,
    )


def _require_no_faults(run: Run, result: CheckResult) -> None:
    faults = [
        Finding(each.severity, each.path, each.message)
        for each in result.findings
        if each.severity is Severity.FAULT
    ]
    if faults and not run.spec.allow_faults:
        words = "mend it, or give --allow-faults."
        name = f"benchmark {run.spec.benchmark_ref.name}"
        raise SpecError([*faults, Finding(Severity.FAULT, name, words)])


def _fault(path: str, words: str) -> SpecError:
    return SpecError([Finding(Severity.FAULT, path, words)])


def next_generation(local: LocalRun, plan: Plan) -> LocalRun:
    """Return the Run with what has no score planned again, once all is recorded.

    Before that there is nothing to plan again: what is under way goes on.
    """
    records = local.ledger().records
    total = len(plan.tasks) * local.run.spec.k
    recorded = [record for ordinal, record in records.items() if ordinal < total]
    if len(recorded) < total or all(record.reward is not None for record in recorded):
        return local
    return replace(local, generation=local.generation + 1)


def tasks_of(plan: Plan) -> Sequence[str]:
    """Return the ids of a plan's tasks, in its order."""
    return [task.id for task in plan.tasks]
