"""Whether a further attempt may follow a failed one, and how long it waits."""

from collections.abc import Sequence

from wavetank.core.causes import RULES, Retry
from wavetank.core.observed import Failure

BACKOFF_SECONDS = 2.0
"""Before the second attempt; doubles with each further one."""

MAX_BACKOFF_SECONDS = 60.0


def may_try_again(failures: Sequence[Failure], max_attempts: int) -> bool:
    """Tell whether a rollout with these failed attempts gets another one.

    Args:
        failures: All failed attempts of the rollout in this generation, oldest first; not empty.
        max_attempts: Attempts in all, the first included; at least 1.
    """
    if len(failures) >= max_attempts:
        return False
    last = RULES[failures[-1].cause].retry
    if last is Retry.NEVER:
        return False
    once = [failure for failure in failures if RULES[failure.cause].retry is Retry.ONCE]
    return last is not Retry.ONCE or len(once) <= 1


def not_before(failures: Sequence[Failure]) -> float:
    """Return the moment before which the next attempt must not start; 0.0 without failures."""
    if not failures:
        return 0.0
    wait = min(BACKOFF_SECONDS * 2.0 ** (len(failures) - 1), MAX_BACKOFF_SECONDS)
    return failures[-1].at + wait
