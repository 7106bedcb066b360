"""How fast and how often the API server is asked."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import random


class TokenBucket:
    """Spaces out requests: ``rate`` a second, after a burst of ``burst``.

    Those who wait are served in the order in which they came. It belongs to one event loop.
    """

    def __init__(self, rate: float, burst: int) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError(f"rate {rate} and burst {burst} must be positive")
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._at: float | None = None

    async def take(self) -> float:
        """Wait for a turn and return for how many seconds it was waited."""
        now = asyncio.get_running_loop().time()
        if self._at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        # Debt: each comer takes a token at once and sleeps until it would have been there.
        self._tokens -= 1
        wait = max(0.0, -self._tokens / self._rate)
        if wait:
            await asyncio.sleep(wait)
        return wait


@dataclass(frozen=True)
class Backoff:
    """Growing delays between tries, each drawn from the upper half of its range."""

    first_seconds: float
    most_seconds: float
    factor: float = 2.0

    def delay(self, failures: int, draw: Callable[[], float] = random) -> float:
        """Return the seconds to wait after the ``failures``-th failure in a row; from 1.

        >>> Backoff(1, 30).delay(3, draw=lambda: 1.0)
        4.0
        """
        # The exponent is capped so that a long outage cannot overflow.
        full = min(self.most_seconds, self.first_seconds * self.factor ** min(failures - 1, 64))
        return full * (0.5 + draw() / 2)
