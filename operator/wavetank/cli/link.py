"""``wavetank worlds schema link``: another world beside one's own."""

import os
from pathlib import Path, PurePath

import click

from wavetank.bundles.world import linked_folders, read
from wavetank.bundles.world.config import CONFIG_FILE
from wavetank.cli import render
from wavetank.cli.authoring import GOOD, carry_out_here, folder_argument, json_option
from wavetank.cli.editing import add_dependency
from wavetank.core.errors import Finding, Severity, SpecError


@click.command(epilog="Example:  wavetank worlds schema link ./crm-bench slack ./slack-world")
@folder_argument
@click.argument("alias")
@click.argument("other", type=click.Path(path_type=Path, exists=True, file_okay=False))
@json_option
def link(folder: Path, alias: str, other: Path, as_json: bool) -> None:
    """Link the world in the folder OTHER to the one in DIR, under ALIAS.

    Its tools appear as ALIAS__name, and tasks may name its verifiers. A world that is at fault, or
    that cannot be linked, is refused.
    """
    carry_out_here(lambda: _link(folder, alias, other, as_json=as_json), as_json=as_json)


def _link(folder: Path, alias: str, other: Path, *, as_json: bool) -> int:
    linked = linked_folders(folder)
    before = read(folder, linked)
    faults = [each for each in before.faults if each.path == CONFIG_FILE]
    at = f"{CONFIG_FILE}: dependencies.{alias}"
    if alias in before.main.dependencies:
        words = f"{alias!r} is linked already, to {before.main.dependencies[alias]!r}."
        faults.append(Finding(Severity.FAULT, at, words))
    elif other.resolve() == folder.resolve():
        faults.append(Finding(Severity.FAULT, at, "a world cannot be linked to itself: a cycle."))
    else:
        after = read(folder, {**linked, alias: other})
        faults += [each for each in after.faults if each not in before.faults]
    if faults:
        raise SpecError(faults)
    world = PurePath(os.path.relpath(other.resolve(), folder.resolve())).as_posix()
    add_dependency(folder, alias, world)
    if as_json:
        render.print_json({"linked": alias, "world": world})
    else:
        click.echo(f"Linked {other} to {folder} as {alias}: its tools are {alias}__<name>.")
    return GOOD
