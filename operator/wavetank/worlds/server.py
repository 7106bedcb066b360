"""The HTTP face of a session: the table of calls in ``docs``; every error has one shape."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, cast

import pydantic
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from wavetank.api.wire import Part, WorldMessage
from wavetank.bundles.world import JsonValue
from wavetank.bundles.world.files import parse_json
from wavetank.worlds.keeper import Keeper, Report
from wavetank.worlds.limits import refusal
from wavetank.worlds.mcp_face import McpFace
from wavetank.worlds.schemas import problems
from wavetank.worlds.session import CallError, ErrorKind, Session, wire_time

_BODY_BYTES = 1024 * 1024
_CLOSE_BYTES = 4 * 1024 * 1024
"""The wrapper's report carries the end of the agent's output."""
_CLOSE_SECONDS = 20.0
"""How long a close waits for the seal before it asks to be called again."""

_STATUS: Mapping[ErrorKind, int] = {
    ErrorKind.INVALID_ARGUMENTS: 400,
    ErrorKind.UNKNOWN_TOOL: 404,
    ErrorKind.SESSION_NOT_STARTED: 409,
    ErrorKind.SESSION_CLOSED: 409,
    ErrorKind.TOOL_ERROR: 422,
    ErrorKind.CONSTRAINT_ERROR: 422,
    ErrorKind.INTERNAL_ERROR: 500,
    ErrorKind.TOO_MANY_CALLS: 429,
}


class CloseBody(Part):
    """What ``POST /v1/close`` takes. Any agent can send it, so nothing is converted."""

    model_config = pydantic.ConfigDict(strict=True)

    reason: str = "completed"
    final_answer: str | None = None
    exit_code: Annotated[int, pydantic.Field(ge=-(2**31), lt=2**31)] | None = None
    log: str = ""


class RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        self.status = status
        self.kind = kind
        super().__init__(message)


def create_app(keeper: Keeper, extra: Sequence[Route] = ()) -> Starlette:
    """Return the application that serves one session.

    Args:
        keeper: Of the session.
        extra: Further routes, of a world that is served locally.
    """
    session = keeper.session
    mcp = McpFace(session, _BODY_BYTES)

    async def start(_: Request) -> Response:
        if session.state == "closed":
            raise RefusedError(409, ErrorKind.SESSION_CLOSED, "the session is closed for good.")
        keeper.start()
        return JSONResponse(described(session))

    async def call(request: Request) -> Response:
        arguments = await body_object(request, _BODY_BYTES)
        outcome = await session.call(request.path_params["name"], arguments)
        if isinstance(outcome, CallError):
            status = _STATUS[outcome.kind]
            return failure(status, outcome.kind, outcome.message, outcome.details)
        return JSONResponse({"result": outcome.value})

    async def close(request: Request) -> Response:
        report = _report(await body_object(request, _CLOSE_BYTES))
        return _closed(await keeper.close(report, _CLOSE_SECONDS))

    async def healthz(_: Request) -> Response:
        return JSONResponse({"state": session.state})

    async def get_session(_: Request) -> Response:
        return JSONResponse(described(session))

    async def get_tools(_: Request) -> Response:
        return JSONResponse({"tools": listed(session)})

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await mcp.aclose()

    return _app(
        [
            Route("/healthz", healthz),
            Route("/v1/session", get_session),
            Route("/v1/start", start, methods=["POST"]),
            Route("/v1/tools", get_tools),
            Route("/v1/tools/{name}", call, methods=["POST"]),
            Route("/v1/close", close, methods=["POST"]),
            *extra,
            Route("/mcp", mcp),  # no Mount: it would redirect to /mcp/, which clients refuse
        ],
        lifespan,
    )


def failed_app(message: WorldMessage) -> Starlette:
    """Return the application of a world that has no session to give: everything is refused."""

    async def refuse(request: Request) -> Response:
        status = 503 if request.url.path == "/healthz" else 409
        kind = str(message.cause or "SessionClosed")
        return failure(status, kind, message.message or "the session ended before a restart.")

    everything = Route(
        "/{path:path}", refuse, methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    )
    return _app([everything], None)


def described(session: Session) -> dict[str, JsonValue]:
    """Return what ``GET /v1/session`` answers."""
    opening = session.opening
    worlds = [
        f"{each.alias}: {each.instructions}"
        for each in opening.read.linked.values()
        if each.instructions
    ]
    return {
        "task": opening.task.id,
        "prompt": opening.task.prompt,
        "instructions": "\n\n".join(filter(None, [opening.read.main.instructions, *worlds])),
        "tools": list(opening.toolset.tools),
        "state": session.state,
        "calls": session.trajectory.calls,
        "now": session.world_now.isoformat().replace("+00:00", "Z"),
        "deadline": wire_time(session.deadline) if session.deadline else None,
        "maxSteps": opening.task.max_steps,
    }


def listed(session: Session) -> list[JsonValue]:
    """Return what ``GET /v1/tools`` lists."""
    return [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.arguments.schema}
        for tool in session.opening.toolset.tools.values()
    ]


def failure(status: int, kind: str, message: str, details: JsonValue = ()) -> JSONResponse:
    """Return an error in the one shape that all have."""
    error = {"type": kind, "message": message, "details": details}
    return JSONResponse({"error": error}, status_code=status)


def _app(routes: list[Route], lifespan: Callable[[Starlette], object] | None) -> Starlette:
    async def refused(_: Request, error: Exception) -> Response:
        told = cast("RefusedError", error)
        return failure(told.status, told.kind, str(told))

    async def unknown(request: Request, error: Exception) -> Response:
        status = cast("HTTPException", error).status_code
        if status == 405:
            return failure(status, "MethodNotAllowed", f"{request.method} is not possible here.")
        return failure(status, "NotFound", f"there is nothing at {request.url.path}.")

    async def broken(_: Request, error: Exception) -> Response:
        return failure(500, ErrorKind.INTERNAL_ERROR, "internal error")

    return Starlette(
        routes=routes,
        lifespan=lifespan,  # type: ignore[arg-type]
        exception_handlers={RefusedError: refused, HTTPException: unknown, Exception: broken},
    )


def _closed(message: WorldMessage | None) -> Response:
    if message is None:
        answer = failure(503, "Sealing", "the end state is not sealed yet. Call again.")
        answer.headers["Retry-After"] = "1"
        return answer
    if message.seal is None:
        return failure(500, str(message.cause), message.message)
    return JSONResponse(
        {"state": "closed", "end": message.seal.end, "sealDigest": message.seal_digest}
    )


async def body_object(request: Request, limit: int) -> Mapping[str, JsonValue]:
    """Return the body, which must be a JSON object.

    Raises:
        RefusedError: When it is none, or larger than the limit.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise RefusedError(413, "TooLarge", f"the body has more than {limit} bytes.")
    try:
        value = parse_json(body.decode()) if body else {}
    except (ValueError, RecursionError) as error:
        raise RefusedError(
            400, ErrorKind.INVALID_ARGUMENTS, f"the body is not JSON: {error}."
        ) from error
    if not isinstance(value, dict):
        raise RefusedError(400, ErrorKind.INVALID_ARGUMENTS, "the body must be a JSON object.")
    if wrong := refusal(value):
        raise RefusedError(400, ErrorKind.INVALID_ARGUMENTS, f"the body is refused: {wrong}")
    return value


def _report(body: Mapping[str, JsonValue]) -> Report:
    try:
        told = CloseBody.model_validate(body)
    except pydantic.ValidationError as error:
        found = problems(error)
        text = "; ".join(f"{each['path']}: {each['message']}" for each in found)
        raise RefusedError(400, ErrorKind.INVALID_ARGUMENTS, text) from error
    return Report(told.reason, told.final_answer, told.exit_code, told.log)
