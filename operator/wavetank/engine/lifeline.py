"""``python -m wavetank.engine.lifeline``: ends the processes of an engine that died.

The engine tells on its standard input which processes it has started (``+123``) and seen to their
end (``-123``); each leads a session of its own. At the end of the input the engine is gone,
whichever way: what is left of its processes is told to stop, and killed if it does not. Only the
standard library.
"""

import os
import signal
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

GRACE_SECONDS = 7.0
"""The agents' wrapper gives its agent 5 s to end, and then kills it."""
_LOOK_SECONDS = 0.05


def main() -> int:
    """Wait for the engine's end; return the exit code."""
    leaders: set[int] = set()
    for line in sys.stdin:
        number = int(line[1:])
        if line.startswith("+"):
            leaders.add(number)
        else:
            leaders.discard(number)
    _end(leaders)
    return 0


def _end(leaders: Collection[int]) -> None:
    """End sessions: SIGTERM, and SIGKILL to what is left of them."""
    last = time.monotonic() + GRACE_SECONDS
    send(leaders, signal.SIGTERM)
    while members(leaders) and time.monotonic() < last:
        time.sleep(_LOOK_SECONDS)
    send(leaders, signal.SIGKILL)


def send(leaders: Collection[int], number: signal.Signals) -> None:
    """Send a signal to all processes of sessions: a child may have left its leader's group."""
    for leader in leaders:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)
    send_each(members(leaders), number)


def send_each(pids: Collection[int], number: signal.Signals) -> None:
    """Send a signal to processes that may just have gone."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def members(leaders: Collection[int]) -> list[int]:
    """Return the living processes of sessions; none where there is no /proc to tell."""
    if not leaders:
        return []
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            # pid (name) state parent group session: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
            state, _, _, session = (place / "stat").read_text().rpartition(") ")[2].split()[:4]
        except (OSError, ValueError):
            continue  # it has just gone
        if int(session) in leaders and state not in "ZX":
            found.append(int(place.name))
    return found


if __name__ == "__main__":
    sys.exit(main())
