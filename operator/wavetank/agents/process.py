"""The agent's processes: started in a group of their own, watched, and ended without a rest."""

import math
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence

_TAIL_BYTES = 256 * 1024
"""Of the agent's output that goes into the evidence."""
_CHUNK = 64 * 1024
_DRAIN_SECONDS = 1.0
_KILL_AFTER_SECONDS = 5.0
"""From SIGTERM to SIGKILL: time to write a final answer."""
_LONGEST_WAIT_SECONDS = 3600.0
"""What ``sigtimedwait`` takes is bounded; it is simply called again."""
WATCHED = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGINT})
_IGNORED_AT_TIMES = (
    *(signal.SIGPIPE, signal.SIGXFSZ),
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT),
)
"""By Python itself, by nohup and by a shell's ``&``; a program inherits what is ignored."""


class Output:
    """Passes the agent's output on and keeps its end."""

    def __init__(self) -> None:
        self._tail = bytearray()
        self._source, self.target = os.pipe()
        self._thread = threading.Thread(target=self._copy, name="output", daemon=True)

    def start(self) -> None:
        """Start reading; the agent holds the only other end."""
        os.close(self.target)
        self._thread.start()

    def text(self) -> str:
        """Return the end of what the agent printed, once its processes are gone."""
        self._thread.join(_DRAIN_SECONDS)
        return bytes(self._tail).decode(errors="replace")

    def _copy(self) -> None:
        while data := os.read(self._source, _CHUNK):
            self._tail += data
            del self._tail[:-_TAIL_BYTES]
            try:
                os.write(1, data)
            except OSError:  # nobody reads our own output: the evidence still does
                continue


class Agent:
    """The agent's process and whatever it starts.

    Make it with the signals of ``WATCHED`` blocked; ``wait`` takes them.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], is_init: bool
    ) -> None:
        """Start the agent.

        Raises:
            OSError: When there is no such program, or it cannot be run.
        """
        self.output = Output()
        target = self.output.target
        self._is_init = is_init
        try:
            self._pid = os.posix_spawnp(
                command[0],
                list(command),
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, target, 1),
                    (os.POSIX_SPAWN_DUP2, target, 2),
                ],
                setpgroup=0,
                setsigmask=(),
                setsigdef=_IGNORED_AT_TIMES,
            )
        finally:
            self.output.start()
        self.exit_code: int | None = None
        """Of the agent's own process, 128 + number for a signal; None while it runs."""

    def wait(self, until: float) -> signal.Signals | None:
        """Wait for the agent's own process, reaping all others that end.

        Args:
            until: A moment of ``time.monotonic()``.

        Returns:
            The signal that this process got meanwhile, or None at the end or the deadline.
        """
        while self.exit_code is None:
            left = until - time.monotonic()
            if left <= 0:
                return None
            got = signal.sigtimedwait(WATCHED, min(left, _LONGEST_WAIT_SECONDS))
            if got is not None and got.si_signo != signal.SIGCHLD:
                return signal.Signals(got.si_signo)
            self._reap()
        return None

    def end(self) -> None:
        """End every process of the agent: SIGTERM, and SIGKILL to what is left of it."""
        if self.exit_code is None:
            self._signal(signal.SIGTERM)
            self._settle(time.monotonic() + _KILL_AFTER_SECONDS)
        self._signal(signal.SIGKILL)
        # SIGKILL cannot be ignored: the agent's own process is sure to come.
        self._settle(math.inf)
        self._reap()

    def _settle(self, until: float) -> None:
        """Wait for the agent's own process, whatever this one is told meanwhile."""
        while self.wait(until) is not None:
            continue

    def _signal(self, number: signal.Signals) -> None:
        # As process 1, -1 means everything else in the container: also what left the group.
        try:
            if self._is_init:
                os.kill(-1, number)
            else:
                os.killpg(self._pid, number)
        except (ProcessLookupError, PermissionError):
            return  # nothing is left

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._pid:
                code = os.waitstatus_to_exitcode(status)
                self.exit_code = code if code >= 0 else 128 - code
