"""``wavetank benchmarks run DIR --local``: a Run on this machine, with a bar and a table."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from wavetank.bundles.world.config import CONFIG_FILE, read_config
from wavetank.bundles.world.place import Place, Sink
from wavetank.cli import local, reading, render, showing
from wavetank.cli.packing import kind_of, slug_of
from wavetank.core.lifecycle import Stage
from wavetank.engine import running
from wavetank.engine.planning import Asked
from wavetank.engine.settings import runs_folder
from wavetank.worlds.clock import utc_now

_BAR_WIDTH = 12

Tell = Callable[[running.Progress], None]


def benchmark_name(folder: Path) -> str:
    """Return the name of the benchmark in a folder.

    Raises:
        SpecError: If it holds none.
    """
    if kind_of(folder) is None:
        words = "it holds no benchmark: a world has gateway-env.toml at its root."
        raise reading.fault(str(folder), words)
    config = read_config(folder, Place(Sink(), CONFIG_FILE))
    return slug_of(config.name or folder.resolve().name) or "benchmark"


async def run_local(asked: Asked, *, as_json: bool) -> int:
    """Run a benchmark on this machine and print what came out; return the exit code."""
    try:
        with _told() as tell:
            done = await running.run(runs_folder(), asked, utc_now, tell)
    except asyncio.CancelledError:
        render.tell("It is stopped. What was graded is kept; the same command goes on.")
        raise
    found = local.as_read(done)
    results = reading.results_of(found, with_rollouts=False)
    if as_json:
        render.print_json({"benchmark": asked.spec.benchmark_ref.name, "runs": [results]})
    else:
        showing.show_run(found.run, results)
    return 0


@contextmanager
def _told() -> Iterator[Tell]:
    """Give what shows progress on stderr: a bar where somebody looks, else lines."""
    if not render.is_watched():
        yield _Lines().tell
        return
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(_BAR_WIDTH, complete_style="cyan", finished_style="green"),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[words]}"),
    )
    with Progress(*columns, console=render.console(stderr=True)) as progress:
        yield _Bar(progress).tell


class _Lines:
    """A line whenever something was recorded, or something new is in the way."""

    def __init__(self) -> None:
        self._given = ("", "")

    def tell(self, progress: running.Progress) -> None:
        given = (f"{_recorded(progress)}/{_planned(progress)}", progress.decision.problem)
        if given == self._given:
            return
        self._given = given
        problem = f" ({given[1]})" if given[1] else ""
        render.tell(f"{progress.local.name}: {given[0]}, {_words(progress)}{problem}")


class _Bar:
    """A bar; what is in the way is a line above, once."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bar = progress.add_task("Checking", total=None, words="")
        self._told: set[str] = set()

    def tell(self, progress: running.Progress) -> None:
        self._progress.update(
            self._bar,
            description=progress.local.name,
            total=_planned(progress),
            completed=_recorded(progress),
            words=_words(progress),
        )
        problem = progress.decision.problem
        if problem and problem not in self._told:
            self._told.add(problem)
            self._progress.console.print(Text(render.clean(problem), "yellow"))


def _planned(progress: running.Progress) -> int:
    return len(progress.plan.tasks) * progress.local.run.spec.k


def _recorded(progress: running.Progress) -> int:
    planned = _planned(progress)
    return sum(ordinal < planned for ordinal in progress.ledger.records)


def _words(progress: running.Progress) -> str:
    """Return how many rollouts are where."""
    stages = Counter(progress.decision.stages.values())
    active = stages[Stage.STARTING] + stages[Stage.ACTING]
    grading = stages[Stage.ENDED] + stages[Stage.GRADING]
    planned = _planned(progress)
    records = [record for n, record in progress.ledger.records.items() if n < planned]
    unscored = sum(record.reward is None for record in records)
    parts = [f"{active} active", f"{grading} grading"]
    return ", ".join([*parts, f"{unscored} unscored"] if unscored else parts)
