"""Runs work that may never end, eat memory or crash in a child process, and tells how it ended.

The child is forked from the warm parent, so it costs a few milliseconds and imports nothing. It
holds nothing of the parent's open files, may write no file, dump no core, and has limited memory
and time. What it wants to tell it sends line by line; what it sent before it died counts.
"""

import gc
import os
import resource
import select
import signal
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import StrEnum

Send = Callable[[bytes], None]
"""Sends one line to the parent; the line holds no newline."""

_MIB = 1024 * 1024
_LOOK_SECONDS = 0.05
"""Between two looks at a silent child's clock."""
_LINE_LIMIT = 4 * _MIB
"""A child that sends a longer line has lost its mind: nobody holds more of it in memory."""


@dataclass(frozen=True)
class Limits:
    """What a child may use."""

    seconds: float
    """CPU time between two lines; then it is killed."""
    wall_seconds: float
    """The same by the clock on the wall, for one that waits or for a busy node."""
    address_space_mib: int = 448
    """Of the whole process, with what it shares with its parent: below the container's memory, so
    that the child fails and not the container."""
    sqlite_heap_mib: int = 192
    """Of SQLite alone: reached first, it is an error that can be told. It holds the largest state,
    ``tables.STATE_BYTES``, and what one statement needs on top."""
    file_mib: int = 0
    """Of any file it writes."""
    open_files: int = 64


class How(StrEnum):
    """How a child ended."""

    DONE = "done"
    """It returned."""
    SILENT = "silent"
    """It was killed: no line came in the time it had."""
    KILLED = "killed"
    """Somebody else killed it (SIGKILL): the kernel for want of memory in the container, or a
    person. It says nothing about what ran in it."""
    CRASHED = "crashed"
    """It ended by another signal, or by an exit of its own."""


@dataclass(frozen=True)
class Ending:
    """How a child ended, and in words."""

    how: How
    words: str = ""


class Child:
    """One piece of work in a child process: iterate over its lines, then look at ``ending``."""

    def __init__(self, work: Callable[[Send], None], limits: Limits) -> None:
        self._limits = limits
        self.ending: Ending | None = None
        """None until the lines are at their end."""
        self._read, write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _live(work, limits, write)
        os.close(write)

    def __iter__(self) -> Generator[bytes, None, None]:
        """Yield the lines until the child ended; it is certainly gone afterwards."""
        silent = True
        try:
            buffer = b""
            is_over = self._time_is_up()
            while part := self._receive(is_over):
                *lines, buffer = (buffer + part).split(b"\n")
                yield from lines
                if lines:
                    is_over = self._time_is_up()
                elif is_over():  # a part of a line is no line: it could come byte by byte for ever
                    part = None
                    break
                if len(buffer) > _LINE_LIMIT:
                    break
            silent = part is None
        finally:
            self._end(silent=silent)

    def _time_is_up(self) -> Callable[[], bool]:
        """Return what tells whether the time for a line that starts now is over."""
        cpu_end = _cpu_seconds(self._pid) + self._limits.seconds
        wall_end = time.monotonic() + self._limits.wall_seconds
        return lambda: _cpu_seconds(self._pid) > cpu_end or time.monotonic() > wall_end

    def _receive(self, is_over: Callable[[], bool]) -> bytes | None:
        """Return some bytes, none at the end, None when its time is up."""
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        while not poll.poll(_LOOK_SECONDS * 1000):
            if is_over():
                return None
        return os.read(self._read, 65536)

    def _end(self, *, silent: bool) -> None:
        os.close(self._read)
        ended = not silent and _has_ended(self._pid, 1.0)
        # The group first: whatever it started must not outlive it. It is no zombie's yet, so its
        # number cannot be another's.
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                kill(self._pid, signal.SIGKILL)
        _, status = os.waitpid(self._pid, 0)
        if ended:
            self.ending = _ending(status)
        else:
            words = f"nothing came from it for {self._limits.seconds:g} s"
            self.ending = Ending(How.SILENT, words)


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a child, also of one that has just ended; 0 where nobody can tell."""
    # How the kernel numbers the CPU clock of a process: MAKE_PROCESS_CPUCLOCK and CPUCLOCK_SCHED
    # in https://git.kernel.org/torvalds/c/v6.6/source/include/linux/posix-timers.h
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def _has_ended(pid: int, seconds: float) -> bool:
    """Return whether a child ends within a time; it stays to be waited for."""
    end = time.monotonic() + seconds
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > end:
            return False
        time.sleep(0.0005)
    return True


def _ending(status: int) -> Ending:
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return Ending(How.DONE)
    if code == -signal.SIGKILL:
        return Ending(How.KILLED, "it was killed")
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return Ending(How.CRASHED, f"its process ended by {how}")


def _live(work: Callable[[Send], None], limits: Limits, write: int) -> None:
    """Be the child; never returns."""
    code = 1
    try:
        gc.disable()  # it would touch, and so copy, every page that is the parent's too
        os.setpgid(0, 0)
        # The parent's lock among them: it must be free as soon as the parent is dead.
        os.closerange(3, write)
        os.closerange(write + 1, os.sysconf("SC_OPEN_MAX"))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        _limit(limits)
        work(lambda line: _send_all(write, line + b"\n"))
        code = 0
    except BaseException:  # noqa: BLE001 - a child has nobody above it: its exit code tells
        code = 1
    finally:
        os._exit(code)


def _limit(limits: Limits) -> None:
    memory = limits.address_space_mib * _MIB
    for kind, soft, hard in (
        (resource.RLIMIT_AS, memory, memory),
        (resource.RLIMIT_FSIZE, limits.file_mib * _MIB, limits.file_mib * _MIB),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NOFILE, limits.open_files, limits.open_files),
    ):
        _, ceiling = resource.getrlimit(kind)
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.setrlimit(kind, (soft, hard))
    with closing(sqlite3.connect(":memory:")) as database:
        # Of the process, not of this connection: https://sqlite.org/c3ref/hard_heap_limit64.html
        database.execute(f"PRAGMA hard_heap_limit = {limits.sqlite_heap_mib * _MIB}")


def _send_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
