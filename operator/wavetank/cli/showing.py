"""A Run's results for people: its tasks, the totals, its rollouts."""

from rich.table import Table
from rich.text import Text

from wavetank.api.run import Run
from wavetank.cli import reading, render
from wavetank.cli.render import Document, number


def show_run(run: Run, results: Document, *, with_rollouts: bool = False) -> None:
    """Print one Run's results: a line on the Run, its tasks, the totals, maybe its rollouts."""
    head = Text.assemble((results["name"], "bold"), f"  {results['agent']}, k={results['k']}  ")
    render.show(head + render.state(results["state"]))
    problem = reading.problem_of(run)
    if problem:
        render.show(Text(render.clean(problem), "yellow"))
    if results["tasks"]:
        render.show(_tasks(results))
        below = Table.grid(padding=(0, 2))
        for name, text in totals(results):
            below.add_row(Text(name, "bold"), text)
        render.show(below)
    if with_rollouts and results["rollouts"]:
        render.show(Text())
        render.show(_rollouts(results))


def _tasks(results: Document) -> Table:
    figures = ("mean", "pass rate", "samples", "unscored")
    made = render.table("task", *figures, "by verifier", numbers=figures)
    for row in results["tasks"]:
        made.add_row(
            row["id"],
            number(row["mean"]),
            number(row["passRate"]),
            str(row["samples"]),
            Text(str(row["unscored"]), style="yellow" if row["unscored"] else ""),
            _scores(row["byVerifier"]),
        )
    return made


def totals(results: Document) -> list[tuple[str, str]]:
    """Return the lines under a Run's table of tasks, as (name, text)."""
    coverage, counts = results["coverage"], results["rolloutCounts"]
    recorded = counts["scored"] + counts["unscored"]
    lines = [
        ("reward", _reward(results)),
        ("pass rate", number(results["passRate"]) + _passes(results)),
        (
            "coverage",
            f"{number(coverage['rollouts'])} of rollouts, {number(coverage['tasks'])} of tasks "
            f"({counts['scored']} scored, {counts['unscored']} unscored, "
            f"{recorded} of {counts['planned']} recorded)",
        ),
    ]
    if results["unscoredByCause"]:
        causes = ", ".join(f"{row['cause']} {row['count']}" for row in results["unscoredByCause"])
        lines.append(("unscored", causes))
    return lines


def _reward(results: Document) -> str:
    reward, interval = results["reward"], results["reward"]["interval95"]
    text = number(reward["mean"])
    if reward["standardError"] is not None:
        text += f" ± {number(reward['standardError'])} (standard error)"
    if interval is not None:
        text += f", 95 % interval {number(interval['low'])} to {number(interval['high'])}"
    if results["rolloutCounts"]["unscored"] and reward["lowerBound"] is not None:
        text += f", bounds {number(reward['lowerBound'])} to {number(reward['upperBound'])}"
    return text


def _passes(results: Document) -> str:
    k = results["k"]
    figures = [
        f"{name}{k} {number(row['value'])}"
        for name, rows in (("pass@", results["passAtK"]), ("pass^", results["passHatK"]))
        for row in rows
        if row["k"] == k > 1 and row["value"] is not None
    ]
    return f" ({', '.join(figures)})" if figures else ""


def _rollouts(results: Document) -> Table:
    figures = ("rollout", "reward", "attempts", "seconds")
    made = render.table("task", *figures, "what was missed", numbers=figures)
    for row in results["rollouts"]:
        made.add_row(
            row["task"],
            str(row["rollout"]),
            number(row["reward"]),
            str(row["attempts"]),
            number(row["seconds"], 1),
            Text(render.clean(_missed(row))),
        )
    return made


def _missed(row: Document) -> str:
    """Return why a rollout has no reward, or which scores keep it from being 1."""
    if row["cause"]:
        return f"{row['cause']}: {row['message']}" if row["message"] else str(row["cause"])
    scores = _scores({name: value for name, value in row["rewards"].items() if value != 1})
    return ", ".join(part for part in (row["agentCause"], scores) if part)


def _scores(scores: Document) -> str:
    """Return scores in a few characters each.

    >>> _scores({"ticket_closed": 1.0, "customer_told": 2 / 3, "reason_recorded": None})
    'ticket_closed 1, customer_told 0.67, reason_recorded -'
    """
    return ", ".join(f"{name} {_short(value)}" for name, value in scores.items())


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")
