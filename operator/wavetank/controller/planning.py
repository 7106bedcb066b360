"""A Run's plan: made once from the checked Benchmark, pinned in a ConfigMap, then only read."""

from dataclasses import dataclass

from pydantic import ValidationError

from wavetank.api.benchmark import Benchmark
from wavetank.api.conditions import is_true
from wavetank.api.execution import selected, without_script
from wavetank.api.kinds import read
from wavetank.api.plan import Plan
from wavetank.api.run import Run
from wavetank.api.wire import BundleSet, CheckResult
from wavetank.api.world import World
from wavetank.core.errors import BugError, SpecError
from wavetank.core.identity import plan_name
from wavetank.kube.client import Client
from wavetank.kube.errors import AlreadyExists, Invalid
from wavetank.kube.objects import BENCHMARKS, CONFIGMAPS, WORLDS, Manifest, controller_of
from wavetank.manifests.objects import RunOwner, plan_config_map
from wavetank.store.client import StoreClient, StoreNotFound


@dataclass(frozen=True)
class Waiting:
    """Why a Run has no plan yet."""

    reason: str
    """CamelCase, for the condition."""
    message: str
    again_after: float = 3.0
    """Seconds until it may be otherwise."""


_SELDOM_SECONDS = 30.0
"""For what only a person changes."""


class PlanDamaged(BugError):
    """The plan that a Run began with is not as Wavetank wrote it: nothing can be built on it."""


async def plan_of(
    client: Client, store: StoreClient, run: Run, identity: RunOwner
) -> Plan | Waiting:
    """Return the Run's plan, made now if there is none yet, or why it cannot be made.

    Raises:
        ClusterError: If the API server or the store did not answer.
        PlanDamaged: If the plan that the Run began with is gone or unreadable.
    """
    name = plan_name(identity.name)
    found = await client.find(CONFIGMAPS, identity.namespace, name)
    if found is not None:
        return _read(found, identity)
    if run.status.started_at is not None:
        raise PlanDamaged(_damage(name, "was deleted"))
    made = await _make(client, store, run)
    if isinstance(made, Waiting):
        return made
    body = plan_config_map(identity, made)
    try:
        await client.create(CONFIGMAPS, identity.namespace, body)
    except AlreadyExists:
        return _read(await client.get(CONFIGMAPS, identity.namespace, name), identity)
    except Invalid as error:
        words = f"The plan of {len(made.tasks)} tasks cannot be kept: {error.reason_text}"
        return Waiting("PlanRefused", words, _SELDOM_SECONDS)
    return made


def name_conflict(item: Manifest, identity: RunOwner) -> Waiting | None:
    """Return what to tell when an object of a name that a Run needs is not the Run's own."""
    owner = controller_of(item)
    if owner is not None and owner.uid == identity.uid:
        return None
    whose = "nobody" if owner is None else f"{owner.kind} {owner.name} with UID {owner.uid}"
    return Waiting(
        "NameConflict",
        f"{item['kind']} {item['metadata']['name']} belongs to {whose}, not to this Run: it goes "
        f"with its owner, or delete it.",
        _SELDOM_SECONDS,
    )


def _read(item: Manifest, identity: RunOwner) -> Plan | Waiting:
    foreign = name_conflict(item, identity)
    if foreign is not None:
        return foreign
    try:
        return Plan.model_validate_json((item.get("data") or {}).get("plan", ""))
    except ValidationError as error:
        raise PlanDamaged(_damage(item["metadata"]["name"], "cannot be read")) from error


def _damage(name: str, what: str) -> str:
    return f"ConfigMap {name} {what}. Restore it, or delete the Run and apply it again."


async def _make(client: Client, store: StoreClient, run: Run) -> Plan | Waiting:
    name = run.spec.benchmark_ref.name
    raw = await client.find(BENCHMARKS, run.metadata.namespace, name)
    if raw is None:
        return Waiting("BenchmarkNotFound", f"There is no Benchmark {name} in this namespace yet.")
    try:
        benchmark = read(Benchmark, raw)
    except SpecError as error:
        return Waiting("BenchmarkNotReady", f"Benchmark {name}: {error}")
    refusal = _not_ready(benchmark, allow_faults=run.spec.allow_faults)
    if refusal is not None:
        return refusal
    meta = benchmark.metadata
    path = f"/v1/checks/{meta.uid}/{meta.generation}/{benchmark.status.check_result}"
    try:
        result = CheckResult.model_validate_json(await store.get(path))
    except (StoreNotFound, ValidationError) as error:
        words = f"The result of the check of Benchmark {name} cannot be read: {error}"
        return Waiting("BenchmarkNotReady", words, _SELDOM_SECONDS)
    tasks = selected(run.spec, result.tasks)
    if not tasks:
        return Waiting(
            "NoTasks",
            f"spec.tasks selects none of the {len(result.tasks)} tasks of Benchmark {name}. "
            f"Change include, exclude or limit in a new Run.",
            _SELDOM_SECONDS,
        )
    missing = without_script(run.spec.agent.name, tasks)
    if missing:
        return Waiting(
            "SolutionsMissing",
            f"Agent {run.spec.agent.name} has nothing to replay for {', '.join(missing)}. Add the "
            f"files to the bundle, or leave these tasks out by spec.tasks.exclude in a new Run.",
            _SELDOM_SECONDS,
        )
    scoring = benchmark.spec.scoring
    world = await _world(client, run.metadata.namespace, benchmark.spec.world.world_ref.name)
    if isinstance(world, Waiting):
        return world
    return Plan(
        run=run.metadata.uid,
        benchmark=name,
        benchmark_generation=meta.generation,
        tasks=tasks,
        bundles=BundleSet.model_validate(result.bundles),
        pass_threshold=float(scoring.pass_threshold),
        range_min=float(scoring.range.min),
        range_max=float(scoring.range.max),
        world_resources=world.spec.resources,
        runtime_class_name=world.spec.runtime_class_name,
    )


async def _world(client: Client, namespace: str, name: str) -> World | Waiting:
    raw = await client.find(WORLDS, namespace, name)
    if raw is None:
        return Waiting("WorldNotFound", f"There is no World {name} in this namespace any more.")
    try:
        return read(World, raw)
    except SpecError as error:
        return Waiting("WorldNotReady", f"World {name}: {error}")


def _not_ready(benchmark: Benchmark, *, allow_faults: bool) -> Waiting | None:
    status, name = benchmark.status, benchmark.metadata.name
    current = status.observed_generation == benchmark.metadata.generation
    if not current or status.check_result is None:
        words = next((c.message for c in status.conditions if c.type == "Ready"), "")
        return Waiting("BenchmarkNotReady", words or f"Benchmark {name} is being checked.")
    if is_true(status.conditions, "Ready") or allow_faults:
        return None
    words = next((c.message for c in status.conditions if c.type == "Ready"), "")
    return Waiting("BenchmarkNotReady", f"Benchmark {name} is not Ready: {words}")
