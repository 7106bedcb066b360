"""The tools of a session by MCP, as the official SDK's client sees them."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import mcp_types as types
from mcp.client.client import Client

from wavetank.testing.bundles import write_linked
from wavetank.worlds.local import served
from wavetank.worlds.opening import open_local


def text_of(result: types.CallToolResult) -> tuple[bool, str]:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return bool(result.is_error), content.text


async def test_the_tools_are_the_same_by_mcp(tmp_path: Path) -> None:
    opening = open_local(write_linked(tmp_path), "close_ticket")
    async with served(opening, tmp_path) as world:
        world.keeper.start()
        async with Client(f"{world.url}/mcp") as client:
            listed = await client.list_tools()
            closed = await client.call_tool("update_ticket", {"id": "T-7", "status": "closed"})
            refused = await client.call_tool("update_ticket", {"id": "T-9", "status": "closed"})
            wrong = await client.call_tool("update_ticket", {"id": "T-7", "status": "opne"})
            unknown = await client.call_tool("nothing", {})
            deep: object = "x"
            for _ in range(65):
                deep = [deep]
            too_deep = await client.call_tool("list_tickets", {"a": deep})
        calls = world.session.trajectory.calls

    assert {tool.name: tool.input_schema for tool in listed.tools} == {
        name: tool.arguments.schema for name, tool in opening.toolset.tools.items()
    }
    assert [tool.description for tool in listed.tools] == [
        "Change a ticket's status.",
        "List all tickets.",
        "Post a message.",
    ]
    is_error, text = text_of(closed)
    assert (is_error, json.loads(text)["status"]) == (False, "closed")
    assert text_of(refused) == (True, "ToolError: there is no ticket T-9")
    assert text_of(wrong) == (
        True,
        "InvalidArguments: status: Input should be 'open', 'pending' or 'closed'",
    )
    assert text_of(unknown)[1].startswith("UnknownTool: no tool is named 'nothing'.")
    assert text_of(too_deep) == (
        True,
        "InvalidArguments: the arguments are refused: it is nested more than 64 levels deep.",
    )
    assert calls == 4


async def test_mcp_is_there_without_a_redirect(tmp_path: Path) -> None:
    opening = open_local(write_linked(tmp_path), "close_ticket")
    headers = {"accept": "application/json, text/event-stream"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with (
        served(opening, tmp_path) as world,
        httpx.AsyncClient(base_url=world.url, headers=headers, timeout=60) as client,
    ):
        listed = await client.post("/mcp", json=call)
        too_large = await client.post("/mcp", content=b" " * (2**20 + 1))

    assert listed.status_code == 200
    assert [tool["name"] for tool in listed.json()["result"]["tools"]] == [
        "update_ticket",
        "list_tickets",
        "slack__post_message",
    ]
    assert too_large.status_code == 413


async def test_a_closed_session_refuses_by_mcp_too(tmp_path: Path) -> None:
    opening = open_local(write_linked(tmp_path), "close_ticket")
    async with served(opening, tmp_path) as world:
        world.keeper.start()
        async with Client(f"{world.url}/mcp") as client:
            await world.session.stop()
            result = await client.call_tool("list_tickets", {})

    assert text_of(result)[1].startswith("SessionClosed: ")


def test_the_sdk_is_not_imported_before_somebody_speaks_mcp() -> None:
    script = "import sys, wavetank.worlds.__main__; sys.exit('mcp' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", script], check=False)

    assert done.returncode == 0
