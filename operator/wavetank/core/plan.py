"""Which tasks a Run takes, in which order, and the seed of each rollout."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Selection:
    """What a Run says about the tasks it wants (``spec.tasks``)."""

    include: tuple[str, ...] = ()
    """Glob patterns; empty means all."""
    exclude: tuple[str, ...] = ()
    limit: int | None = None
    seed: int | None = None
    """With ``limit``: which tasks are drawn; without a seed the first ones are taken."""


def select(task_ids: Sequence[str], selection: Selection) -> list[str]:
    """Return the tasks to run, in the benchmark's order.

    >>> select(["a1", "b1", "a2"], Selection(include=("a*",), limit=1))
    ['a1']
    """
    wanted = [
        task_id
        for task_id in task_ids
        if (not selection.include or _matches(task_id, selection.include))
        and not _matches(task_id, selection.exclude)
    ]
    if selection.limit is None or selection.limit >= len(wanted):
        return wanted
    drawn = wanted
    if selection.seed is not None:
        drawn = sorted(wanted, key=lambda task_id: _rank(task_id, selection.seed))
    kept = set(drawn[: selection.limit])
    return [task_id for task_id in wanted if task_id in kept]


def _matches(task_id: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(task_id, pattern) for pattern in patterns)


def _rank(task_id: str, seed: int | None) -> bytes:
    """Order tasks by a hash: the same seed draws the same tasks on every machine and version."""
    return hashlib.sha256(f"{seed}:{task_id}".encode()).digest()


def rollout_seed(task_id: str, rollout: int, seed: int = 0) -> int:
    """Return the seed of ``World.random``: equal in every Run with the same ``spec.tasks.seed``.

    So two Runs compare like with like, and a repeated rollout meets the same world.

    >>> rollout_seed("close_ticket", 0) == rollout_seed("close_ticket", 0, seed=0)
    True
    """
    digest = hashlib.sha256(f"{seed}/{task_id}/{rollout}".encode()).digest()
    return int.from_bytes(digest[:4], "big")
