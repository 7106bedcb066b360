"""Following Runs until they are over: bars or a live table on a terminal, lines elsewhere."""

import asyncio
from collections.abc import Callable, Sequence

from rich.console import Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress_bar import ProgressBar
from rich.text import Text

from wavetank.api.kinds import read
from wavetank.api.run import Run
from wavetank.cli import reading, render
from wavetank.cli.target import Place
from wavetank.kube.errors import Unavailable
from wavetank.kube.objects import RUNS

_POLL_SECONDS = 1.0
_OUTAGE_SECONDS = 60.0
"""The API server's absence that is waited for: a restart of a control plane takes less."""

_BAR_WIDTH = 12
_FIGURES = ("progress", "unscored", "mean")
_UNDER_WAY, _DONE = "cyan", "green"

Tell = Callable[[Sequence[Run]], None]


async def until_over(place: Place, names: Sequence[str], tell: Tell) -> list[Run]:
    """Look at Runs each second until each is over, and return them; ``tell`` hears of each look.

    A Run that was deleted meanwhile is missing from what is returned.

    Raises:
        Unavailable: If the API server is away for longer than a restart takes.
    """
    clock = asyncio.get_running_loop().time
    seen_at = clock()
    while True:
        try:
            raw = [await place.client.find(RUNS, place.namespace, name) for name in names]
        except Unavailable:
            if clock() - seen_at > _OUTAGE_SECONDS:
                raise
            continue  # The client has waited between its tries already.
        seen_at = clock()
        runs = [read(Run, item) for item in raw if item is not None]
        tell(runs)
        if all(reading.is_over(run) for run in runs):
            return runs
        await asyncio.sleep(_POLL_SECONDS)


async def with_bars(place: Place, names: Sequence[str]) -> list[Run]:
    """Follow Runs with a progress bar for each, on stderr; with lines where nobody looks."""
    if not render.is_watched():
        return await until_over(place, names, Lines(render.tell).tell)
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(_BAR_WIDTH, complete_style=_UNDER_WAY, finished_style=_DONE),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[words]}"),
    )
    with Progress(*columns, console=render.console(stderr=True)) as progress:
        return await until_over(place, names, _Bars(progress).tell)


async def with_table(place: Place, names: Sequence[str]) -> list[Run]:
    """Follow Runs in a live table; stdout is a terminal."""
    with Live(console=render.console(), auto_refresh=False) as live:
        return await until_over(place, names, lambda runs: live.update(_live(runs), refresh=True))


class Lines:
    """Gives a line for each Run that changed since the last look."""

    def __init__(self, give: Callable[[str], None]) -> None:
        self._given: dict[str, str] = {}
        self._give = give

    def tell(self, runs: Sequence[Run]) -> None:
        """Tell of Runs as they are now."""
        for run in runs:
            name = run.metadata.name
            problem = run.status.last_problem
            line = f"{name}: {words_of(run)}" + (f" ({problem})" if problem else "")
            if self._given.get(name) != line:
                self._given[name] = line
                self._give(line)


class _Bars:
    """A bar for each Run; what is in its way is a line above, once."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bars: dict[str, TaskID] = {}
        self._told: set[tuple[str, str]] = set()

    def tell(self, runs: Sequence[Run]) -> None:
        for run in runs:
            name, counts = run.metadata.name, run.status.rollouts
            if name not in self._bars:
                self._bars[name] = self._progress.add_task(name, total=None, words="")
            self._progress.update(
                self._bars[name],
                total=counts.planned if counts else None,
                completed=counts.scored + counts.unscored if counts else 0,
                words=words_of(run, with_progress=False),
            )
            problem = run.status.last_problem
            if problem and (name, problem) not in self._told:
                self._told.add((name, problem))
                self._progress.console.print(Text(render.clean(f"{name}: {problem}"), "yellow"))


def words_of(run: Run, *, with_progress: bool = True) -> str:
    """Return how far a Run is, in a few words."""
    status, counts = run.status, run.status.rollouts
    if status.observed_generation is None:
        return "Waiting for an operator"
    parts = [reading.state_of(status)]
    if with_progress and status.progress:
        parts.append(status.progress)
    if counts and not reading.is_over(run):
        parts += [f"{counts.active} active", f"{counts.grading} grading"]
    if counts and counts.unscored:
        parts.append(f"{counts.unscored} unscored")
    if status.reward and status.reward.mean:
        parts.append(f"mean {status.reward.mean}")
    return ", ".join(parts)


def overview(runs: Sequence[Run]) -> Group:
    """Return Runs as a table, and below it what is in the way of which."""
    columns = ("run", "benchmark", "agent", "state", *_FIGURES, "passed")
    made = render.table(*columns, numbers=(*_FIGURES, "passed"))
    for run in runs:
        name, benchmark = run.metadata.name, run.spec.benchmark_ref.name
        state = render.state(reading.state_of(run.status))
        passed = run.status.pass_rate or "-"
        made.add_row(name, benchmark, run.spec.agent.name, state, *_figures(run), passed)
    return Group(made, *_problems(runs))


def _live(runs: Sequence[Run]) -> Group:
    """Return Runs as a table narrow enough for a terminal, with a bar for each."""
    made = render.table("run", "agent", "state", "", *_FIGURES, numbers=_FIGURES)
    for run in runs:
        state = render.state(reading.state_of(run.status))
        made.add_row(run.metadata.name, run.spec.agent.name, state, _bar(run), *_figures(run))
    return Group(made, *_problems(runs))


def _figures(run: Run) -> tuple[str, str, str]:
    status = run.status
    unscored = str(status.rollouts.unscored) if status.rollouts else "-"
    mean = (status.reward.mean if status.reward else None) or "-"
    return status.progress or "-", unscored, mean


def _problems(runs: Sequence[Run]) -> list[Text]:
    problems = [(run.metadata.name, reading.problem_of(run)) for run in runs]
    return [Text(render.clean(f"{name}: {why}"), "yellow") for name, why in problems if why]


def _bar(run: Run) -> ProgressBar:
    counts = run.status.rollouts
    if counts is None:
        return ProgressBar(total=1, width=_BAR_WIDTH)
    return ProgressBar(
        total=max(counts.planned, 1),
        completed=counts.scored + counts.unscored,
        width=_BAR_WIDTH,
        complete_style=_UNDER_WAY,
        finished_style=_DONE,
    )
