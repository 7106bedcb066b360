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
        threading.Thread(target=self._run, name="tools", daemon=True).start()

    def submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Start work in the thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        """End the thread once what it runs now has returned; what waits in it is cancelled."""
        if not self._is_stopped:
            self._is_stopped = True
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self) -> None:
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()
