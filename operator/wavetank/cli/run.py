"""``wavetank benchmarks run``: one Run of a benchmark, in the cluster or on this machine."""

import asyncio
import re
from pathlib import Path
from secrets import token_hex
from typing import Any

import click
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from wavetank.api.benchmark import Benchmark
from wavetank.api.kinds import API_VERSION, read
from wavetank.api.run import NAME_LENGTH, RunSpec
from wavetank.cli import following, reading, render, showing
from wavetank.cli.runs import exit_code
from wavetank.cli.target import (
    AT_FAULT,
    ObjectName,
    Place,
    Target,
    carry_out,
    connected,
    target_options,
)
from wavetank.core.errors import ClusterError, Finding, Severity, SpecError
from wavetank.engine.settings import cpu_count
from wavetank.kube.errors import AlreadyExists
from wavetank.kube.objects import BENCHMARKS, RUNS

_WHAT_IS_RIGHT = {
    "agent": "--agent: give oracle, nop or scripted:<name>, not {value!r}.",
    "tasks": "--task: give an id, or a pattern with *, ? or [...] like 'close_*', not {value!r}.",
}


@click.command(epilog="Example:  wavetank benchmarks run crm -k 3 --agent oracle -n bench --wait")
@click.argument("benchmark")
@click.option(
    "-k", "k", type=click.IntRange(1, 100), default=1, show_default=True,
    help="Rollouts of each task.",
)  # fmt: skip
@click.option("--agent", required=True, help="oracle, nop or scripted:<name>.")
@click.option(
    "--task", "tasks", metavar="GLOB", multiple=True,
    help="Only tasks that match; may be repeated.",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(min=1), help="At most so many tasks.")
