"""The MCP server of a session; imported only when somebody speaks MCP (see ``mcp_face``)."""

import asyncio
import json
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from wavetank.worlds.limits import refusal
from wavetank.worlds.session import CallError, ErrorKind, Session


class McpServer:
    """Lists and calls the tools of one session."""

    def __init__(self, session: Session, body_bytes: int) -> None:
        self._session = session
        # No MCP session: the state is in the world's session, and a lost connection loses nothing.
        self._manager = StreamableHTTPSessionManager(
            Server(
                "wavetank",
                instructions=session.opening.read.main.instructions or None,
                on_list_tools=self._list,
                on_call_tool=self._call,
            ),
            json_response=True,
            stateless=True,
            max_request_body_size=body_bytes,
        )
        self._stopping = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start what requests are served in."""
        ready = asyncio.Event()

        async def run() -> None:
            # Entered and left in one task, as its task group demands.
            async with self._manager.run():
                ready.set()
                await self._stopping.wait()

        self._running = asyncio.create_task(run())
        await ready.wait()

    async def aclose(self) -> None:
        """End it."""
        self._stopping.set()
        if self._running:
            await self._running

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._manager.handle_request(scope, receive, send)

    async def _list(
        self, _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=dict(tool.arguments.schema),
                )
                for tool in self._session.opening.toolset.tools.values()
            ]
        )

    async def _call(
        self, _: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = params.arguments or {}
        wrong = refusal(arguments)
        if wrong is None:
            outcome = await self._session.call(params.name, arguments)
        else:
            text = f"the arguments are refused: {wrong}"
            outcome = CallError(ErrorKind.INVALID_ARGUMENTS, text)
        if isinstance(outcome, CallError):
            text = f"{outcome.kind}: {outcome.message}"
        else:
            text = json.dumps(outcome.value, ensure_ascii=False)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)],
            is_error=isinstance(outcome, CallError),
        )
