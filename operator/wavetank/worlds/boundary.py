"""The border to people's code: whatever escapes it becomes a value here, and only here."""

import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True)
class Escaped:
    """An exception that left people's code."""

    error: BaseException

    @property
    def last_line(self) -> str:
        """The traceback's last line: kind and message."""
        return traceback.format_exception_only(self.error)[-1].strip()

    @property
    def whole(self) -> str:
        """The traceback."""
        return "".join(traceback.format_exception(self.error))


@dataclass(frozen=True)
class Returned(Generic[_T]):
    """What people's code returned."""

    value: _T


def guarded(function: Callable[[], _T]) -> Returned[_T] | Escaped:
    """Call people's code; also ``sys.exit()`` in it ends just the call."""
    try:
        return Returned(function())
    except BaseException as error:  # noqa: BLE001 - the border
        return Escaped(error)


async def guarded_async(function: Callable[[], Awaitable[_T]]) -> Returned[_T] | Escaped:
    """Call and await people's code."""
    try:
        return Returned(await function())
    except BaseException as error:  # noqa: BLE001 - the border
        return Escaped(error)
