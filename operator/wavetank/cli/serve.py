"""``wavetank worlds serve``: one session of a task on this machine, for a rollout by hand."""

import asyncio
import errno
import secrets
import signal
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

import click

from wavetank.bundles.pack import unpack
from wavetank.bundles.world import linked_folders
from wavetank.cli import render
from wavetank.cli.authoring import (
    GOOD,
    INTERRUPTED,
    carry_out_here,
    counted,
    fault,
    folder_argument,
    json_option,
    one_line,
)
from wavetank.cli.served_state import token_left
from wavetank.worlds.grading.local import EndState, grade_apart, grades_document
from wavetank.worlds.grading.members import MemberLostError
from wavetank.worlds.local import LocalWorld, served
from wavetank.worlds.opening import open_local
from wavetank.worlds.session import Opening


@click.command(
    epilog="\b\nExample:  wavetank worlds serve ./crm-bench --task close_ticket --port 8080 &\n"
    "          wavetank worlds call http://localhost:8080 list_tickets"
)
@folder_argument
@click.option("--task", "task_id", required=True, metavar="ID", help="Which task of the benchmark.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True,
              help="Where to listen; 0 takes a free one.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of World.random.")
@click.option(
    "-o", "--output", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False),
    help="Keep trajectory, end state and seal there.",
)  # fmt: skip
@json_option
def serve(
    folder: Path, task_id: str, port: int, seed: int, output: Path | None, as_json: bool
) -> None:
    """Serve one session of a task of the benchmark in DIR on 127.0.0.1, and start it.

    Tools are there by HTTP (see `worlds call`) and by MCP, for any agent. It ends, and tells the
    end state's grades, when the session is closed or the command interrupted.
    """

    def step() -> int:
        opening = open_local(folder, task_id, seed)
        with tempfile.TemporaryDirectory(prefix="wavetank-") as temporary:
            kept = output or Path(temporary)
            kept.mkdir(parents=True, exist_ok=True)
            code = asyncio.run(_serve(opening, kept, port, as_json=as_json))
            _tell_end(folder, task_id, kept, as_json=as_json)
            if output is not None:
                render.tell(f"Kept in {output}.")
        return code

    carry_out_here(step, as_json=as_json)


async def _serve(opening: Opening, kept: Path, port: int, *, as_json: bool) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    token = secrets.token_urlsafe(32)
    # What tools print must not get between the lines of an answer.
    out = sys.stdout
    with redirect_stdout(sys.stderr):
        try:
            serving = served(opening, kept, port=port, grade_token=token)
            async with serving as world:
                with token_left(int(world.url.rpartition(":")[2]), token):
                    world.keeper.start()
                    with redirect_stdout(out):
                        _tell_start(world, as_json=as_json)
                    await _until_over(world, stopping)
                    return GOOD if world.is_sealed.is_set() else INTERRUPTED
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            words = "it is taken by another program. Give another --port; 0 takes a free one."
            raise fault(f"port {port}", words) from error


async def _until_over(world: LocalWorld, stopping: asyncio.Event) -> None:
    ends = [asyncio.create_task(event.wait()) for event in (world.is_sealed, stopping)]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()


def _tell_start(world: LocalWorld, *, as_json: bool) -> None:
    opening = world.session.opening
    tools = list(opening.toolset.tools)
    if as_json:
        click.echo(
            one_line(
                {
                    "url": world.url,
                    "mcp": f"{world.url}/mcp",
                    "task": opening.task.id,
                    "prompt": opening.task.prompt,
                    "tools": tools,
                }
            )
        )
        return
    click.echo(f"Task {opening.task.id} at {world.url}, by MCP at {world.url}/mcp")
    click.echo(render.clean(f"Prompt: {opening.task.prompt.strip()}"))
    click.echo(render.clean(f"Tools: {', '.join(tools) or 'none'}"))
    click.echo(f"Call one:  wavetank worlds call {world.url} TOOL --args JSON --grade --close")


def _tell_end(folder: Path, task_id: str, kept: Path, *, as_json: bool) -> None:
    """Grade what was sealed, and tell it."""
    with tempfile.TemporaryDirectory(prefix="wavetank-") as name:
        unpack(kept / "snapshot.tar.zst", Path(name))
        state = EndState(task=task_id, folder=Path(name))
        try:
            graded = grade_apart(folder, linked_folders(folder), [state])[0]
        except MemberLostError:
            render.tell("The grading process was killed: is there enough memory?")
            return
        calls = sum(1 for _ in (Path(name) / "trajectory.jsonl").open("rb"))
    document = grades_document(graded)
    if as_json:
        click.echo(one_line({"closed": True, "calls": calls, **document}))
    else:
        click.echo(f"Closed after {counted(calls, 'call')}: {render.clean(one_line(document))}")
