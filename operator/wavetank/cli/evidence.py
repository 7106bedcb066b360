"""``wavetank runs evidence``: what is kept of one rollout, shown or downloaded."""

import json
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from wavetank.api.run import Run
from wavetank.cli import local, reading, render
from wavetank.cli.downloading import download
from wavetank.cli.reading import RunRead
from wavetank.cli.render import Document
from wavetank.cli.target import AT_FAULT, Target, carry_out, connected, target_options
from wavetank.core.identity import ordinal_of

_LOG_LINES = 20


@dataclass(frozen=True)
class Attempt:
    """The attempt whose evidence is wanted, and what the ledger says of its rollout."""

    run: Run
    task: str
    rollout: int
    ordinal: int
    number: int
    record: Mapping[str, Any] | None
    """The rollout's record; None when it has none, or one of another attempt."""
    failures: list[dict[str, Any]]
    """The rollout's failed attempts and tries at grading, each with the number of its attempt."""

    @property
    def path(self) -> str:
        """Return where in the store its evidence is."""
        return reading.evidence_path(self.run, self.ordinal, self.number)


@click.command(
    epilog="\b\nExample:  wavetank runs evidence crm-oracle close_ticket 0 -n bench\n"
    "          wavetank runs evidence crm-oracle close_ticket 0 -n bench -o ./evidence"
)
@click.argument("run_name", metavar="RUN")
@click.argument("task")
@click.argument("rollout", type=click.IntRange(min=0))
@click.option(
    "--attempt", type=click.IntRange(min=1), help="Which attempt. Default: the recorded one."
)
@click.option(
    "-o", "--output", metavar="DIR", type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write it to.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print record and trajectory as JSON.")
@target_options
def evidence(
    target: Target, output: Path | None, as_json: bool, attempt: int | None, **asked: Any
) -> None:
    """Show the trajectory and grading of rollout ROLLOUT of TASK, counted from 0.

    RUN may be a Run on this machine, or a benchmark's folder, which means the newest of its
    Runs here.

    With -o the folder gets record.json (from the ledger) and, where an end state was sealed,
    trajectory.jsonl, session.json, seal.json, agent.log and the end state as worlds/*.sqlite.
    """
    wanted = (asked["run_name"], asked["task"], asked["rollout"], attempt)
    carry_out(lambda: _evidence(target, wanted, output, as_json=as_json))


Fetch = Callable[[Attempt, Path], Awaitable[bool]]
"""Writes what is kept of an attempt into a folder; False when there is no end state."""


async def _evidence(
    target: Target, asked: tuple[str, str, int, int | None], output: Path | None, *, as_json: bool
) -> int:
    if not target.is_named and (here := local.newest(asked[0])) is not None:

        async def copy(attempt: Attempt, folder: Path) -> bool:
            return local.copy_evidence(here.store or "", attempt.path, folder)

        return await _tell(_attempt(here, *asked[1:]), copy, output, as_json=as_json)
    async with connected(target) as place:
        run = await reading.run_of(place, asked[0])
        found = await reading.read_run(place.client, run)

        async def fetch(attempt: Attempt, folder: Path) -> bool:
            return await download(place, attempt.run, attempt.path, folder)

        return await _tell(_attempt(found, *asked[1:]), fetch, output, as_json=as_json)


async def _tell(attempt: Attempt, fetch: Fetch, output: Path | None, *, as_json: bool) -> int:
    with tempfile.TemporaryDirectory() as temporary:
        folder = output or Path(temporary)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "record.json").write_text(json.dumps(_record(attempt), indent=2))
            is_there = await fetch(attempt, folder)
        except OSError as error:
            raise reading.fault(str(folder), f"cannot be written: {error.strerror}.") from error
        session, calls, log = _read(folder) if is_there else ({}, [], "")
    if as_json:
        document = {**_record(attempt), "session": session or None, "trajectory": calls}
        render.print_json(document)
    elif output is None:
        _show(attempt, session, calls, log)
    else:
        files = sorted(
            str(path.relative_to(output)) for path in output.rglob("*") if path.is_file()
        )
        click.echo(f"{output} has {', '.join(files)}")
    if not is_there:
        render.tell(
            f"The store has no end state of attempt {attempt.number}: "
            f"it ended before one was sealed, or has not ended yet."
        )
        return AT_FAULT
    return 0


