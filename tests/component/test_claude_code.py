"""Claude Code, as it comes from npm, solves a task of a served world through MCP.

Its model is a server of ours that speaks the Messages API: https://docs.anthropic.com/en/api/messages
"""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from wavetank.testing import command
from wavetank.testing.bundles import DESK, write_bundle
from wavetank.worlds.serving import Server

TOOL = "mcp__world__update_ticket"
CALL = {"id": "T-7", "status": "closed", "reason": "duplicate"}

pytestmark = pytest.mark.prove


def streamed(block: Mapping[str, Any], delta: Mapping[str, Any], stop: str) -> Iterator[str]:
    """One answer of a model as the events of its stream."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "test",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    for event in (
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage},
        {"type": "message_stop"},
    ):
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def said(text: str) -> Iterator[str]:
    return streamed(
        {"type": "text", "text": ""}, {"type": "text_delta", "text": text}, stop="end_turn"
    )


def called() -> Iterator[str]:
    block = {"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": {}}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(CALL)}
    return streamed(block, delta, stop="tool_use")


class Model:
    """Calls the tool once, then tells what it got."""

    def __init__(self) -> None:
        self.results: list[Any] = []

    async def answer(self, request: Request) -> Response:
        asked = await request.json()
        if request.url.path.endswith("count_tokens"):
            return JSONResponse({"input_tokens": 1})
        found = [
            block
            for message in asked["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "tool_result"
        ]
        self.results = found or self.results
        has_tool = any(tool["name"] == TOOL for tool in asked.get("tools", ()))
        events = called() if has_tool and not found else said("Closed T-7 as a duplicate.")
        return StreamingResponse(events, media_type="text/event-stream")

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        routes = [Route("/{path:path}", self.answer, methods=["POST"])]
        server = Server(Starlette(routes=routes), "127.0.0.1", 0)
        serving = asyncio.create_task(server.run_until_told())
        try:
            yield server.url
        finally:
            server.should_exit = True
            await serving


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("claude")


async def run(*words: str | Path, **options: Any) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        **options,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


async def claude_of_npm(folder: Path) -> Path:
    if shutil.which("npm") is None:
        pytest.skip("there is no npm")
    package = "@anthropic-ai/claude-code"
    code, out = await run("npm", "install", "--no-audit", "--no-fund", "--prefix", folder, package)
    assert code == 0, out
    return folder / "node_modules" / ".bin" / "claude"


async def test_claude_code_closes_the_ticket_through_mcp(folder: Path):
    claude = await claude_of_npm(folder)
    desk = write_bundle(folder / "crm", DESK)
    words = ("worlds", "serve", desk, "--task", "close_ticket", "--port", "0", "--json")
    model, home = Model(), {"HOME": str(folder / "home")}
    world = await command.start(*words, **home)
    assert world.stdout is not None
    start = json.loads(await world.stdout.readline())
    servers = {"mcpServers": {"world": {"type": "http", "url": start["mcp"]}}}

    async with model.serving() as url:
        code, out = await run(
            *(claude, "--print", start["prompt"], "--model", "test", "--strict-mcp-config"),
            *("--mcp-config", json.dumps(servers), "--allowedTools", TOOL),
            cwd=desk,
            env={
                **home,
                "PATH": "/usr/bin:/bin",
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": "no key",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
        )

    assert (code, out.strip()) == (0, "Closed T-7 as a duplicate.")
    (result,) = model.results
    assert "duplicate" in json.dumps(result)
    graded = await command.wavetank("worlds", "call", start["url"], "--grade", "--close", **home)
    assert json.loads(graded.out) == {"reward": 1, "rewards": {"ticket_closed": 1}}
    await world.communicate()
