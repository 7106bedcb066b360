"""``wavetank``: groups of commands, each loaded when it is called.

The table below is all that ``--help`` needs; a command's own module brings in pydantic, the
Kubernetes client and the rest, which cost a second that nobody should pay for a help text.
"""

import sys
from importlib import import_module

import click

from wavetank import __version__


class LazyGroup(click.Group):
    """A group whose commands are named in a table and imported when they are called."""

    def __init__(self, name: str, table: dict[str, tuple[str, str]], text: str) -> None:
        super().__init__(name, help=text)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the table's order."""
        del ctx
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, importing its module."""
        del ctx
        if cmd_name not in self._table:
            return None
        module, attribute = self._table[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(f"wavetank.cli.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, importing nothing."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._table.items()])


benchmarks = LazyGroup(
    "benchmarks",
    {
        "push": ("push:push", "Bring a bundle to the cluster as World and Benchmark."),
        "run": ("run:run", "Run a benchmark: every task k times."),
        "results": ("results:results", "Show what came out of a benchmark's Runs."),
    },
    "Write, bring and run benchmarks, and read their results.",
)

runs = LazyGroup(
    "runs",
    {
        "list": ("runs:list_runs", "List the Runs of a namespace."),
        "watch": ("runs:watch", "Follow Runs until they are over."),
        "evidence": ("evidence:evidence", "Show or download what is kept of one rollout."),
    },
    "Look at Runs and at what they leave behind.",
)

root = LazyGroup(
    "wavetank",
    {
        "benchmarks": ("main:benchmarks", str(benchmarks.help)),
        "runs": ("main:runs", str(runs.help)),
    },
    "Benchmarks of AI agents on Kubernetes.\n\n"
    "Exit codes: 0 good, 1 what was asked for is at fault or failed, 2 wrong usage, "
    "3 the cluster or the store could not be reached, 130 interrupted.",
)
root = click.version_option(__version__, prog_name="wavetank")(root)


def main() -> None:
    """Run the command line."""
    sys.exit(root.main(standalone_mode=True))
