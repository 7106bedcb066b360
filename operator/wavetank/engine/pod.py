"""An attempt at a rollout, as processes: what a Pod is in a cluster, with the same programs.

The solution is fetched first, where the agent replays one; then the world is started, and when it
serves, the wrapper around the agent; when that has ended, the world is told to stop. What is to be
seen of it has the form of a Pod's state, so that ``decide`` cannot tell the difference.
"""

import asyncio
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ValidationError

from wavetank.api.execution import seal_seen
from wavetank.api.wire import (
    SESSION_ENV,
    SOLUTION_ENV,
    TOKEN_FILE_ENV,
    SessionSpec,
    WorldMessage,
)
from wavetank.core.identity import AttemptKey
from wavetank.core.observed import Container, ContainerPhase, PodSeen
from wavetank.engine.processes import Process, Processes, Program
from wavetank.manifests.rollout import GRACE_SECONDS, AgentChoice

_LOOK_SECONDS = 0.02
_SERVING = re.compile(r"serving url=(http://127\.0\.0\.1:[0-9]+)")
"""What the world logs once it listens on a port of its choice."""
_LAST_WORDS = 500
"""Characters of a program's log that tell why it ended."""


@dataclass(frozen=True)
class Surroundings:
    """What attempts need beside their own documents."""

    processes: Processes
    tasks: asyncio.TaskGroup
    """Ends with whatever is in it; a mistake of ours in one of them ends all."""
    now: Callable[[], float]
    """Seconds since the epoch."""
    changed: Callable[[], None]
    """Called when there is something new to see."""


@dataclass(frozen=True)
class Tokens:
    """What the programs of an attempt show the store."""

    act: str
    solutions: str


@dataclass
class LocalPod:
    """One attempt. ``start`` it, look at it by ``seen``, and ``end`` it at last."""

    around: Surroundings
    session: SessionSpec
    """Also says which attempt this is."""
    agent_choice: AgentChoice
    tokens: Tokens
    folder: Path
    """Scratch of its own."""
    _state: PodSeen = field(init=False)
    _living: "asyncio.Task[None] | None" = None
    _world: Process | None = None
    _agent: Process | None = None

    def __post_init__(self) -> None:
        now = self.around.now()
        name = f"{self.key.ordinal}.{self.key.attempt}"
        self._state = PodSeen(name, name, self.key, created_at=now, scheduled_at=now)

    @property
    def key(self) -> AttemptKey:
        """Return which attempt this is."""
        return AttemptKey(self.session.ordinal, self.session.attempt)

    def start(self) -> None:
        """Start its life."""
        self._living = self.around.tasks.create_task(self._live())

    def seen(self) -> PodSeen:
        """Return what is to be seen of it."""
        return self._state

    async def end(self) -> None:
        """End what is left of its processes, and remove what they made for themselves."""
        if self._living is not None:
            self._living.cancel()
            with suppress(asyncio.CancelledError):
                await self._living
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    async def _live(self) -> None:
        try:
            if await self._set_up():
                await self._act()
        except OSError as error:
            # No room for another process, or on the disk: as a Pod whose world cannot start.
            self._see(world=_ended(Container(ContainerPhase.RUNNING), 1, None, str(error)))
        finally:
            if self._world is not None and not self._world.is_over:
                await self._world.kill()
            if self._agent is not None and not self._agent.is_over:
                # By request first: the wrapper alone knows its agent's processes.
                await self._agent.stop()

    async def _set_up(self) -> bool:
        """Fetch what the agent replays; return whether it may start."""
        self.folder.mkdir(parents=True, exist_ok=True)
        wanted = self.agent_choice.solution
        if wanted is None:
            return True
        program = self._program(
            "agents.solution",
            self.tokens.solutions,
            {SOLUTION_ENV: wanted.canonical().decode(), **self._solution_file},
        )
        running = Container(ContainerPhase.RUNNING, started_at=self.around.now())
        self._see(setup=running)
        process = await self.around.processes.start(program)
        try:
            code = await process.wait()
        finally:
            if not process.is_over:
                await process.kill()
        self._see(setup=_ended(running, code, self.around.now(), _last_words(program.log)))
        return code == 0

    async def _act(self) -> None:
        program = self._program(
            "worlds",
            self.tokens.act,
            {
                SESSION_ENV: self.session.canonical().decode(),
                "WAVETANK_STATE_DIR": str(self.folder),
                "WAVETANK_TERMINATION_LOG": str(self.folder / "message"),
                "WAVETANK_HOST": "127.0.0.1",
                "WAVETANK_PORT": "0",
            },
        )
        self._world = await self.around.processes.start(program)
        self._see(world=Container(ContainerPhase.RUNNING, started_at=self.around.now()))
        url = await self._url(program.log, self._world)
        if url is not None:
            await self._serve_agent(url, self._world)
        self._world_is_over(await self._world.stop(GRACE_SECONDS), program.log)

    async def _serve_agent(self, url: str, world: Process) -> None:
        """Return when the agent has ended, or its world."""
        command = ("--", sys.executable, *self.agent_choice.command[1:])
        program = self._program(
            "agents.wrapper", None, {"WAVETANK_WORLD_URL": url, **self._solution_file}, command
        )
        running = Container(ContainerPhase.RUNNING, started_at=self.around.now())
        self._agent = await self.around.processes.start(program)
        self._see(agent=running)
        ends = {asyncio.create_task(each.wait()) for each in (self._agent, world)}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        if self._agent.is_over:
            self._see(agent=_ended(running, await self._agent.wait(), self.around.now()))

    async def _url(self, log: Path, world: Process) -> str | None:
        """Return where the world serves; None when it ends before."""
        while not world.is_over:
            found = _SERVING.search(log.read_text(errors="replace"))
            if found is not None:
                return found[1]
            await asyncio.sleep(_LOOK_SECONDS)
        return None

    def _world_is_over(self, code: int, log: Path) -> None:
        message = _message(self.folder / "message")
        started = self._state.world or Container(ContainerPhase.RUNNING)
        self._see(
            world=_ended(started, code, self.around.now(), _last_words(log) if code else ""),
            seal=None if message is None else seal_seen(message.seal, self.key, self.session.run),
            world_cause=None if message is None else message.cause,
            world_message="" if message is None else message.message,
        )

    @property
    def _solution_file(self) -> dict[str, str]:
        return {"WAVETANK_SOLUTION_FILE": str(self.folder / "calls.json")}

    def _program(
        self,
        module: str,
        token: str | None,
        settings: dict[str, str],
        arguments: tuple[str, ...] = (),
    ) -> Program:
        if token is not None:
            file = self.folder / f"{module}.token"
            file.touch(mode=0o600)
            file.write_text(token)
            settings = {**settings, TOKEN_FILE_ENV: str(file)}
        return Program(module, self.folder, settings, arguments)

    def _see(self, **changes: object) -> None:
        self._state = replace(self._state, **changes)  # type: ignore[arg-type]
        self.around.changed()


def _ended(running: Container, code: int, at: float | None, words: str = "") -> Container:
    return replace(
        running,
        phase=ContainerPhase.TERMINATED,
        exit_code=code,
        finished_at=at,
        message=words,
    )


def _message(file: Path) -> WorldMessage | None:
    try:
        return WorldMessage.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


def _last_words(log: Path) -> str:
    """Return the last line of a log, which tells why a program ended."""
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][-_LAST_WORDS:] if lines else ""
