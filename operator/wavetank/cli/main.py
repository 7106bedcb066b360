"""``wavetank``: groups of commands, each loaded when it is called.

The tables below are all that a group's ``--help`` needs; a command's own module brings in
pydantic, the Kubernetes client and the rest, which cost a second that nobody should pay for a list
of commands.
"""

import sys
from importlib import import_module

import click

from wavetank import __version__


class LazyGroup(click.Group):
    """A group whose commands are named in a table and imported when they are called."""

    def __init__(
        self, name: str, table: dict[str, tuple[str, str]], text: str, example: str
    ) -> None:
        super().__init__(name, help=text, epilog=f"Example:  {example}")
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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is asked for, or say which there are."""
        if args[0] not in self._table and not args[0].startswith("-"):
            ctx.fail(f"There is no command {args[0]!r}. Name one of: {', '.join(self._table)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, importing nothing."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._table.items()])


benchmarks = LazyGroup(
    "benchmarks",
    {
        "init": ("init:init", "Write a small working benchmark into a new folder."),
        "check": ("check:check", "Run every verifier on the untouched state."),
        "validate": ("validate:validate", "Check a whole bundle, and play its solutions."),
        "dry-run": ("dry_run:dry_run", "Open a task's session, grade it untouched, close it."),
        "import": ("import_tasks:import_tasks", "List what of another benchmark could move here."),
        "push": ("push:push", "Bring a bundle to the cluster as World and Benchmark."),
        "run": ("run:run", "Run a benchmark: every task k times."),
        "results": ("results:results", "Show what came out of a benchmark's Runs."),
        "compare": ("compare:compare", "Compare Run B with Run A, task by task."),
    },
    "Write benchmarks, bring them to a cluster, run them, and read their results.",
    "wavetank benchmarks init ./crm-bench",
)

runs = LazyGroup(
    "runs",
    {
        "list": ("runs:list_runs", "List the Runs of a namespace."),
        "watch": ("runs:watch", "Follow Runs until they are over."),
        "evidence": ("evidence:evidence", "Show or download what is kept of one rollout."),
    },
    "Look at Runs and at what they leave behind.",
    "wavetank runs watch crm-oracle -n bench",
)

worlds_data = LazyGroup(
    "data",
    {"import": ("data_import:data_import", "Add rows from a JSON or CSV file.")},
    "Change the rows that a world starts with.",
    "wavetank worlds data import ./crm-bench tickets.csv --entity crm_tickets",
)

worlds_schema_task = LazyGroup(
    "task",
    {"add": ("task_add:task_add", "Append a task.")},
    "Change the tasks of a benchmark.",
    "wavetank worlds schema task add ./crm-bench ID --prompt TEXT --verifier NAME",
)

worlds_schema = LazyGroup(
    "schema",
    {
        "task": ("main:worlds_schema_task", str(worlds_schema_task.help)),
        "link": ("link:link", "Link another world."),
        "pin": ("pin:pin", "Write the inferred tables as a schema."),
    },
    "Change what a world is made of.",
    "wavetank worlds schema link ./crm-bench slack ./slack-world",
)

worlds = LazyGroup(
    "worlds",
    {
        "serve": ("serve:serve", "Serve one session of a task on this machine."),
        "call": ("call:call", "Call a tool of a served session; grade it; close it."),
        "data": ("main:worlds_data", str(worlds_data.help)),
        "schema": ("main:worlds_schema", str(worlds_schema.help)),
        "skill": ("skill:skill", "Print how to do things, for an agent."),
    },
    "Work on a world by hand.",
    "wavetank worlds serve ./crm-bench --task close_ticket --port 8080",
)

root = LazyGroup(
    "wavetank",
    {
        "benchmarks": ("main:benchmarks", str(benchmarks.help)),
        "runs": ("main:runs", str(runs.help)),
        "worlds": ("main:worlds", str(worlds.help)),
    },
    "Benchmarks of AI agents on Kubernetes.\n\n"
    "Exit codes: 0 good, 1 what was asked for is at fault or failed, 2 wrong usage, "
    "3 the cluster or the store could not be reached, 130 interrupted.",
    "wavetank benchmarks run crm -k 3 --agent oracle -n bench --wait",
)
root = click.version_option(__version__, prog_name="wavetank", message="%(prog)s %(version)s")(root)


def main() -> None:
    """Run the command line."""
    sys.exit(root.main(standalone_mode=True))
