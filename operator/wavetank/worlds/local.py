"""A session on the author's machine: the same server, sealed into a folder."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from wavetank.api.wire import WorldMessage
from wavetank.worlds.clock import utc_now
from wavetank.worlds.keeper import Ended, Keeper
from wavetank.worlds.sealing import Attempt, packed, sealed
from wavetank.worlds.server import create_app
from wavetank.worlds.serving import Server
from wavetank.worlds.session import Opening, Session

_ATTEMPT = Attempt("local", 0, 1)


class FolderSealer:
    """Seals into a folder: ``snapshot.tar.zst``, ``seal.json`` and ``agent.log``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def seal(self, session: Session, ended: Ended) -> WorldMessage:
        """Write the end state and its seal."""
        snapshot = await asyncio.to_thread(
            packed, session, ended, self._folder / "snapshot.tar.zst"
        )
        message = sealed(_ATTEMPT, session, ended, snapshot)
        if message.seal:
            (self._folder / "seal.json").write_bytes(message.seal.canonical())
        return message

    async def keep_log(self, log: str) -> None:
        """Write the agent's output."""
        (self._folder / "agent.log").write_text(log)


@dataclass(frozen=True)
class LocalWorld:
    """A session that is served on this machine."""

    url: str
    keeper: Keeper

    @property
    def session(self) -> Session:
        """The session."""
        return self.keeper.session


@asynccontextmanager
async def served(
    opening: Opening, folder: Path, *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[LocalWorld]:
    """Serve a session until the block ends, which seals it if nobody has closed it.

    Args:
        opening: What to serve.
        folder: Where trajectory, end state and seal are written.
        host: Where to listen.
        port: 0 takes a free one.

    Raises:
        OSError: When the port is taken.
    """
    keeper = Keeper(Session(opening, folder, utc_now), FolderSealer(folder))
    server = Server(create_app(keeper), host, port)
    serving = asyncio.create_task(server.run_until_told())
    try:
        yield LocalWorld(server.url, keeper)
    finally:
        await keeper.interrupt()
        server.should_exit = True
        await serving
