"""An event loop whose clock jumps: minutes of waiting cost nothing, and come out exact."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits for nothing but the clock; sockets do not work in it."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: the time that it was asked to wait is added to the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("nothing will ever happen: every task waits for an event")
            self.now += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now
