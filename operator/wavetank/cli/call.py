"""``wavetank worlds call``: a tool of a served session, its grades, its end."""

import json
import sys
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import click

from wavetank.agents.world_http import Answer, WorldHttp, WorldUnreachableError
from wavetank.cli import render
from wavetank.cli.authoring import (
    AT_FAULT,
    GOOD,
    UNREACHABLE,
    carry_out_here,
    json_option,
    one_line,
)
from wavetank.cli.served_state import token_for
from wavetank.worlds.limits import refusal


@dataclass(frozen=True)
class Asked:
    """What to do with a session, in this order."""

    tool: str | None
    arguments: dict[str, object]
    answer: str | None
    """The agent's last message, for grading and closing."""
    grade: bool
    close: bool


class RefusedCallError(Exception):
    """The world answered with an error."""


@click.command(
    epilog="\b\nExample:  wavetank worlds call http://localhost:8080 update_ticket \\\n"
    '            --args \'{"id": "T-7", "status": "closed"}\' --grade --close'
)
@click.argument("url")
@click.argument("tool", required=False)
@click.option("--args", "arguments", metavar="JSON", default="{}", help="An object. Default: {}.")
@click.option("--answer", metavar="TEXT", help="The last message, for --grade and --close.")
@click.option("--grade", is_flag=True, help="Grade the state that the session is in then.")
@click.option("--close", is_flag=True, help="Close the session, at last.")
@json_option
def call(url: str, tool: str | None, as_json: bool, **asked: object) -> None:
    """Call TOOL of the session that `worlds serve` serves at URL.

    Prints what the tool returned; with --grade the grades alone, and what the tool returned goes to
    stderr. Without TOOL it grades or closes only. A call that fails is neither graded nor closed:
    exit code 1.
    """
    world, port, is_here = _world(url)
    wanted = Asked(
        tool=tool,
        arguments=_arguments(str(asked["arguments"])),
        answer=None if asked["answer"] is None else str(asked["answer"]),
        grade=bool(asked["grade"]),
        close=bool(asked["close"]),
    )
    if tool is None and not (wanted.grade or wanted.close):
        raise click.UsageError("Name a TOOL, or give --grade or --close.")
    # The token is for the session on this machine: another host is never shown it.
    token = token_for(port) if wanted.grade and is_here else ""
    carry_out_here(lambda: _call(world, url, token, wanted, as_json=as_json), as_json=as_json)


def _call(world: WorldHttp, url: str, token: str, asked: Asked, *, as_json: bool) -> int:
    document: dict[str, object] = {}
    try:
        if asked.tool is not None:
            document["result"] = _good(world.call(asked.tool, asked.arguments), "result")["result"]
            if not as_json:
                click.echo(_shown(document["result"]), err=asked.grade)
        final = {"finalAnswer": asked.answer}
        if asked.grade:
            grades = _good(world.post("/v1/grade", final, token), "reward")
            document["grades"] = grades
            if not as_json:
                click.echo(render.clean(one_line(grades)))
        if asked.close:
            document["closed"] = _close(world, final)
    except RefusedCallError as refused:
        if as_json:
            render.print_json({**document, "error": refused.args[1]})
        else:
            render.tell(str(refused.args[0]))
        return AT_FAULT
    except WorldUnreachableError as error:
        render.tell(f"The world at {url} could not be reached: {error}. Is it served?")
        sys.exit(UNREACHABLE)
    finally:
        world.close()
    if as_json:
        render.print_json(document)
    return _code(document)


def _code(document: dict[str, object]) -> int:
    grades = document.get("grades")
    return AT_FAULT if isinstance(grades, dict) and grades["reward"] is None else GOOD


def _close(world: WorldHttp, final: dict[str, str | None]) -> bool:
    answer = world.post("/v1/close", {"reason": "completed", **final})
    while answer.retry_after is not None:
        time.sleep(answer.retry_after)
        answer = world.post("/v1/close", {"reason": "completed", **final})
    return bool(_good(answer, "sealDigest"))


def _good(answer: Answer, key: str) -> dict[str, object]:
    """Return the body of a good answer, which has the key if a world gave it."""
    if answer.status == 200 and key in answer.body:
        return answer.body
    if "error" not in answer.body:
        words = f"what answers there is no world: status {answer.status}."
        raise RefusedCallError(words, {"type": "NoWorld", "message": words})
    raise RefusedCallError(answer.error, answer.body["error"])


def _shown(result: object) -> str:
    return json.dumps(result, indent=2, ensure_ascii=True)


def _arguments(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"it is not JSON: {error}.", param_hint="--args") from error
    if not isinstance(value, dict):
        raise click.BadParameter('it must be an object, like {"id": "T-7"}.', param_hint="--args")
    if wrong := refusal(value):
        raise click.BadParameter(wrong, param_hint="--args")
    return value


def _world(url: str) -> tuple[WorldHttp, int, bool]:
    """Return the world at a URL, its port, and whether it is on this machine."""
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="URL") from error
    if parts.scheme != "http" or not parts.hostname:
        raise click.BadParameter("it must be like http://localhost:8080.", param_hint="URL")
    return WorldHttp(url), port, parts.hostname in ("127.0.0.1", "localhost")
