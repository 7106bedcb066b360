"""How results look: tables for people, JSON and CSV for programs. The one place that prints."""

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

Document = Mapping[str, Any]

console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
"""A pipe has no width of its own: lines stay whole there."""

_STATE_STYLE = {
    "Complete": "green",
    "Failed": "red",
    "Suspended": "yellow",
    "Running": "cyan",
    "Waiting": "yellow",
}


def print_json(document: object) -> None:
    """Print a document for programs."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_csv(rows: Sequence[Document]) -> None:
    """Print rows as CSV, with the columns of all rows in the order they come."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    click.echo(text.getvalue(), nl=False)


def _cell(value: object) -> object:
    """Return a CSV cell; a text that a spreadsheet would run as a formula gets a quote first."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return "" if value is None else value


def number(value: float | None, places: int = 4) -> str:
    """Return a number for a table; what is undefined is a dash, never 0.

    >>> number(0.5), number(None)
    ('0.5000', '-')
    """
    return "-" if value is None else f"{value:.{places}f}"


def state(name: str) -> Text:
    """Return a Run's state in its colour."""
    return Text(name, style=_STATE_STYLE.get(name, ""))


def table(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """Return an empty table; the columns in ``numbers`` are set right."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return made


def show_run(run: Document) -> None:
    """Print one Run's results: a line on the Run, its tasks, the totals."""
    line = Text.assemble((run["name"], "bold"), f"  agent {run['agent']}, k={run['k']}  ")
    console.print(line + state(run["state"]))
    figures = ("mean", "pass rate", "samples", "unscored")
    tasks = table("task", *figures, "by verifier", numbers=figures)
    for row in run["tasks"]:
        tasks.add_row(
            row["id"],
            number(row["mean"]),
            number(row["passRate"]),
            str(row["samples"]),
            Text(str(row["unscored"]), style="yellow" if row["unscored"] else ""),
            ", ".join(f"{name} {number(v, 2)}" for name, v in row["byVerifier"].items()),
        )
    console.print(tasks)
    for name, text in totals(run):
        console.print(Text.assemble((f"{name:<10}", "bold"), text))
    console.print()


def totals(run: Document) -> list[tuple[str, str]]:
    """Return the lines under a Run's table."""
    reward, coverage, counts = run["reward"], run["coverage"], run["rolloutCounts"]
    error = reward["standardError"]
    mean = number(reward["mean"]) + (
        "" if error is None else f" ± {number(error)} (standard error)"
    )
    interval = reward["interval95"]
    if interval is not None:
        mean += f", 95 % interval {number(interval['low'])} to {number(interval['high'])}"
    if counts["unscored"] and reward["lowerBound"] is not None:
        mean += f", bounds {number(reward['lowerBound'])} to {number(reward['upperBound'])}"
    recorded = counts["scored"] + counts["unscored"]
    lines = [
        ("reward", mean),
        ("pass rate", number(run["passRate"]) + _passes(run)),
        (
            "coverage",
            f"{number(coverage['rollouts'])} of rollouts, {number(coverage['tasks'])} of tasks "
            f"({counts['scored']} scored, {counts['unscored']} unscored, "
            f"{recorded} of {counts['planned']} recorded)",
        ),
    ]
    if run["unscoredByCause"]:
        causes = ", ".join(f"{row['cause']} {row['count']}" for row in run["unscoredByCause"])
        lines.append(("unscored", causes))
    return lines


def _passes(run: Document) -> str:
    figures = [
        f"{name}{row['k']} {number(row['value'], 3)}"
        for name, rows in (("pass@", run["passAtK"]), ("pass^", run["passHatK"]))
        for row in rows
        if row["k"] == run["k"] and run["k"] > 1 and row["value"] is not None
    ]
    return f" ({', '.join(figures)})" if figures else ""


def show_rollouts(rows: Sequence[Document]) -> None:
    """Print one line for each recorded rollout."""
    made = table(
        "task", "rollout", "reward", "cause", "attempts", "seconds", "rewards",
        numbers=("rollout", "reward", "attempts", "seconds"),
    )  # fmt: skip
    for row in rows:
        made.add_row(
            row["task"],
            str(row["rollout"]),
            number(row["reward"]),
            row["cause"] or row["agentCause"] or "",
            str(row["attempts"]),
            number(row["seconds"], 1),
            ", ".join(f"{name} {number(v, 2)}" for name, v in row["rewards"].items()),
        )
    console.print(made)
    console.print()


def is_terminal() -> bool:
    """Tell whether a person looks: progress bars only then."""
    return sys.stdout.isatty()