def _attempt(found: RunRead, task: str, rollout: int, number: int | None) -> Attempt:
    run, run_name = found.run, found.name
    if found.plan is None:
        raise reading.fault(f"Run {run_name}", "it has no plan yet: it waits for its Benchmark.")
    ids = [info.id for info in found.plan.tasks]
    if task not in ids:
        words = f"Run {run_name} has none of that id. {reading.name_one_of(ids)}"
        raise reading.fault(f"task {task}", words)
    if rollout >= run.spec.k:
        words = f"Run {run_name} has rollouts 0 to {run.spec.k - 1} of each task."
        raise reading.fault(f"rollout {rollout}", words)
    ordinal = ordinal_of(rollout, ids.index(task), len(ids))
    record = found.entries.get(str(ordinal))
    if number is None and record is None:
        words = "it is not recorded yet: give --attempt to look at one all the same."
        raise reading.fault(f"rollout {rollout} of {task}", words)
    chosen = number or int(record["attempt"] if record else 1)
    failures = [
        {"attempt": int(parts[1][1:]), **entry}
        for key, entry in found.entries.items()
        if (parts := key.split("."))[0] == str(ordinal) and len(parts) > 1
    ]
    own = record if record and record["attempt"] == chosen else None
    return Attempt(run, task, rollout, ordinal, chosen, own, failures)


def _record(attempt: Attempt) -> dict[str, Any]:
    """Return what the ledger has of a rollout, as it is written there."""
    return {
        "run": attempt.run.metadata.name,
        "task": attempt.task,
        "rollout": attempt.rollout,
        "attempt": attempt.number,
        "record": attempt.record,
        "failures": attempt.failures,
    }


def _read(folder: Path) -> tuple[Document, list[Document], str]:
    """Return session, calls and agent's log of a downloaded attempt."""
    session = json.loads((folder / "session.json").read_text())
    lines = (folder / "trajectory.jsonl").read_text().splitlines()
    log = folder / "agent.log"
    text = log.read_text(errors="replace") if log.exists() else ""
    return session, [json.loads(line) for line in lines], text


def _show(attempt: Attempt, session: Document, calls: list[Document], log: str) -> None:
    """Print what happened as text; what agents wrote is never markup, nor control codes."""
    head = f"{attempt.run.metadata.name}  {attempt.task}, rollout {attempt.rollout}"
    render.show(Text(f"{head}, attempt {attempt.number}", "bold"))
    for number, call in enumerate(calls, 1):
        arguments = json.dumps(call.get("arguments"), ensure_ascii=False)
        _line(f"{number:>3} {call.get('tool')} {arguments}")
        failed = call.get("error") is not None
        answer = json.dumps(call["error"] if failed else call.get("result"), ensure_ascii=False)
        _line(f"    {'!!' if failed else '->'} {answer}", "red" if failed else "dim")
    if session:
        _line(f"answer  {session.get('finalAnswer') or '-'}")
        _line(f"end     {session.get('end')}: {session.get('reason')}")
        if session.get("reason") != "completed" and log:
            for line in log.splitlines()[-_LOG_LINES:]:
                _line(f"log     {line}", "dim")
    for failure in attempt.failures:
        what = f"attempt {failure['attempt']} {failure['cause']}: {failure.get('message', '')}"
        _line(f"failed  {what}", "yellow")
    if attempt.record is not None:
        _show_grading(attempt.record)


def _show_grading(record: Mapping[str, Any]) -> None:
    for score in record.get("scores", ()):
        cause = f" {score['cause']}: {score.get('message', '')}" if score.get("cause") else ""
        _line(f"score   {score['name']} {render.number(score['value'], 2)}{cause}")
    causes = [record.get("cause"), record.get("agentCause")]
    words = ", ".join(cause for cause in causes if cause)
    message = f": {record['message']}" if record.get("message") else ""
    _line(f"reward  {render.number(record['reward'])} {words}{message}".rstrip())


def _line(text: str, style: str = "") -> None:
    render.show(Text(render.clean(text), style))
