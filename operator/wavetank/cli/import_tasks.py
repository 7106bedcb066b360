"""``wavetank benchmarks import``: what of another benchmark could move to a world."""

from pathlib import Path

import click
from rich.text import Text

from wavetank.cli import foreign, render
from wavetank.cli.authoring import GOOD, carry_out_here, counted, folder_argument, json_option


@click.command(epilog="Example:  wavetank benchmarks import ./terminal-bench --from harbor")
@folder_argument
@click.option(
    "--from", "source", required=True, type=click.Choice(["harbor", "verifiers"]),
    help="What DIR holds: a harbor task tree, or a verifiers package.",
)  # fmt: skip
@json_option
def import_tasks(folder: Path, source: str, as_json: bool) -> None:
    """List each task of DIR with the reason why it is, or is not, expressible on a world.

    It looks at the files alone, runs none of them, and writes nothing. Of a verifiers package it
    lists the kinds of tasks: the tasks themselves are made by running it.
    """

    def step() -> int:
        judged = foreign.of_harbor(folder) if source == "harbor" else foreign.of_verifiers(folder)
        if as_json:
            documents = [
                {"task": each.name, "expressible": each.expressible, "reason": each.reason}
                for each in judged
            ]
            render.print_json({"from": source, "tasks": documents})
            return GOOD
        for each in judged:
            verdict = "expressible" if each.expressible else "not expressible"
            words = f"{each.name}  {verdict}: {each.reason}"
            render.show(Text(render.clean(words), "green" if each.expressible else ""))
        good = sum(each.expressible for each in judged)
        click.echo(f"{counted(len(judged), 'task')}, {good} expressible. Nothing was written.")
        return GOOD

    carry_out_here(step, as_json=as_json)
