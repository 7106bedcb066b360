"""``wavetank worlds skill``: how to do things, as text for an agent."""

from importlib.resources import files

import click

from wavetank.cli.authoring import GOOD, carry_out_here, json_option
from wavetank.cli.render import print_json

_SKILLS = ("benchmarks-getting-started",)


@click.command(epilog="Example:  wavetank worlds skill benchmarks-getting-started")
@click.argument("name", type=click.Choice(_SKILLS))
@json_option
def skill(name: str, as_json: bool) -> None:
    """Print the skill NAME: steps that an agent can follow."""

    def step() -> int:
        text = (files("wavetank.cli") / "skills" / f"{name}.md").read_text()
        if as_json:
            print_json({"name": name, "text": text})
        else:
            click.echo(text, nl=False)
        return GOOD

    carry_out_here(step, as_json=as_json)
