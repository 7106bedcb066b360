"""``wavetank benchmarks dry-run``: a task's session, graded untouched."""

import asyncio
import sys
import tempfile
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import click
from rich.text import Text

from wavetank.cli import render
from wavetank.cli.authoring import (
    AT_FAULT,
    GOOD,
    carry_out_here,
    fault,
    folder_argument,
    json_option,
    plain_number,
)
from wavetank.core.causes import Cause
from wavetank.worlds.clock import utc_now
from wavetank.worlds.grading.local import (
    EndState,
    Graded,
    graded,
    grades_document,
    write_session,
)
from wavetank.worlds.grading.members import MemberLostError
from wavetank.worlds.opening import open_local
from wavetank.worlds.session import Opening, Session


@dataclass(frozen=True)
class _Tried:
    """A session that nobody acted in."""

    opening: Opening
    grades: Graded

    @property
    def is_good(self) -> bool:
        """Tell whether every verifier can run; one without an answer yet is let be."""
        return all(each.cause in (None, Cause.REWARD_MISSING) for each in self.grades.scores)


@click.command(epilog="Example:  wavetank benchmarks dry-run ./crm-bench --task close_ticket")
@folder_argument
@click.option("--task", "task_id", required=True, metavar="ID", help="Which task of the benchmark.")
@json_option
def dry_run(folder: Path, task_id: str, as_json: bool) -> None:
    """Open a session of a task, grade the untouched state, close it.

    Shows what an agent would be given and what the verifiers say. Exit code 1 when one cannot run.
    """

    def step() -> int:
        tried = _tried(folder, task_id)
        if as_json:
            render.print_json(_document(tried))
        else:
            _show(tried)
        return GOOD if tried.is_good else AT_FAULT

    carry_out_here(step, as_json=as_json)


def _tried(folder: Path, task_id: str) -> _Tried:
    with tempfile.TemporaryDirectory(prefix="wavetank-") as name, redirect_stdout(sys.stderr):
        opening = open_local(folder, task_id)
        asyncio.run(_untouched(opening, Path(name)))
        try:
            grades = graded(opening.read, EndState(task=task_id, folder=Path(name)))
        except MemberLostError as error:
            words = "the process of a verifier was killed: is there enough memory? Try again."
            raise fault(str(folder), words) from error
    return _Tried(opening, grades)


async def _untouched(opening: Opening, folder: Path) -> None:
    """Open a session, leave its state in a folder, close it."""
    session = Session(opening, folder, utc_now)
    session.start()
    await session.stop()
    session.dump(folder / "worlds")
    write_session(folder, opening.task.id, None, 0)


def _show(tried: _Tried) -> None:
    read, task = tried.opening.read, tried.opening.task
    click.echo(f"task {task.id} of {read.main.name}")
    if read.main.instructions.strip():
        click.echo(render.clean(f"instructions: {read.main.instructions.strip()}"))
    click.echo(render.clean(f"prompt: {task.prompt.strip()}"))
    for tool in tried.opening.toolset.tools.values():
        first = tool.description.strip().partition("\n")[0]
        click.echo(render.clean(f"tool {tool.name}: {first}"))
    for world in read.worlds:
        for entity in world.entities:
            where = f"{world.alias}/" if world.alias else ""
            click.echo(f"seed rows {where}{entity.name}: {len(world.rows.get(entity.name, ()))}")
    for score in tried.grades.scores:
        if score.cause is None:
            click.echo(f"verifier {score.name}: {plain_number(score.value)}")
        else:
            words = f"verifier {score.name}: null ({score.cause}: {score.message})"
            style = "yellow" if score.cause is Cause.REWARD_MISSING else "red"
            render.show(Text(render.clean(words), style))
    reward = plain_number(tried.grades.reward)
    click.echo(f"reward: {'null' if reward is None else reward}")


def _document(tried: _Tried) -> dict[str, object]:
    read, task = tried.opening.read, tried.opening.task
    return {
        "ok": tried.is_good,
        "task": task.id,
        "prompt": task.prompt,
        "instructions": read.main.instructions,
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.arguments.schema,
            }
            for tool in tried.opening.toolset.tools.values()
        ],
        "verifiers": [str(key) for key in task.graders],
        "seedRows": {
            (f"{world.alias}/" if world.alias else "") + entity.name: len(
                world.rows.get(entity.name, ())
            )
            for world in read.worlds
            for entity in world.entities
        },
        **grades_document(tried.grades),
    }