@click.option(
    "--parallelism", type=click.IntRange(1, 1000),
    help="Rollouts at a time. Default: 10; with --local, one for each CPU.",
)  # fmt: skip
@click.option("--allow-faults", is_flag=True, help="Run it although its check found faults.")
@click.option(
    "--name",
    type=ObjectName(NAME_LENGTH),
    help="Name of the Run. Default: from benchmark and agent.",
)
@click.option("--wait", is_flag=True, help="Follow the Run to its end and show the results.")
@click.option("--local", "is_local", is_flag=True, help="Run a folder on this machine.")
@click.option("--retry-unscored", is_flag=True, help="With --local: run again what has no score.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@target_options
def run(
    target: Target, benchmark: str, name: str | None, wait: bool, as_json: bool, **asked: Any
) -> None:
    """Run BENCHMARK, every task k times.

    With --local it is a folder, and no cluster is needed. The same command again goes on where
    it stopped, also after Ctrl-C, and shows the results when all is recorded.

    Exit code with --wait: 0 when the Run is Complete (with a low score too), 1 when it Failed,
    3 when the cluster was lost, 130 when interrupted; the Run goes on then.
    """
    if asked["is_local"]:
        _run_here(target, Path(benchmark), name, asked, as_json=as_json)
        return
    if asked["retry_unscored"]:
        raise click.UsageError("--retry-unscored needs --local.")
    spec = _spec(benchmark, asked)
    chosen = name or _name(benchmark, spec.agent.name)
    carry_out(lambda: _run(target, chosen, spec, wait=wait, as_json=as_json))


def _run_here(
    target: Target, folder: Path, name: str | None, asked: dict[str, Any], *, as_json: bool
) -> None:
    if target.is_named:
        raise click.UsageError("--local uses no cluster: leave out --namespace and --context.")
    if not folder.is_dir():
        raise click.UsageError(f"with --local, give the folder of a benchmark: {folder} is none.")
    # Not above: it brings in the servers, which no other command needs.
    from wavetank.cli import local_run
    from wavetank.engine.planning import Asked

    async def step() -> int:
        spec = _spec(local_run.benchmark_name(folder), asked)
        wanted = Asked(folder, spec, name, retry_unscored=asked["retry_unscored"])
        return await local_run.run_local(wanted, as_json=as_json)

    carry_out(step)


def _spec(benchmark: str, asked: dict[str, Any]) -> RunSpec:
    fields = {
        "benchmarkRef": {"name": benchmark},
        "agent": {"name": asked["agent"]},
        "k": asked["k"],
        "parallelism": asked["parallelism"] or (cpu_count() if asked["is_local"] else 10),
        "allowFaults": asked["allow_faults"],
        "tasks": {"include": asked["tasks"], "limit": asked["limit"]},
    }
    try:
        return RunSpec.model_validate(fields)
    except ValidationError as error:
        raise click.UsageError("\n".join(_words(benchmark, e) for e in error.errors())) from error


def _words(benchmark: str, error: ErrorDetails) -> str:
    """Return what is wrong with an option, as people gave it."""
    if error["loc"][0] == "benchmarkRef" and Path(benchmark).is_dir():
        push = f"wavetank benchmarks push {benchmark}"
        return f"{benchmark} is a folder. Give --local, or push it first: {push}"
    right = _WHAT_IS_RIGHT.get(str(error["loc"][0]), "{value!r}: {message}.")
    return right.format(value=error["input"], message=error["msg"])


def _name(benchmark: str, agent: str) -> str:
    """Return a name for a Run, different each time."""
    words = re.sub(r"[^a-z0-9-]+", "-", f"{benchmark}-{agent}".lower()).strip("-")
    return f"{words[: NAME_LENGTH - 10].strip('-')}-{token_hex(2)}"


async def _run(target: Target, name: str, spec: RunSpec, *, wait: bool, as_json: bool) -> int:
    async with connected(target) as place:
        await _require_benchmark(place, spec)
        await _create(place, name, spec)
        if not wait:
            _tell_created(place, name, as_json=as_json)
            return 0
        try:
            over = await following.with_bars(place, [name])
        except (asyncio.CancelledError, ClusterError):
            render.tell(f"Run {name} goes on. Follow it: {_watch(place, name)}")
            raise
        if not over:
            render.tell(f"Run {name} was deleted.")
            return AT_FAULT
        found = await reading.read_run(place.client, over[0])
    results = reading.results_of(found, with_rollouts=False)
    if as_json:
        render.print_json({"benchmark": spec.benchmark_ref.name, "runs": [results]})
    else:
        showing.show_run(found.run, results)
    return exit_code(over, 1)


async def _create(place: Place, name: str, spec: RunSpec) -> None:
    body = {
        "apiVersion": API_VERSION,
        "kind": "Run",
        "metadata": {"name": name},
        "spec": spec.model_dump(mode="json", by_alias=True, exclude_defaults=True),
    }
    try:
        await place.client.create(RUNS, place.namespace, body)
    except AlreadyExists as error:
        raise reading.fault(
            f"Run {name}", f"{place.namespace} has one of this name. Give another --name."
        ) from error


def _watch(place: Place, name: str) -> str:
    return f"wavetank runs watch {name} -n {place.namespace}"


def _tell_created(place: Place, name: str, *, as_json: bool) -> None:
    if as_json:
        render.print_json({"name": name, "namespace": place.namespace})
    else:
        click.echo(f"Run {name} is created. Follow it: {_watch(place, name)}")


async def _require_benchmark(place: Place, spec: RunSpec) -> None:
    """Refuse a benchmark that is not there, or has faults that its Run would wait on for ever."""
    name = spec.benchmark_ref.name
    raw = await place.client.find(BENCHMARKS, place.namespace, name)
    if raw is None:
        raise await reading.unknown(place, BENCHMARKS, name)
    benchmark = read(Benchmark, raw)
    status = benchmark.status
    current = status.observed_generation == benchmark.metadata.generation
    found_faults = any(c.reason == "FaultsFound" for c in status.conditions)
    if current and found_faults and not spec.allow_faults:
        faults = [f for f in status.findings if f.severity is Severity.FAULT]
        listed = [Finding(f.severity, f"benchmark {name}: {f.path}", f.message) for f in faults]
        words = "mend it and push it again, or give --allow-faults."
        raise SpecError([*listed, Finding(Severity.FAULT, f"benchmark {name}", words)])
