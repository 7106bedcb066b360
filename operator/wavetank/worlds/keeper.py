"""The end of a session: by close, at the deadline, or by a signal; whichever comes first seals."""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from wavetank.api.wire import SessionEnd, WorldMessage
from wavetank.worlds.session import Session, State

_REPORT_SECONDS = 10.0
"""How long sealing at the deadline waits for the wrapper's report: it ends the agent at the same
moment, 5 s later by force. The state is already fixed."""


@dataclass(frozen=True)
class Report:
    """What the wrapper says at close."""

    reason: str
    final_answer: str | None = None
    exit_code: int | None = None
    log: str = ""
    """The end of the agent's output."""


@dataclass(frozen=True)
class Ended:
    """How a session ended."""

    end: SessionEnd
    report: Report


class Sealer(Protocol):
    """Fixes the end of a session somewhere."""

    async def seal(self, session: Session, ended: Ended) -> WorldMessage:
        """Keep the end state, and return the seal or why there is none."""
        ...

    async def keep_log(self, log: str) -> None:
        """Keep the agent's output if possible; a score never depends on it."""
        ...


class Keeper:
    """Ends one session once."""

    def __init__(self, session: Session, sealer: Sealer) -> None:
        self.session = session
        self._sealer = sealer
        self._report: Report | None = None
        self._no_more_reports = asyncio.Event()
        self._sealing: asyncio.Task[WorldMessage] | None = None

    def start(self) -> None:
        """Start the session and its deadline; do nothing when it is started."""
        if self.session.state is not State.READY:
            return
        self.session.start()
        if seconds := self.session.opening.deadline_seconds:
            loop = asyncio.get_running_loop()
            loop.call_later(seconds, lambda: self._end(SessionEnd.DEADLINE))

    async def close(self, report: Report, wait_seconds: float) -> WorldMessage | None:
        """End the session and wait until it is sealed.

        Returns:
            The seal or why there is none; None when sealing goes on after ``wait_seconds``.
        """
        if self._report is None:
            self._report = report
            self._no_more_reports.set()
        sealing = self._end(SessionEnd.CLOSED)
        done, _ = await asyncio.wait({sealing}, timeout=wait_seconds)
        if not done:
            return None
        if report.log:
            await self._sealer.keep_log(report.log)
        return sealing.result()

    async def interrupt(self) -> WorldMessage:
        """End the session, if nothing else has, because this process is told to stop."""
        self._no_more_reports.set()
        return await asyncio.shield(self._end(SessionEnd.INTERRUPTED))

    def _end(self, end: SessionEnd) -> "asyncio.Task[WorldMessage]":
        if self._sealing is None:
            self._sealing = asyncio.create_task(self._seal(end))
        return self._sealing

    async def _seal(self, end: SessionEnd) -> WorldMessage:
        await self.session.stop()
        if end is SessionEnd.DEADLINE:
            waiting = asyncio.ensure_future(self._no_more_reports.wait())
            await asyncio.wait({waiting}, timeout=_REPORT_SECONDS)
            waiting.cancel()
        report = self._report or Report(str(end))
        return await self._sealer.seal(self.session, Ended(end, report))
