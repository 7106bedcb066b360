"""A session on the author's machine: the same server, sealed into a folder, and graded at a call."""

import asyncio
import hmac
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from wavetank.api.wire import WorldMessage
from wavetank.bundles.world import linked_folders
from wavetank.worlds.clock import utc_now
from wavetank.worlds.grading.local import (
    EndState,
    Graded,
    grade_apart,
    grades_document,
    write_session,
)
from wavetank.worlds.grading.members import MemberLostError
from wavetank.worlds.keeper import Ended, Keeper
from wavetank.worlds.sealing import Attempt, packed, sealed
from wavetank.worlds.server import RefusedError, body_object, create_app
from wavetank.worlds.serving import Server
from wavetank.worlds.session import Opening, Session

_ATTEMPT = Attempt("local", 0, 1)
_BODY_BYTES = 1024 * 1024
TOKEN_HEADER = "X-Wavetank-Token"  # noqa: S105 - a header's name


class FolderSealer:
    """Seals into a folder: ``snapshot.tar.zst``, ``seal.json`` and ``agent.log``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.is_sealed = asyncio.Event()
        """Set when the end state is written."""

    async def seal(self, session: Session, ended: Ended) -> WorldMessage:
        """Write the end state and its seal."""
        snapshot = await asyncio.to_thread(
            packed, session, ended, self._folder / "snapshot.tar.zst"
        )
        message = sealed(_ATTEMPT, session, ended, snapshot)
        if message.seal:
            (self._folder / "seal.json").write_bytes(message.seal.canonical())
        self.is_sealed.set()
        return message

    async def keep_log(self, log: str) -> None:
        """Write the agent's output."""
        (self._folder / "agent.log").write_text(log)


@dataclass(frozen=True)
class LocalWorld:
    """A session that is served on this machine."""

    url: str
    keeper: Keeper
    is_sealed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the session is closed and its end state written."""

    @property
    def session(self) -> Session:
        """The session."""
        return self.keeper.session


@asynccontextmanager
async def served(
    opening: Opening, folder: Path, *, port: int = 0, grade_token: str = ""
) -> AsyncIterator[LocalWorld]:
    """Serve a session on 127.0.0.1 until the block ends, which seals it if nobody has closed it.

    Args:
        opening: What to serve.
        folder: Where trajectory, end state and seal are written.
        port: 0 takes a free one.
        grade_token: Who has it may ask for the state's grades; empty for nobody.

    Raises:
        OSError: When the port is taken.
    """
    sealer = FolderSealer(folder)
    session = Session(opening, folder, utc_now)
    keeper = Keeper(session, sealer)
    extra = [_grade_route(session, grade_token)] if grade_token else []
    server = Server(create_app(keeper, extra), "127.0.0.1", port)
    serving = asyncio.create_task(server.run_until_told())
    try:
        yield LocalWorld(server.url, keeper, sealer.is_sealed)
    finally:
        await keeper.interrupt()
        server.should_exit = True
        await serving


def _grade_route(session: Session, token: str) -> Route:
    async def grade(request: Request) -> Response:
        given = request.headers.get(TOKEN_HEADER, "")
        if not hmac.compare_digest(given.encode(), token.encode()):
            words = f"grading takes the token of `worlds serve` in the header {TOKEN_HEADER}."
            raise RefusedError(401, "Unauthorized", words)
        answer = (await body_object(request, _BODY_BYTES)).get("finalAnswer")
        graded = await _graded_now(session, answer if isinstance(answer, str) else None)
        return JSONResponse(grades_document(graded))

    return Route("/v1/grade", grade, methods=["POST"])


async def _graded_now(session: Session, final_answer: str | None) -> Graded:
    """Grade the state between two calls."""
    task, main = session.opening.task.id, session.opening.read.main.root
    with tempfile.TemporaryDirectory(prefix="wavetank-") as name:
        folder = Path(name)
        await session.dump_between_calls(folder)
        write_session(folder, task, final_answer, session.trajectory.calls)
        state = EndState(task=task, folder=folder)
        try:
            found = await asyncio.to_thread(grade_apart, main, linked_folders(main), [state])
        except MemberLostError as error:
            raise RefusedError(503, "GradingLost", "the grading process was killed.") from error
    return found[0]
