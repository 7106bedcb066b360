"""Write the generated blocks of cli.md anew: python docs/cli.py [FOLDER].

Help texts are the commands' own, and the examples are what the commands print of one small Run, so
the page cannot say what they do not.
"""

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path

import click

from wavetank.api.kinds import Run, read
from wavetank.cli import following, reading, render, results, runs, showing
from wavetank.cli.main import root
from wavetank.core.causes import Cause
from wavetank.testing import kept

PAGE = Path(__file__).with_name("cli.md")
BLOCK = re.compile(
    r"(<!-- written by docs/cli\.py: ([^\n]*) -->\n```\w*\n)(.*?)(^```$)", re.M | re.S
)
WIDTH = 80
JSON_WIDTH = 96

EXAMPLE = kept.KeptRun(
    name="crm-scripted",
    agent="scripted:partial",
    entries=[
        kept.scored(0, 1, 1),
        kept.scored(1, 1, 0, agent_cause=Cause.AGENT_TIMEOUT),
        kept.invalid(2, "the answer is the text 'yes'"),
        kept.scored(3, 1, 1),
    ],
)


def main(folder: Path) -> None:
    """Write the page into a folder with all its blocks made anew."""
    made = dict(blocks())
    text = BLOCK.sub(lambda match: f"{match[1]}{made[match[2]]}{match[4]}", PAGE.read_text())
    (folder / PAGE.name).write_text(text)


def blocks() -> Iterator[tuple[str, str]]:
    """Give each block's name and its lines."""
    yield from helps(root, click.Context(root, info_name="wavetank", terminal_width=WIDTH))
    found = EXAMPLE.as_read()
    with_rollouts = reading.results_of(found, with_rollouts=True)
    yield "results", printed(lambda: showing.show_run(found.run, with_rollouts, with_rollouts=True))
    yield "results --json", pretty({"benchmark": "crm", "runs": [with_rollouts]}) + "\n"
    rows = results.csv_rows([with_rollouts], "tasks")
    yield "results --csv", printed(lambda: render.print_csv(results.TASK_COLUMNS, rows))
    run = read(Run, EXAMPLE.run)
    yield "runs list", printed(lambda: render.show(following.overview([run])))
    yield "runs list --json", pretty([runs.row_of(run)]) + "\n"


def helps(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Give the help of a command and of all below it."""
    yield context.command_path, command.get_help(context) + "\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                below = click.Context(inner, context, info_name=name, terminal_width=WIDTH)
                yield from helps(inner, below)


def printed(show: Callable[[], None]) -> str:
    """Return what a function prints."""
    text = io.StringIO()
    with redirect_stdout(text):
        show()
    return text.getvalue()


def pretty(value: object, indent: int = 0) -> str:
    """Return JSON with whatever fits a line on a line, so that a page stays readable."""
    line = json.dumps(value, ensure_ascii=False)
    if indent + len(line) <= JSON_WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {pretty(item, indent + 2)}" for key, item in value.items()]
        opened, closed = "{", "}"
    else:
        parts = [pretty(item, indent + 2) for item in value]
        opened, closed = "[", "]"
    listed = ",\n".join(inner + part for part in parts)
    return f"{opened}\n{listed}\n{' ' * indent}{closed}"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE.parent)
