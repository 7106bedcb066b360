"""The API server's clock, as far as its answers tell: its objects' moments are by that clock.

An operator whose own clock is ten minutes ahead would otherwise hold every new Pod for one that has
not started in time.
"""

from datetime import UTC
from email.utils import parsedate_to_datetime

_SLACK_SECONDS = 2.0
"""An answer's Date has whole seconds, and it was on its way: a smaller difference says nothing."""


class ServerClock:
    """Goes on by itself between answers, on a clock that nobody sets."""

    def __init__(self) -> None:
        self._ahead: float | None = None

    def hear(self, date: str | None, at: float) -> None:
        """Take the Date of an answer.

        Args:
            date: The header; None when the answer (of a proxy in between) has none.
            at: When it came: seconds on a monotonic clock.
        """
        try:
            moment = parsedate_to_datetime(date or "")
        except ValueError:
            return
        # Between the second that it names and the next one.
        ahead = moment.replace(tzinfo=UTC).timestamp() + 0.5 - at
        if self._ahead is None or abs(ahead - self._ahead) > _SLACK_SECONDS:
            self._ahead = ahead

    def read(self, at: float) -> float | None:
        """Return the server's moment in seconds since the epoch; None before any answer.

        Args:
            at: Now, on the same monotonic clock.

        >>> clock = ServerClock()
        >>> clock.hear("Thu, 01 Jan 1970 00:01:00 GMT", at=1000.0)
        >>> clock.read(at=1005.0)
        65.5
        """
        return None if self._ahead is None else at + self._ahead
