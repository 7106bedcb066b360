"""``wavetank benchmarks run``: one Run of a benchmark that is in the cluster."""

import re
from secrets import token_hex

import click
from pydantic import ValidationError

from wavetank.api.kinds import API_VERSION
from wavetank.api.run import RunSpec
from wavetank.cli import progress, reading, render
from wavetank.cli.target import AT_FAULT, Target, carry_out, target_options
from wavetank.core.errors import Finding, Severity, SpecError
from wavetank.kube.client import Client, open_client
from wavetank.kube.objects import BENCHMARKS, RUNS


@click.command(
    epilog="Example:  wavetank benchmarks run crm -k 3 --agent oracle -n bench --wait",
)
@click.argument("benchmark")
@click.option("-k", "k", type=click.IntRange(1, 100), default=1, help="Rollouts of each task.")
@click.option("--agent", required=True, help="oracle, nop or scripted:<name>.")
@click.option("--task", "tasks", multiple=True, help="Only tasks that match this pattern.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many tasks.")
@click.option("--parallelism", type=click.IntRange(1, 1000), default=10, show_default=True)
@click.option("--allow-faults", is_flag=True, help="Although the benchmark's check found faults.")
@click.option("--name", help="Of the Run; made from benchmark and agent when not given.")
@click.option("--wait", is_flag=True, help="Follow it to its end and show the results.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@target_options
def run(
    target: Target, benchmark: str, name: str | None, wait: bool, as_json: bool, **asked: object
) -> None:
    """Run BENCHMARK, every task k times.

    With --wait: exit code 0 when the Run is Complete (a low score is), 1 when it Failed, 3 when
    the cluster was lost, 130 when interrupted; the Run goes on then.
    """
    spec = _spec(benchmark, asked)
    chosen = name or _name(benchmark, spec.agent.name)
    carry_out(lambda: _run(target, chosen, spec, wait=wait, as_json=as_json))


def _spec(benchmark: str, asked: dict[str, object]) -> RunSpec:
    try:
        return RunSpec.model_validate(
            {
                "benchmarkRef": {"name": benchmark},
                "agent": {"name": asked["agent"]},
                "k": asked["k"],
                "parallelism": asked["parallelism"],
                "allowFaults": asked["allow_faults"],
                "tasks": {"include": asked["tasks"], "limit": asked["limit"]},
            }
        )
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise click.UsageError("\n".join(faults)) from error


def _name(benchmark: str, agent: str) -> str:
    words = re.sub(r"[^a-z0-9-]+", "-", f"{benchmark}-{agent}".lower()).strip("-")
    return f"{words[:190]}-{token_hex(2)}"


async def _run(target: Target, name: str, spec: RunSpec, *, wait: bool, as_json: bool) -> int:
    namespace, benchmark = target.namespace, spec.benchmark_ref.name
    async with open_client(target.kubeconfig) as client:
        await _require_benchmark(client, namespace, benchmark)
        body = {
            "apiVersion": API_VERSION,
            "kind": "Run",
            "metadata": {"name": name},
            "spec": spec.model_dump(mode="json", by_alias=True, exclude_defaults=True),
        }
        await client.create(RUNS, namespace, body)
        if not wait:
            _tell_created(name, namespace, as_json=as_json)
            return 0
        over = await progress.wait(client, namespace, [name], quiet=as_json)
        if not over:
            click.echo(f"Run {name} was deleted.", err=True)
            return AT_FAULT
        found = await reading.read_run(client, over[0])
    results = reading.results_of(found, with_rollouts=False)
    if as_json:
        render.print_json({"benchmark": benchmark, "runs": [results]})
    else:
        render.show_run(results)
    return 0 if reading.state_of(over[0].status) == "Complete" else AT_FAULT


def _tell_created(name: str, namespace: str, *, as_json: bool) -> None:
    if as_json:
        render.print_json({"name": name, "namespace": namespace})
        return
    click.echo(f"Run {name} is created. Follow it: wavetank runs watch {name} -n {namespace}")


async def _require_benchmark(client: Client, namespace: str, benchmark: str) -> None:
    if await client.find(BENCHMARKS, namespace, benchmark) is not None:
        return
    known = [item["metadata"]["name"] for item in (await client.list(BENCHMARKS, namespace)).items]
    words = f"{namespace} has none of that name. It has: {', '.join(known) or 'none'}."
    raise SpecError([Finding(Severity.FAULT, f"benchmark {benchmark}", words)])
