"""``wavetank benchmarks results``: what came out, per task, then the totals."""

import click

from wavetank.cli import reading, render
from wavetank.cli.target import AT_FAULT, Target, carry_out, target_options
from wavetank.kube.client import open_client
from wavetank.kube.objects import BENCHMARKS


@click.command(
    epilog="Example:  wavetank benchmarks results crm -n bench --runs --json",
)
@click.argument("name")
@click.option("--runs", "with_rollouts", is_flag=True, help="Also one row for each rollout.")
@click.option("--json", "as_json", is_flag=True, help="For programs: numbers, undefined is null.")
@click.option("--csv", "as_csv", is_flag=True, help="One row per task, or per rollout.")
@target_options
def results(target: Target, name: str, with_rollouts: bool, as_json: bool, as_csv: bool) -> None:
    """Show the results of all Runs of benchmark NAME, or of the one Run of that name.

    Means are of scored rollouts; those without a score have a count of their own and never
    count as 0.
    """
    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other.")
    carry_out(lambda: _results(target, name, with_rollouts, as_json, as_csv))


async def _results(
    target: Target, name: str, with_rollouts: bool, as_json: bool, as_csv: bool
) -> int:
    async with open_client(target.kubeconfig) as client:
        every = await reading.runs_of(client, target.namespace)
        runs = [run for run in every if run.spec.benchmark_ref.name == name]
        runs = runs or [run for run in every if run.metadata.name == name]
        if not runs and await client.find(BENCHMARKS, target.namespace, name) is None:
            click.echo(
                f"{target.namespace} has no benchmark and no Run named {name!r}. "
                f"Runs there: {reading.names(every)}.",
                err=True,
            )
            return AT_FAULT
        found = [await reading.read_run(client, run) for run in runs]
    rows: list[render.Document] = [
        reading.results_of(run, with_rollouts=with_rollouts) for run in found
    ]
    if as_json:
        render.print_json({"benchmark": name, "runs": rows})
    elif as_csv:
        render.print_csv(_csv_rows(rows, with_rollouts))
    elif not rows:
        click.echo(f"Benchmark {name} has no Runs yet. Start one: wavetank benchmarks run {name}")
    else:
        for row in rows:
            render.show_run(row)
            if with_rollouts:
                render.show_rollouts(row["rollouts"])
    return 0


def _csv_rows(rows: list[render.Document], with_rollouts: bool) -> list[render.Document]:
    part = "rollouts" if with_rollouts else "tasks"
    nested = ("byVerifier", "rewards")
    return [
        {
            "run": row["name"],
            "agent": row["agent"],
            **{key: value for key, value in line.items() if key not in nested},
            **{
                f"{key}.{verifier}": value
                for key in nested
                for verifier, value in (line.get(key) or {}).items()
            },
        }
        for row in rows
        for line in row[part]
    ]
