"""``wavetank runs list`` and ``watch``: what kubectl shows, for people."""

import json
from collections.abc import Sequence

import click

from wavetank.api.run import Run
from wavetank.cli import following, reading, render
from wavetank.cli.target import AT_FAULT, Target, carry_out, connected, target_options
from wavetank.kube.objects import RUNS


@click.command("list", epilog="Example:  wavetank runs list -n bench")
@click.option("--benchmark", metavar="NAME", help="Only the Runs of this benchmark.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@target_options
def list_runs(target: Target, benchmark: str | None, as_json: bool) -> None:
    """List the Runs of a namespace with how far they are and what came out."""
    carry_out(lambda: _list(target, benchmark, as_json=as_json))


async def _list(target: Target, benchmark: str | None, *, as_json: bool) -> int:
    async with connected(target) as place:
        runs = await reading.runs_of(place, benchmark)
        if not runs:
            await reading.require_namespace(place)
    if as_json:
        render.print_json([row_of(run) for run in runs])
    elif not runs:
        of = "" if benchmark is None else f" of benchmark {benchmark}"
        click.echo(f"There are no Runs{of} in {place.namespace}.")
    else:
        render.show(following.overview(runs))
    return 0


def row_of(run: Run) -> dict[str, object]:
    """Return a Run as a program reads it."""
    status, counts = run.status, run.status.rollouts
    mean = status.reward.mean if status.reward else None
    return {
        "name": run.metadata.name,
        "benchmark": run.spec.benchmark_ref.name,
        "agent": run.spec.agent.name,
        "k": run.spec.k,
        "state": reading.state_of(status),
        "rolloutCounts": counts.document() if counts else None,
        "mean": None if mean is None else float(mean),
        "passRate": None if status.pass_rate is None else float(status.pass_rate),
        "startedAt": status.started_at,
        "completedAt": status.completed_at,
        "problem": reading.problem_of(run) or None,
    }


@click.command(epilog="Example:  wavetank runs watch crm-oracle -n bench")
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print each change as a line of JSON.")
@target_options
def watch(target: Target, names: tuple[str, ...], as_json: bool) -> None:
    """Follow Runs until each is over: those named, or all that the namespace has now.

    Exit code 0 when all are Complete, 1 when one Failed, was deleted, or waits for what will not
    come, like tasks of which its pattern matches none.
    """
    carry_out(lambda: _watch(target, names, as_json=as_json))


async def _watch(target: Target, names: Sequence[str], *, as_json: bool) -> int:
    async with connected(target) as place:
        known = [run.metadata.name for run in await reading.runs_of(place)]
        missing = next((name for name in names if name not in known), None)
        if missing is not None:
            raise await reading.unknown(place, RUNS, missing)
        wanted = names or known
        if not wanted:
            await reading.require_namespace(place)
            render.tell(f"There are no Runs in {place.namespace}.")
        if as_json:
            runs = await following.until_over(place, wanted, _Changes().tell)
        elif render.console().is_terminal:
            runs = await following.with_table(place, wanted)
        else:
            runs = await following.until_over(place, wanted, following.Lines(click.echo).tell)
    return exit_code(runs, len(wanted))


class _Changes:
    """Prints the row of each Run that changed since the last look."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}

    def tell(self, runs: Sequence[Run]) -> None:
        for run in runs:
            line = json.dumps(row_of(run), ensure_ascii=False)
            if self._given.get(run.metadata.name) != line:
                self._given[run.metadata.name] = line
                click.echo(line)


def exit_code(runs: Sequence[Run], wanted: int) -> int:
    """Return 0 when so many Runs are there and all are Complete, else 1."""
    complete = [run for run in runs if reading.state_of(run.status) == "Complete"]
    return 0 if len(complete) == wanted else AT_FAULT
