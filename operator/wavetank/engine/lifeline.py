"""``python -m wavetank.engine.lifeline``: ends the processes of an engine that died.

The engine tells on its standard input which process groups it has started (``+123``) and seen to
their end (``-123``). At the end of the input the engine is gone, whichever way: what is left of
its processes is told to stop, and killed if it does not. Only the standard library.
"""

import os
import signal
import sys
import time
from contextlib import suppress

GRACE_SECONDS = 7.0
"""The agents' wrapper gives its agent 5 s to end, and then kills it."""
_LOOK_SECONDS = 0.05


def main() -> int:
    """Wait for the engine's end; return the exit code."""
    groups: set[int] = set()
    for line in sys.stdin:
        number = int(line[1:])
        if line.startswith("+"):
            groups.add(number)
        else:
            groups.discard(number)
    end(groups)
    return 0


def end(groups: set[int]) -> None:
    """End process groups: SIGTERM, and SIGKILL to what is left of them."""
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGTERM)
    last = time.monotonic() + GRACE_SECONDS
    while any(_is_there(group) for group in groups) and time.monotonic() < last:
        time.sleep(_LOOK_SECONDS)
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
