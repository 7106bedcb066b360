"""Every command's help: an example, a word on each option, and a quick start."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from wavetank.cli.main import root
from wavetank.testing.command import PROGRAM

pytestmark = pytest.mark.component

HELP_SECONDS = 0.3
"""CPU that a list of commands may cost beyond Python's own start."""


def commands(
    command: click.Command, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, (*words, name))


EVERY = list(commands(root))


@pytest.mark.parametrize(
    ("words", "command"), EVERY, ids=[" ".join(words) or "wavetank" for words, _ in EVERY]
)
def test_help_has_an_example_of(words: tuple[str, ...], command: click.Command) -> None:
    ended = CliRunner().invoke(root, [*words, "--help"], prog_name="wavetank")

    _, _, example = ended.stdout.partition("  Example:  ")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert example.startswith(f"wavetank {' '.join(words)}".rstrip())
    assert all(option.help for option in command.params if isinstance(option, click.Option))


@pytest.mark.parametrize(("words", "command"), EVERY[1:], ids=[" ".join(w) for w, _ in EVERY[1:]])
def test_a_list_of_commands_says_what_the_command_says_of(
    words: tuple[str, ...], command: click.Command
) -> None:
    (listed,) = (group for place, group in EVERY if place == words[:-1])
    context = click.Context(listed, terminal_width=200)

    lines = [line.split(maxsplit=1) for line in listed.get_help(context).splitlines()]

    told = next(line[1] for line in lines if line[:1] == [words[-1]])
    assert told.split()[0] == str(command.help).split()[0]


def test_a_list_of_commands_starts_quickly() -> None:
    def seconds(*call: str | Path) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(call, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    bare = min(seconds(sys.executable, "-c", "pass") for _ in range(3))
    own = min(seconds(PROGRAM, "--help") for _ in range(3))

    assert own - bare < HELP_SECONDS
