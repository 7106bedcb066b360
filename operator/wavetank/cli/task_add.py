"""``wavetank worlds schema task add``: one more task."""

from collections.abc import Iterator
from pathlib import Path

import click

from wavetank.bundles.world import ReadWorld, linked_folders, read
from wavetank.bundles.world.config import CONFIG_FILE
from wavetank.bundles.world.place import Place, Sink
from wavetank.bundles.world.read import check_task
from wavetank.bundles.world.tasks import read_tasks
from wavetank.cli import render
from wavetank.cli.authoring import GOOD, carry_out_here, folder_argument, json_option
from wavetank.cli.editing import append_task
from wavetank.core.errors import Finding, SpecError


@click.command(
    epilog='\b\nExample:  wavetank worlds schema task add ./crm-bench escalate --prompt "Escalate '
    'it." \\\n            --verifier ticket_escalated --world slack=message_posted'
)
@folder_argument
@click.argument("task_id", metavar="ID")
@click.option("--prompt", required=True, metavar="TEXT", help="What the agent is told.")
@click.option("--verifier", "verifiers", multiple=True, metavar="NAME",
              help="verifiers/NAME; may be given again.")  # fmt: skip
@click.option("--world", "worlds", multiple=True, metavar="ALIAS=NAME",
              help="A linked world's verifier; may be given again.")  # fmt: skip
@json_option
def task_add(
    folder: Path, task_id: str, prompt: str, verifiers: tuple[str, ...], worlds: tuple[str, ...],
    as_json: bool,
) -> None:  # fmt: skip
    """Append the task ID to the benchmark in DIR; comments and order of its file are kept.

    A task whose verifiers or links are not there, or whose id is taken, is refused.
    """
    task: dict[str, object] = {"id": task_id, "prompt": prompt}
    if verifiers:
        task["verifiers"] = list(verifiers)
    if linked := _by_alias(worlds):
        task["worlds"] = linked
    carry_out_here(lambda: _add(folder, task, as_json=as_json), as_json=as_json)


def _by_alias(given: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in given:
        alias, equals, name = each.partition("=")
        if not (alias and equals and name):
            raise click.BadParameter(f"{each!r} is not ALIAS=NAME.", param_hint="--world")
        found.setdefault(alias, []).append(name)
    return found


def _add(folder: Path, task: dict[str, object], *, as_json: bool) -> int:
    world = read(folder, linked_folders(folder))
    if faults := [*_of_the_file(world), *_of_the_task(world, task)]:
        raise SpecError(faults)
    append_task(folder, task)
    if as_json:
        render.print_json(
            {"added": task, "tasks": [*(each.id for each in world.tasks), task["id"]]}
        )
    else:
        click.echo(f"Added task {task['id']} to {folder / CONFIG_FILE}.")
    return GOOD


def _of_the_file(world: ReadWorld) -> Iterator[Finding]:
    """Yield what is wrong with the file as a whole: nothing is appended to what cannot be read."""
    wholes = (CONFIG_FILE, f"{CONFIG_FILE}: tasks")
    yield from (each for each in world.faults if each.path in wholes)


def _of_the_task(world: ReadWorld, task: dict[str, object]) -> tuple[Finding, ...]:
    """Return what is wrong with the new task."""
    sink = Sink()
    place = Place(sink, str(task["id"]))
    if world.task(str(task["id"])) is not None:
        place.fault("the id is given already. Ids are unique.")
    for _, read_task in read_tasks(_Nameless(sink, place.file), [task]):
        check_task(place, read_task, world.main, world.linked)
    return sink.closed()


class _Nameless(Place):
    """The place of a list of one, whose items have no number that people know."""

    def at(self, key: str | int) -> Place:
        """Return the place of a key below this one."""
        return Place(self.sink, self.file) if isinstance(key, int) else super().at(key)
