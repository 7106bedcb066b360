"""Waiting for Runs with a progress bar, or with lines where nobody looks."""

import asyncio
from collections.abc import Sequence

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from wavetank.api.kinds import read
from wavetank.api.run import Run
from wavetank.cli import reading, render
from wavetank.kube.client import Client
from wavetank.kube.objects import RUNS

_POLL_SECONDS = 1.0
OVER = ("Complete", "Failed")


class Told:
    """Tells how far Runs are: bars on a terminal, else a line for each that changed."""

    def __init__(self, *, quiet: bool) -> None:
        self._lines: dict[str, str] = {}
        self._tasks: dict[str, object] = {}
        self._quiet = quiet
        self._bars = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[words]}"),
            console=render.console,
            disable=quiet or not render.is_terminal(),
        )

    def __enter__(self) -> "Told":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def tell(self, runs: Sequence[Run]) -> None:
        """Tell of Runs as they are now."""
        if self._quiet:
            return
        for run in runs:
            if self._bars.disable:
                self._line(run)
            else:
                self._bar(run)

    def _line(self, run: Run) -> None:
        name = run.metadata.name
        line = f"{name}: {words_of(run)}"
        if self._lines.get(name) != line:
            self._lines[name] = line
            click.echo(line)

    def _bar(self, run: Run) -> None:
        name, counts = run.metadata.name, run.status.rollouts
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=None, words="")
        done = counts.scored + counts.unscored if counts else 0
        self._bars.update(
            self._tasks[name],  # type: ignore[arg-type]
            total=counts.planned if counts else None,
            completed=done,
            words=words_of(run),
        )


def words_of(run: Run) -> str:
    """Return how far a Run is, in a few words."""
    status = run.status
    parts = [reading.state_of(status)]
    if status.progress:
        parts.append(status.progress)
    if status.rollouts and status.rollouts.unscored:
        parts.append(f"{status.rollouts.unscored} unscored")
    if status.reward and status.reward.mean:
        parts.append(f"mean {status.reward.mean}")
    problem = reading.problem_of(run)
    return ", ".join(parts) + (f" ({problem})" if problem else "")


async def wait(client: Client, namespace: str, names: Sequence[str], *, quiet: bool) -> list[Run]:
    """Wait until each of these Runs is Complete or Failed, and return them.

    A Run that was deleted meanwhile is missing from what is returned.
    """
    with Told(quiet=quiet) as told:
        while True:
            raw = [await client.find(RUNS, namespace, name) for name in names]
            runs = [read(Run, item) for item in raw if item is not None]
            told.tell(runs)
            if all(reading.state_of(run.status) in OVER for run in runs):
                return runs
            await asyncio.sleep(_POLL_SECONDS)
