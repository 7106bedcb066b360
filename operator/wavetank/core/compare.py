"""Whether one Run did better than another: per task, over the tasks that both have. Pure.

Two means whose intervals overlap may still differ for sure, since hard tasks are hard for both:
so intervals are never compared, only the differences of the same tasks.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wavetank.core import statistics


@dataclass(frozen=True)
class TaskMean:
    """One task of one Run."""

    id: str
    mean: float | None
    """Of its scored rollouts; None when none is scored."""
    groups: tuple[tuple[str, str], ...] = ()
    """What it has in common with others, as (by, name): ``("category", "billing")``."""


@dataclass(frozen=True)
class Difference:
    """The mean over tasks of ``b - a``, and how far to trust it."""

    n: int
    """Tasks that it rests on."""
    mean: float | None
    """None of no tasks."""
    standard_error: float | None
    """``sd / sqrt(n)``; None of fewer than two tasks."""
    low: float | None
    high: float | None
    """Ends of the 95 % interval ``mean +- t(n - 1) sd / sqrt(n)``; None of fewer than two tasks."""
    better: int
    """Tasks in which b is above a."""
    worse: int


@dataclass(frozen=True)
class TaskDifference:
    """One task that both Runs have a score of."""

    id: str
    a: float
    b: float

    @property
    def difference(self) -> float:
        """Return ``b - a``; exactly 0 where they differ by rounding only."""
        found = self.b - self.a
        return 0.0 if abs(found) <= statistics.EPSILON else found


@dataclass(frozen=True)
class GroupDifference:
    """The tasks that share a category, a difficulty or a tag."""

    by: str
    name: str
    difference: Difference


@dataclass(frozen=True)
class LeftOut:
    """Tasks that say nothing about the difference, and why: ids in the order of their Run."""

    only_in_a: tuple[str, ...] = ()
    only_in_b: tuple[str, ...] = ()
    unscored_in_a: tuple[str, ...] = ()
    """In both Runs, but without a score in a; may be without one in b too."""
    unscored_in_b: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Two Runs, side by side."""

    overall: Difference
    tasks: tuple[TaskDifference, ...]
    """In the order of a."""
    groups: tuple[GroupDifference, ...]
    left_out: LeftOut


def compare(a: Sequence[TaskMean], b: Sequence[TaskMean]) -> Comparison:
    """Return how b differs from a, over the tasks that both have scored.

    Args:
        a: Every planned task of the one Run; its groups are the ones that count.
        b: Likewise of the other.
    """
    of_b = {task.id: task for task in b}
    ids_of_a = {task.id for task in a}
    common = [(task, of_b[task.id]) for task in a if task.id in of_b]
    paired = [
        (task, TaskDifference(task.id, task.mean, other.mean))
        for task, other in common
        if task.mean is not None and other.mean is not None
    ]
    return Comparison(
        overall=_difference([pair for _, pair in paired]),
        tasks=tuple(pair for _, pair in paired),
        groups=_groups(paired),
        left_out=LeftOut(
            only_in_a=tuple(task.id for task in a if task.id not in of_b),
            only_in_b=tuple(task.id for task in b if task.id not in ids_of_a),
            unscored_in_a=tuple(task.id for task, _ in common if task.mean is None),
            unscored_in_b=tuple(other.id for _, other in common if other.mean is None),
        ),
    )


def _groups(paired: Iterable[tuple[TaskMean, TaskDifference]]) -> tuple[GroupDifference, ...]:
    members: dict[tuple[str, str], list[TaskDifference]] = {}
    for task, pair in paired:
        for group in task.groups:
            members.setdefault(group, []).append(pair)
    return tuple(
        GroupDifference(by, name, _difference(pairs))
        for (by, name), pairs in _in_order(members).items()
    )


def _in_order(
    members: Mapping[tuple[str, str], list[TaskDifference]],
) -> Mapping[tuple[str, str], list[TaskDifference]]:
    """Return the groups as results list them: the kinds as they come, each by name."""
    kinds = list(dict.fromkeys(by for by, _ in members))
    return dict(sorted(members.items(), key=lambda item: (kinds.index(item[0][0]), item[0][1])))


def _difference(pairs: Sequence[TaskDifference]) -> Difference:
    values = [pair.difference for pair in pairs]
    mean, error = statistics.mean(values), statistics.standard_error(values)
    half = None if error is None else t_quantile95(len(values) - 1) * error
    return Difference(
        n=len(values),
        mean=mean,
        standard_error=error,
        low=None if mean is None or half is None else mean - half,
        high=None if mean is None or half is None else mean + half,
        better=sum(value > 0 for value in values),
        worse=sum(value < 0 for value in values),
    )


def t_quantile95(freedom: int) -> float:
    """Return t with ``P(|T| < t) = 0.95`` for Student's t with so many degrees of freedom.

    Found by bisection on the closed form for whole degrees of freedom: Abramowitz and Stegun,
    https://personal.math.ubc.ca/~cbm/aands/page_948.htm, 26.7.3 and 26.7.4.

    Args:
        freedom: At least 1.

    >>> round(t_quantile95(1), 3), round(t_quantile95(4), 3), round(t_quantile95(30), 3)
    (12.706, 2.776, 2.042)
    """
    if freedom < 1:
        raise ValueError(f"there are {freedom} degrees of freedom: it takes at least 1")
    low, high = 0.0, math.pi / 2
    while high - low > 1e-15:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _within(middle, freedom) < 0.95:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(low)


def _within(angle: float, freedom: int) -> float:
    """Return ``P(|T| < sqrt(freedom) tan(angle))``."""
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2 == 1
    if freedom == 1:
        return 2 * angle / math.pi
    # The terms of the series: each is the one before, times cos^2 and a growing fraction.
    term = cosine if is_odd else 1.0
    terms = [term]
    for step in range(3 if is_odd else 2, freedom - 1, 2):
        term *= cosine * cosine * (step - 1) / step
        terms.append(term)
    total = sine * math.fsum(terms)
    return 2 / math.pi * (angle + total) if is_odd else total
