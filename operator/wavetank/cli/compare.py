"""``wavetank benchmarks compare``: whether one Run did better than another, task by task."""

from collections.abc import Sequence

import click
from pydantic import JsonValue
from rich.table import Table
from rich.text import Text

from wavetank.api import comparing
from wavetank.api.results import NO_MODEL
from wavetank.cli import local, reading, render
from wavetank.cli.reading import RunRead
from wavetank.cli.render import Document, number
from wavetank.cli.target import AT_FAULT, Target, carry_out, connected, target_options
from wavetank.core.compare import compare as compared
from wavetank.kube.objects import RUNS

_LEFT_OUT = {
    "onlyInA": "only in A",
    "onlyInB": "only in B",
    "unscoredInA": "unscored in A",
    "unscoredInB": "unscored in B",
}


@click.command(epilog="Example:  wavetank benchmarks compare crm-nop crm-oracle -n bench")
@click.argument("run_a", metavar="A")
@click.argument("run_b", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@target_options
def compare(target: Target, run_a: str, run_b: str, as_json: bool) -> None:
    """Compare Run B with Run A over the tasks that both have scored.

    The difference is B less A, task by task: its mean over tasks, with the 95 % interval of
    Student's t. A and B are Runs of the cluster or of this machine; a benchmark's folder means
    the newest of its Runs here. Exit code 1 when no task is scored in both.
    """
    carry_out(lambda: _compare(target, (run_a, run_b), as_json=as_json))


async def _compare(target: Target, names: tuple[str, str], *, as_json: bool) -> int:
    a, b = await _found(target, names)
    if a.plan is None or b.plan is None:
        name = a.name if a.plan is None else b.name
        raise reading.fault(f"Run {name}", "it has no plan yet: it waits for its Benchmark.")
    if a.run.metadata.uid == b.run.metadata.uid and a.name == b.name:
        words = "A and B are one Run: a folder means its newest. Name two Runs."
        raise reading.fault(f"Run {a.name}", words)
    comparison = compared(
        comparing.task_means(a.plan, a.run.spec.k, a.ledger),
        comparing.task_means(b.plan, b.run.spec.k, b.ledger),
    )
    document: Document = {
        "a": _facts(a),
        "b": _facts(b),
        "sameBenchmark": comparing.is_same_benchmark(a.plan, b.plan),
        **comparing.document(comparison),
    }
    if as_json:
        render.print_json(document)
    else:
        _show(document)
    if comparison.overall.n == 0:
        render.tell("No task is scored in both Runs: there is nothing to compare.")
        return AT_FAULT
    return 0


async def _found(target: Target, names: tuple[str, str]) -> tuple[RunRead, RunRead]:
    """Return both Runs: of this machine first, or of the cluster if one is meant for sure."""
    found = {name: here for name in names if (here := local.newest(name)) is not None}
    wanted = [name for name in names if target.is_named or name not in found]
    if wanted:
        async with connected(target) as place:
            for name in wanted:
                if await place.client.find(RUNS, place.namespace, name) or name not in found:
                    run = await reading.run_of(place, name)
                    found[name] = await reading.read_run(place.client, run)
    return found[names[0]], found[names[1]]


def _facts(found: RunRead) -> dict[str, JsonValue]:
    spec = found.run.spec
    return {
        "name": found.name,
        "benchmark": spec.benchmark_ref.name,
        "model": NO_MODEL,
        "agent": spec.agent.name,
        "k": spec.k,
        "state": reading.state_of(found.run.status),
    }


def _show(document: Document) -> None:
    for letter in ("a", "b"):
        facts = document[letter]
        head = Text.assemble(f"{letter.upper()}  ", (facts["name"], "bold"))
        render.show(head + f"  {facts['agent']}, k={facts['k']}  " + render.state(facts["state"]))
    for warning in _warnings(document):
        render.show(Text(warning, "yellow"))
    if document["tasks"]:
        render.show(_tasks(document["tasks"]))
    below = Table.grid(padding=(0, 2))
    below.add_row(Text("B less A", "bold"), _words(document["difference"]))
    for group in document["groups"]:
        below.add_row(Text(f"{group['by']} {render.clean(group['name'])}", "bold"), _words(group))
    for key, words in _LEFT_OUT.items():
        if ids := document["leftOut"][key]:
            below.add_row(Text(words, "bold"), Text(", ".join(ids), "yellow"))
    render.show(below)


def _warnings(document: Document) -> list[str]:
    found = []
    if not document["sameBenchmark"]:
        found.append("A and B had other files: another world, or other verifiers.")
    for letter in ("a", "b"):
        if document[letter]["state"] != "Complete":
            found.append(f"{letter.upper()} is not Complete: what it has so far is compared.")
    return found


def _tasks(rows: Sequence[Document]) -> Table:
    figures = ("A", "B", "B less A")
    made = render.table("task", *figures, numbers=figures)
    for row in rows:
        difference = row["difference"]
        style = "green" if difference > 0 else "red" if difference < 0 else ""
        signed = Text(f"{difference:+.4f}", style)
        made.add_row(row["id"], number(row["a"]), number(row["b"]), signed)
    return made


def _words(difference: Document) -> str:
    """Return a difference as one line.

    >>> _words({"n": 1, "mean": 0.5, "interval95": None, "better": 1, "worse": 0})
    '+0.5000 over 1 task (better in 1, worse in 0)'
    """
    mean, interval, n = difference["mean"], difference["interval95"], difference["n"]
    text = "-" if mean is None else f"{mean:+.4f}"
    if interval is not None:
        text += f", 95 % interval {interval['low']:+.4f} to {interval['high']:+.4f},"
    tasks = "1 task" if n == 1 else f"{n} tasks"
    return f"{text} over {tasks} (better in {difference['better']}, worse in {difference['worse']})"
