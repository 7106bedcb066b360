"""``wavetank benchmarks results``: what came out, per task, then the totals."""

from pathlib import Path

import click

from wavetank.api.run import Run
from wavetank.cli import local, reading, render, showing
from wavetank.cli.reading import RunRead
from wavetank.cli.render import Document
from wavetank.cli.target import Place, Target, carry_out, connected, target_options
from wavetank.kube.objects import BENCHMARKS

TASK_COLUMNS = (
    "run",
    "agent",
    "id",
    "category",
    "difficulty",
    "mean",
    "passRate",
    "samples",
    "unscored",
)
ROLLOUT_COLUMNS = ("run", "agent", "task", "rollout", "reward", "cause", "agentCause", "message",
            "attempts", "attempt", "ordinal", "seconds", "usage", "evidence")  # fmt: skip
"""Columns that a CSV always has; a column for each verifier follows."""


@click.command(epilog="Example:  wavetank benchmarks results crm -n bench --runs")
@click.argument("name")
@click.option("--runs", "with_rollouts", is_flag=True, help="Show each rollout too.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: numbers are numbers, undefined is null."
)
@click.option(
    "--csv",
    "as_csv",
    is_flag=True,
    help="Print a row for each task; with --runs, for each rollout.",
)
@target_options
def results(target: Target, name: str, with_rollouts: bool, as_json: bool, as_csv: bool) -> None:
    """Show the results of all Runs of benchmark NAME, or of the one Run of that name.

    NAME may be a benchmark's folder, for its Runs on this machine, or one of those Runs.

    Means are of scored rollouts; those without a score have a count of their own and never
    count as 0.
    """
    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other.")
    form = "json" if as_json else "csv" if as_csv else "text"
    carry_out(lambda: _results(target, name, form, with_rollouts=with_rollouts))


async def _results(target: Target, name: str, form: str, *, with_rollouts: bool) -> int:
    here = local.named(target, name)
    if here or (Path(name).is_dir() and not target.is_named):
        found = [local.as_read(each) for each in here]
        start = f"{name} --local"
    else:
        async with connected(target) as place:
            runs = await _runs_named(place, name)
            found = [await reading.read_run(place.client, run) for run in runs]
            start = f"{name} -n {place.namespace}"
    rows: list[Document] = [reading.results_of(one, with_rollouts=with_rollouts) for one in found]
    if form == "json":
        benchmark = found[0].run.spec.benchmark_ref.name if found else name
        render.print_json({"benchmark": benchmark, "runs": rows})
    elif form == "csv":
        columns = ROLLOUT_COLUMNS if with_rollouts else TASK_COLUMNS
        render.print_csv(columns, csv_rows(rows, "rollouts" if with_rollouts else "tasks"))
    elif not rows:
        start = f"wavetank benchmarks run {start} --agent oracle"
        click.echo(f"Benchmark {name} has no Runs yet. Start one: {start}")
    else:
        _show(found, rows, with_rollouts=with_rollouts)
    return 0


async def _runs_named(place: Place, name: str) -> list[Run]:
    """Return the Runs of a benchmark, or the Run of that name; none for one that has not run."""
    every = await reading.runs_of(place)
    runs = [run for run in every if run.spec.benchmark_ref.name == name]
    runs = runs or [run for run in every if run.metadata.name == name]
    if not runs and await place.client.find(BENCHMARKS, place.namespace, name) is None:
        raise await reading.unknown(place, BENCHMARKS, name)
    return runs


def _show(found: list[RunRead], rows: list[Document], *, with_rollouts: bool) -> None:
    for number, (one, row) in enumerate(zip(found, rows, strict=True)):
        if number:
            click.echo()
        showing.show_run(one.run, row, with_rollouts=with_rollouts)


def csv_rows(results: list[Document], part: str) -> list[Document]:
    """Return one flat row for each task, or rollout, of all Runs; a column for each verifier."""
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
        for row in results
        for line in row[part]
    ]
