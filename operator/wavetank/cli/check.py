"""``wavetank benchmarks check``: every verifier on the untouched state."""

from collections.abc import Sequence
from pathlib import Path

import click

from wavetank.cli import render
from wavetank.cli.authoring import (
    AT_FAULT,
    GOOD,
    carry_out_here,
    counted,
    findings_document,
    folder_argument,
    json_option,
    plain_number,
    show_findings,
)
from wavetank.cli.looking import Looked, look
from wavetank.core.errors import Finding, Severity


@click.command(epilog="Example:  wavetank benchmarks check ./crm-bench")
@folder_argument
@json_option
def check(folder: Path, as_json: bool) -> None:
    """Run every verifier of the bundle in DIR on the untouched state.

    Tells each verifier's score and each task's reward before an agent acts, and everything that is
    wrong with the files. Exit code 1 for a fault: among them a verifier that cannot run, and a task
    that passes untouched.
    """
    carry_out_here(lambda: _check(folder, as_json=as_json), as_json=as_json)


def _check(folder: Path, *, as_json: bool) -> int:
    looked = look(folder)
    if as_json:
        render.print_json(document(looked))
    else:
        show_scores(looked)
        show_inferred(looked, folder)
        show_findings(looked.findings)
        click.echo(f"{folder}: {summary(looked, looked.findings)}")
    return AT_FAULT if looked.faults else GOOD


def show_scores(looked: Looked) -> None:
    """Print a line for each verifier and each task."""
    for verifier in looked.result.verifiers:
        score = _score(verifier.initial_score)
        cause = f"  {verifier.cause}" if verifier.cause else ""
        click.echo(f"verifiers.{verifier.name}.initial_score  {score}{cause}")
    for task in looked.result.tasks:
        click.echo(f"tasks.{task.id}.initial_reward  {_score(task.initial_reward)}")


def show_inferred(looked: Looked, folder: Path) -> None:
    """Print which tables were taken from the data, and how to pin them."""
    for world in looked.world.worlds:
        for sentence in world.inferred:
            where = f"linked/{world.alias}/" if world.alias else ""
            click.echo(render.clean(f"inferred from {where}data/initial.json: {sentence}"))
    if looked.world.main.inferred:
        click.echo(f"To pin what was inferred:  wavetank worlds schema pin {folder}")


def summary(looked: Looked, findings: Sequence[Finding]) -> str:
    """Return how much there is, and how much of it is wrong."""
    result = looked.result
    rows = sum(entity.rows for entity in result.entities)
    counts = [
        counted(len(result.entities), "table"),
        counted(rows, "row"),
        counted(len(result.tools), "tool"),
        counted(len(result.verifiers), "verifier"),
        counted(len(result.tasks), "task"),
    ]
    faults = sum(each.severity is Severity.FAULT for each in findings)
    warnings = len(findings) - faults
    wrong = [counted(faults, "fault")]
    wrong += [counted(warnings, "warning")] if warnings else []
    return f"{', '.join(counts)}; {', '.join(wrong)}."


def document(looked: Looked) -> dict[str, object]:
    """Return the check for programs."""
    result = looked.result
    return {
        "ok": not looked.faults,
        "name": looked.world.main.name,
        "entities": [{"name": each.name, "rows": each.rows} for each in result.entities],
        "tools": result.tools,
        "verifiers": [
            {
                "name": each.name,
                "initialScore": plain_number(each.initial_score),
                "cause": each.cause,
            }
            for each in result.verifiers
        ],
        "tasks": [
            {
                "id": each.id,
                "initialReward": plain_number(each.initial_reward),
                "hasSolution": each.has_solution,
            }
            for each in result.tasks
        ],
        "initialMean": plain_number(result.initial_mean),
        "inferred": [
            {"alias": world.alias, "tables": list(world.inferred)}
            for world in looked.world.worlds
            if world.inferred
        ],
        "findings": findings_document(looked.findings),
    }


def _score(value: float | None) -> str:
    return "null" if value is None else str(round(value, 4))
