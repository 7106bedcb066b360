"""An object's conditions: what is true now, with the moments at which that last changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from wavetank.api.fields import Condition, ConditionStatus, clip


@dataclass(frozen=True)
class Says:
    """What is to be said by one condition."""

    type: str
    status: bool | None
    """None is Kubernetes' ``Unknown``."""
    reason: str
    message: str = ""


def merged(
    old: Sequence[Condition], new: Sequence[Says], generation: int, now: str
) -> tuple[Condition, ...]:
    """Return the conditions to write.

    Args:
        old: What the object's status holds: a moment is kept where the status did not change.
        new: Every condition that the object should have.
        generation: Of the spec that this is said of.
        now: RFC 3339 of this moment.
    """
    before = {condition.type: condition for condition in old}
    conditions = []
    for says in new:
        status = _STATUS[says.status]
        known = before.get(says.type)
        same = known is not None and known.status is status
        conditions.append(
            Condition(
                type=says.type,
                status=status,
                observed_generation=generation,
                last_transition_time=known.last_transition_time if known and same else now,
                reason=says.reason,
                message=clip(says.message),
            )
        )
    return tuple(conditions)


def is_true(conditions: Sequence[Condition], condition_type: str) -> bool:
    """Tell whether a condition is there and True."""
    return any(c.type == condition_type and c.status is ConditionStatus.TRUE for c in conditions)


_STATUS = {
    True: ConditionStatus.TRUE,
    False: ConditionStatus.FALSE,
    None: ConditionStatus.UNKNOWN,
}
