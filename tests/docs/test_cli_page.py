"""docs/cli.md against the commands themselves."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from wavetank.cli.main import root

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "cli.md"


def test_the_page_is_what_the_commands_say(tmp_path: Path):
    subprocess.run([sys.executable, ROOT / "docs" / "cli.py", tmp_path], check=True)

    assert (tmp_path / "cli.md").read_text() == PAGE.read_text(), "run: python docs/cli.py"


def test_every_command_is_on_the_page():
    told = set(re.findall(r"<!-- written by docs/cli\.py: (wavetank.*) -->", PAGE.read_text()))

    assert set(commands(root, "wavetank")) - told == set()


def commands(command: click.Command, path: str) -> Iterator[str]:
    """The commands that do something; groups of them need no place of their own."""
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from commands(inner, f"{path} {name}")
