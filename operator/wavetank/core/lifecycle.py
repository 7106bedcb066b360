"""The life of a rollout: its stages, and the only steps between them.

A stage is never stored: ``decide`` derives it anew from what is observed. The table exists so that
a step that should be impossible is noticed (``check_step``) instead of being explained away.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from wavetank.core.errors import BugError


class Stage(StrEnum):
    """Where a rollout stands."""

    PLANNED = "planned"
    """No attempt is under way: it waits for a slot, or for the back-off after a failed one."""
    STARTING = "starting"
    """Its Pod exists; the agent does not run yet."""
    ACTING = "acting"
    ENDED = "ended"
    """The end of its session is sealed and waits to be graded."""
    GRADING = "grading"
    RECORDED = "recorded"
    """Its record is in the ledger: scored, or unscored with a cause."""


TRANSITIONS: Mapping[Stage, frozenset[Stage]] = MappingProxyType(
    {
        Stage.PLANNED: frozenset({Stage.STARTING, Stage.RECORDED}),
        Stage.STARTING: frozenset({Stage.ACTING, Stage.PLANNED, Stage.RECORDED}),
        Stage.ACTING: frozenset({Stage.ENDED, Stage.PLANNED, Stage.RECORDED}),
        Stage.ENDED: frozenset({Stage.GRADING, Stage.RECORDED}),
        # Back to ended: the verifier Job gave no valid record, and there are tries left.
        Stage.GRADING: frozenset({Stage.ENDED, Stage.RECORDED}),
        Stage.RECORDED: frozenset(),
    }
)


def reachable(start: Stage) -> frozenset[Stage]:
    """Return every stage that may be seen after ``start``, itself included.

    Observation skips stages (a Pod may start and end between two looks), so what may be *seen*
    next is the transitive closure of the table, not one step.
    """
    seen = {start}
    todo = [start]
    while todo:
        for stage in TRANSITIONS[todo.pop()]:
            if stage not in seen:
                seen.add(stage)
                todo.append(stage)
    return frozenset(seen)


_REACHABLE = {stage: reachable(stage) for stage in Stage}


def check_step(ordinal: int, before: Stage, after: Stage) -> None:
    """Raise BugError when a rollout was seen to make a step that no path allows."""
    if after not in _REACHABLE[before]:
        raise BugError(
            f"rollout {ordinal}: it was {before} and is now {after}, which no path of the "
            f"life cycle allows. Report this with the Run's ledger."
        )
