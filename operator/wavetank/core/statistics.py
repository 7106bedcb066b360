"""The closed forms behind a Run's figures: small functions of numbers, each with its source.

``aggregate`` calls them; they know nothing of Runs, tasks or causes. What is undefined is None,
never 0: a standard error of one task is unknown, not nothing.
"""

import math
from collections.abc import Sequence

Z95 = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""

EPSILON = 1e-9
"""Rewards closer than this are one and the same: they differ by rounding, not by measurement."""


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, or None of no values. The order of the values never matters.

    >>> mean([0.0, 1.0, 0.5])
    0.5
    """
    return math.fsum(values) / len(values) if values else None


def variance(values: Sequence[float]) -> float | None:
    """Return the sample variance (divisor n - 1), or None of fewer than two values.

    Values that differ by rounding only have a variance of exactly 0.

    >>> variance([0.0, 1.0])
    0.5
    """
    if len(values) < 2:
        return None
    if max(values) - min(values) <= EPSILON:
        return 0.0
    centre = math.fsum(values) / len(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)


def standard_error(means: Sequence[float]) -> float | None:
    """Return the standard error of the mean of the tasks' means, or None of fewer than two tasks.

    ``sqrt(sum((m_i - m)^2) / (T (T - 1)))``: tasks are the sample, so that rollouts of one task,
    which resemble each other, do not count as independent. With equally many rollouts per task it
    is the clustered standard error of Miller 2024, https://arxiv.org/abs/2411.00640, section 2.2,
    times ``sqrt(T / (T - 1))``.

    >>> standard_error([0.0, 1.0])
    0.5
    """
    spread = variance(means)
    return None if spread is None else math.sqrt(spread / len(means))


def rerun_error(rewards_by_task: Sequence[Sequence[float]]) -> float | None:
    """Return how much the mean would differ if the same tasks were run again.

    ``sqrt(sum(s_i^2 / n_i)) / T`` with the sample variance ``s_i^2`` within task i. None without
    tasks, or when a task has fewer than two rewards: its spread is not known.

    >>> rerun_error([[0.0, 1.0], [1.0, 1.0]])
    0.25
    """
    if not rewards_by_task:
        return None
    terms = []
    for rewards in rewards_by_task:
        spread = variance(rewards)
        if spread is None:
            return None
        terms.append(spread / len(rewards))
    return math.sqrt(math.fsum(terms)) / len(rewards_by_task)


def wilson(p: float, n: float, z: float = Z95) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion.

    Args:
        p: The proportion seen, in [0, 1].
        n: How many observations it rests on; above 0, not necessarily whole.
        z: Quantile of the normal distribution; 1.96 for 95 %.

    Source: Wilson 1927, https://doi.org/10.1080/01621459.1927.10502953.

    >>> low, high = wilson(0.5, 10)
    >>> round(low, 4), round(high, 4)
    (0.2366, 0.7634)
    """
    scale = 1 + z * z / n
    centre = (p + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def interval95(means: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of tasks' means in [0, 1]; None of fewer than two tasks.

    Wilson's interval at the effective sample size ``n = m (1 - m) / SE^2``, or the number of tasks
    when the standard error is 0. ``m +- 1.96 SE`` leaves [0, 1], is empty when all tasks agree,
    and covers too rarely with the few tasks that benchmarks have.

    >>> low, high = interval95([1.0] * 5)
    >>> round(low, 4), high
    (0.5655, 1.0)
    """
    error = standard_error(means)
    if error is None:
        return None
    m = math.fsum(means) / len(means)
    n = m * (1 - m) / error**2 if error > 0 else float(len(means))
    return wilson(m, n)


def pass_at_k(passed: int, scored: int, k: int) -> float | None:
    """Estimate the chance that at least one of ``k`` rollouts of a task passes.

    Args:
        passed: Rollouts whose reward reached the threshold; 0 <= passed <= scored.
        scored: Rollouts with a reward. Unscored rollouts are left out, never counted as 0.
        k: Draws without replacement; at least 1.

    Returns:
        A probability in [0, 1], or None when fewer than ``k`` rollouts are scored.

    Raises:
        ValueError: If the counts contradict each other.

    Source: Chen et al. 2021, https://arxiv.org/abs/2107.03374, section 2.1.

    >>> pass_at_k(passed=1, scored=4, k=2)
    0.5
    """
    _must_fit(passed, scored, k)
    if scored < k:
        return None
    draws = math.comb(scored, k)
    return (draws - math.comb(scored - passed, k)) / draws


def pass_hat_k(passed: int, scored: int, k: int) -> float | None:
    """Estimate the chance that all of ``k`` rollouts of a task pass; arguments as ``pass_at_k``.

    Source: Yao et al. 2024 (tau-bench), https://arxiv.org/abs/2406.12045, section 3.

    >>> pass_hat_k(passed=3, scored=4, k=2)
    0.5
    """
    _must_fit(passed, scored, k)
    if scored < k:
        return None
    return math.comb(passed, k) / math.comb(scored, k)


def _must_fit(passed: int, scored: int, k: int) -> None:
    if not 0 <= passed <= scored:
        raise ValueError(f"{passed} passed of {scored} scored: passed must be in 0..{scored}")
    if k < 1:
        raise ValueError(f"k is {k}: draw at least one rollout")
