"""``wavetank runs list`` and ``watch``: what kubectl shows, for people."""

import asyncio
from collections.abc import Sequence

import click
from rich.live import Live
from rich.table import Table

from wavetank.api.kinds import read
from wavetank.api.run import Run
from wavetank.cli import reading, render
from wavetank.cli.target import AT_FAULT, Target, carry_out, target_options
from wavetank.kube.client import Client, open_client
from wavetank.kube.objects import RUNS

_POLL_SECONDS = 1.0
OVER = ("Complete", "Failed")


@click.command("list", epilog="Example:  wavetank runs list -n bench")
@click.option("--benchmark", help="Only the Runs of this benchmark.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@target_options
def list_runs(target: Target, benchmark: str | None, as_json: bool) -> None:
    """List the Runs of a namespace with how far they are and what came out."""
    carry_out(lambda: _list(target, benchmark, as_json))


async def _list(target: Target, benchmark: str | None, as_json: bool) -> int:
    async with open_client(target.kubeconfig) as client:
        runs = await reading.runs_of(client, target.namespace, benchmark)
    if as_json:
        render.print_json([_row(run) for run in runs])
    elif not runs:
        click.echo(f"There are no Runs in {target.namespace}.")
    else:
        render.console.print(table_of(runs))
    return 0


def _row(run: Run) -> dict[str, object]:
    status = run.status
    counts = status.rollouts
    return {
        "name": run.metadata.name,
        "benchmark": run.spec.benchmark_ref.name,
        "agent": run.spec.agent.name,
        "state": reading.state_of(status),
        "progress": status.progress,
        "unscored": counts.unscored if counts else None,
        "mean": float(status.reward.mean) if status.reward and status.reward.mean else None,
        "problem": reading.problem_of(run) or None,
    }


def table_of(runs: Sequence[Run]) -> Table:
    """Return Runs as a table: state, progress, figures, and what is in the way."""
    made = render.table(
        "run", "benchmark", "agent", "state", "progress", "active", "grading", "unscored",
        "mean", "pass rate", "problem", numbers=("active", "grading", "unscored", "mean", "pass rate"),
    )  # fmt: skip
    for run in runs:
        status = run.status
        counts = status.rollouts
        made.add_row(
            run.metadata.name,
            run.spec.benchmark_ref.name,
            run.spec.agent.name,
            render.state(reading.state_of(status)),
            status.progress or "-",
            str(counts.active) if counts else "-",
            str(counts.grading) if counts else "-",
            str(counts.unscored) if counts else "-",
            (status.reward.mean if status.reward else None) or "-",
            status.pass_rate or "-",
            reading.problem_of(run),
        )
    return made


@click.command(epilog="Example:  wavetank runs watch crm-oracle -n bench")
@click.argument("names", nargs=-1)
@target_options
def watch(target: Target, names: tuple[str, ...]) -> None:
    """Follow the Runs NAMES, or all of the namespace, until each is over.

    Exit code 0 when all are Complete, 1 when one Failed.
    """
    carry_out(lambda: _watch(target, names))


async def _watch(target: Target, names: tuple[str, ...]) -> int:
    async with open_client(target.kubeconfig) as client:
        missing = await _missing(client, target.namespace, names)
        if missing:
            click.echo(f"{target.namespace} has no Run named {', '.join(missing)}.", err=True)
            return AT_FAULT
        return await follow(client, target.namespace, names)


async def _missing(client: Client, namespace: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if await client.find(RUNS, namespace, name) is None]


async def follow(client: Client, namespace: str, names: Sequence[str]) -> int:
    """Show Runs until each is Complete or Failed: a live table, or lines where nobody looks.

    Args:
        client: To the cluster.
        namespace: Of the Runs.
        names: Which; all of the namespace without any.

    Returns:
        The exit code: 1 when one Failed or was deleted.
    """
    told: dict[str, str] = {}
    live = Live(console=render.console, auto_refresh=False) if render.is_terminal() else None
    if live is not None:
        live.start()
    try:
        while True:
            runs = await _read(client, namespace, names)
            if live is not None:
                live.update(table_of(runs), refresh=True)
            else:
                _tell(runs, told)
            states = [reading.state_of(run.status) for run in runs]
            if all(state in OVER for state in states):
                return 0 if len(runs) >= len(names) and "Failed" not in states else AT_FAULT
            await asyncio.sleep(_POLL_SECONDS)
    finally:
        if live is not None:
            live.stop()


async def _read(client: Client, namespace: str, names: Sequence[str]) -> list[Run]:
    if not names:
        return await reading.runs_of(client, namespace)
    raw = [await client.find(RUNS, namespace, name) for name in names]
    return [read(Run, item) for item in raw if item is not None]


def _tell(runs: Sequence[Run], told: dict[str, str]) -> None:
    """Print a line for each Run that changed since it was told of."""
    for run in runs:
        state = reading.state_of(run.status)
        problem = reading.problem_of(run)
        line = f"{run.metadata.name}: {state} {run.status.progress or ''} {problem}".rstrip()
        if told.get(run.metadata.name) != line:
            told[run.metadata.name] = line
            click.echo(line)
