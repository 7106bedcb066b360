"""From a Run's recorded rollouts to its figures.

Always recomputed from the whole ledger, never incremented, so that a restarted operator and the
command line arrive at the same numbers. The formulas are in ``statistics``, the values that go in
and come out in ``figures``.

A rollout without a reward is *unscored*: it has a count and causes of its own, moves the bounds,
and never counts as 0. A rollout that is planned and not yet recorded is neither.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from wavetank.core import statistics
from wavetank.core.figures import (
    DEFAULT_SCORING,
    Aggregate,
    CauseCount,
    Counts,
    Coverage,
    GroupRow,
    Interval,
    PassFigure,
    PlannedTask,
    RewardFigures,
    Sample,
    Scoring,
    TaskRow,
    VerifierMean,
)

COVERAGE_FLOOR = 0.8
"""Below this share of scored rollouts, or of tasks with one, there is no interval.

What is lost is seldom lost at random; an interval would claim to know more than was seen.
"""


@dataclass(frozen=True)
class _Task:
    """A planned task with its records and what is derived from them."""

    info: PlannedTask
    planned: int
    rewards: tuple[float, ...]
    passed: int
    samples: tuple[Sample, ...]

    @property
    def scored(self) -> int:
        return len(self.rewards)

    @property
    def missing(self) -> int:
        return self.planned - self.scored

    @property
    def unscored(self) -> int:
        return len(self.samples) - self.scored


def aggregate(
    tasks: Sequence[PlannedTask],
    k: int,
    samples: Iterable[Sample],
    scoring: Scoring = DEFAULT_SCORING,
) -> Aggregate:
    """Return the figures of a Run.

    Args:
        tasks: The plan's tasks in its order.
        k: Rollouts planned of each task.
        samples: What is recorded so far, in any order, at most one of each (task, rollout).
        scoring: The benchmark's pass threshold and range.

    Raises:
        ValueError: If a sample is not in the plan, comes twice, has both or neither of reward and
            cause, or a reward outside the range.
    """
    given = list(samples)
    _check(tasks, k, given, scoring)
    rows = _tasks(tasks, k, given, scoring)
    recorded = [sample for row in rows for sample in row.samples]
    return Aggregate(
        rollouts=Counts(
            planned=sum(row.planned for row in rows),
            scored=sum(row.scored for row in rows),
            unscored=sum(row.unscored for row in rows),
            attempts=sum(sample.attempts for sample in recorded),
        ),
        reward=_reward_figures(rows, scoring),
        zero_filled_mean=statistics.mean(
            [math.fsum(row.rewards) / len(row.samples) for row in rows if row.samples]
        ),
        pass_rate=_pass_rate(rows),
        coverage=_coverage(rows),
        pass_at_k=_pass_figures(statistics.pass_at_k, rows, k),
        pass_hat_k=_pass_figures(statistics.pass_hat_k, rows, k),
        tasks=tuple(_task_row(row) for row in rows),
        groups=(
            *_groups("category", rows, lambda task: (task.category,)),
            *_groups("difficulty", rows, lambda task: (task.difficulty,)),
            *_groups("tag", rows, lambda task: task.tags),
        ),
        unscored_by_cause=_causes(recorded),
    )


def passes(reward: float, pass_threshold: float) -> bool:
    """Tell whether a reward reaches the threshold, rounding forgiven.

    >>> passes(0.1 + 0.2, 0.3), passes(0.1 * 3 - 0.0001, 0.3)
    (True, False)
    """
    return reward >= pass_threshold - statistics.EPSILON


def ks_of(k: int) -> tuple[int, ...]:
    """Return the k for which pass@k and pass^k are given: powers of two, and k itself.

    >>> ks_of(3), ks_of(10)
    ((1, 2, 3), (1, 2, 4, 8, 10))
    """
    powers = [1 << exponent for exponent in range(k.bit_length())]
    return tuple(sorted({*powers, k})) if k > 0 else ()


def _check(
    tasks: Sequence[PlannedTask], k: int, samples: Sequence[Sample], scoring: Scoring
) -> None:
    known = {task.id for task in tasks}
    if len(known) != len(tasks):
        raise ValueError("the plan names a task twice")
    seen = Counter((sample.task, sample.rollout) for sample in samples)
    for sample in samples:
        where = f"rollout {sample.rollout} of task {sample.task!r}"
        if sample.task not in known or not 0 <= sample.rollout < k:
            raise ValueError(f"{where} is not in the plan of {len(tasks)} tasks with k={k}")
        if seen[sample.task, sample.rollout] > 1:
            raise ValueError(f"{where} is given {seen[sample.task, sample.rollout]} times")
        if (sample.reward is None) == (sample.cause is None):
            raise ValueError(f"{where} needs either a reward or a cause")
        if sample.reward is not None and not (
            scoring.range_min <= sample.reward <= scoring.range_max
        ):
            raise ValueError(
                f"{where} has reward {sample.reward}, outside "
                f"{scoring.range_min}..{scoring.range_max}"
            )


def _tasks(
    tasks: Sequence[PlannedTask], k: int, samples: Sequence[Sample], scoring: Scoring
) -> list[_Task]:
    by_task: dict[str, list[Sample]] = {task.id: [] for task in tasks}
    for sample in sorted(samples, key=lambda sample: sample.rollout):
        by_task[sample.task].append(sample)
    rows = []
    for task in tasks:
        rewards = tuple(s.reward for s in by_task[task.id] if s.reward is not None)
        passed = sum(passes(reward, scoring.pass_threshold) for reward in rewards)
        rows.append(_Task(task, k, rewards, passed, tuple(by_task[task.id])))
    return rows


def _reward_figures(rows: Sequence[_Task], scoring: Scoring) -> RewardFigures:
    scored = [row for row in rows if row.rewards]
    means = [math.fsum(row.rewards) / row.scored for row in scored]
    low, high = (
        statistics.mean([(math.fsum(r.rewards) + r.missing * end) / r.planned for r in rows])
        for end in (scoring.range_min, scoring.range_max)
    )
    return RewardFigures(
        mean=statistics.mean(means),
        standard_error=statistics.standard_error(means),
        rerun_error=statistics.rerun_error([row.rewards for row in scored]),
        interval95=_interval(means, scoring) if _is_covered(_coverage(rows)) else None,
        lower_bound=low,
        upper_bound=high,
        tasks_scored=len(scored),
    )


def _interval(means: Sequence[float], scoring: Scoring) -> Interval | None:
    width = scoring.range_max - scoring.range_min
    if width <= 0:
        return None
    ends = statistics.interval95([(mean - scoring.range_min) / width for mean in means])
    if ends is None:
        return None
    return Interval(*(scoring.range_min + end * width for end in ends))


def _coverage(rows: Sequence[_Task]) -> Coverage:
    if not rows:
        return Coverage(rollouts=None, tasks=None)
    return Coverage(
        rollouts=sum(row.scored for row in rows) / sum(row.planned for row in rows),
        tasks=sum(1 for row in rows if row.rewards) / len(rows),
    )


def _is_covered(coverage: Coverage) -> bool:
    shares = (coverage.rollouts, coverage.tasks)
    return all(share is not None and share >= COVERAGE_FLOOR for share in shares)


def _pass_rate(rows: Sequence[_Task]) -> float | None:
    return statistics.mean([row.passed / row.scored for row in rows if row.rewards])


def _pass_figures(
    estimate: Callable[[int, int, int], float | None], rows: Sequence[_Task], k: int
) -> tuple[PassFigure, ...]:
    figures = []
    for draws in ks_of(k):
        used = _defined(estimate(row.passed, row.scored, draws) for row in rows)
        low = _defined(estimate(row.passed, row.planned, draws) for row in rows)
        high = _defined(estimate(row.passed + row.missing, row.planned, draws) for row in rows)
        figures.append(
            PassFigure(
                k=draws,
                value=statistics.mean(used),
                tasks_used=len(used),
                low=statistics.mean(low),
                high=statistics.mean(high),
            )
        )
    return tuple(figures)


def _defined(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _task_row(row: _Task) -> TaskRow:
    return TaskRow(
        id=row.info.id,
        category=row.info.category,
        difficulty=row.info.difficulty,
        mean=statistics.mean(row.rewards),
        pass_rate=_pass_rate([row]),
        scored=row.scored,
        unscored=row.unscored,
        by_verifier=_by_verifier(row.samples),
    )


def _by_verifier(samples: Sequence[Sample]) -> tuple[VerifierMean, ...]:
    numbers: dict[str, list[float]] = {}
    for sample in samples:
        for name, score in sample.scores:
            given = numbers.setdefault(name, [])
            if score is not None:
                given.append(score)
    return tuple(
        VerifierMean(name, statistics.mean(given), len(given)) for name, given in numbers.items()
    )


def _groups(
    by: str, rows: Sequence[_Task], names_of: Callable[[PlannedTask], Iterable[str | None]]
) -> tuple[GroupRow, ...]:
    members: dict[str, list[_Task]] = {}
    for row in rows:
        for name in names_of(row.info):
            if name is not None:
                members.setdefault(name, []).append(row)
    return tuple(
        GroupRow(
            by=by,
            name=name,
            mean=statistics.mean([math.fsum(r.rewards) / r.scored for r in group if r.rewards]),
            pass_rate=_pass_rate(group),
            scored=sum(row.scored for row in group),
            unscored=sum(row.unscored for row in group),
        )
        for name, group in sorted(members.items())
    )


def _causes(samples: Iterable[Sample]) -> tuple[CauseCount, ...]:
    counts = Counter(sample.cause for sample in samples if sample.cause is not None)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(CauseCount(cause, count) for cause, count in ordered)
