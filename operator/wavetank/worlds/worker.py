"""The thread that tools run in, apart from the server: a tool that hangs stops no deadline."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

_T = TypeVar("_T")


class Worker:
    """A thread with an event loop of its own, for sync and async tools alike.

    It is a daemon: a tool that never returns does not keep the process alive.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="tools", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Start work in the thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        """End the thread once what it runs now has returned; what waits in it is cancelled."""
        if not self._is_stopped:
            self._is_stopped = True
            self._loop.call_soon_threadsafe(self._loop.stop)

    def join(self, seconds: float) -> None:
        """Wait for the end of the thread; a tool that hangs keeps it."""
        self._thread.join(seconds)

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(_cancel_others())
        self._loop.close()


async def _cancel_others() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
