"""Kubernetes conditions as frozen values, and the merge that keeps their transition times."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Condition:
    """One condition: a statement about an object, with its reason and a sentence for people."""

    type: str
    status: bool | None
    """None is Kubernetes' ``Unknown``."""
    reason: str
    """CamelCase, stable: what programs look at."""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""
    """RFC 3339; set by ``merge``."""


def merge(old: Iterable[Condition], new: Sequence[Condition], now: str) -> list[Condition]:
    """Return ``new`` with the transition time of ``old`` wherever the status is unchanged.

    Args:
        old: What the object's status holds.
        new: What is true now; every condition that the object should have.
        now: RFC 3339 of this moment, used where the status changed.
    """
    before = {condition.type: condition for condition in old}
    merged = []
    for condition in new:
        known = before.get(condition.type)
        same = known is not None and known.status is condition.status
        moment = known.last_transition_time if known is not None and same else now
        merged.append(replace(condition, last_transition_time=moment or now))
    return merged
