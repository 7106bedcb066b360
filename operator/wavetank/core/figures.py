"""What goes into a Run's figures and what comes out: the values of ``aggregate``.

The controller turns an ``Aggregate`` into Run.status and into the results, the command line prints
it. A figure that is undefined is None, never 0.
"""

from dataclasses import dataclass

from wavetank.core.causes import Cause


@dataclass(frozen=True)
class Sample:
    """A recorded rollout: the newest record of its (task, rollout) pair."""

    task: str
    rollout: int
    """0..k-1."""
    reward: float | None
    """In the benchmark's range; None when unscored."""
    cause: Cause | None = None
    """Why there is no reward; set exactly when ``reward`` is None."""
    scores: tuple[tuple[str, float | None], ...] = ()
    """(verifier, score or None) in the task's order; empty when nothing was graded."""
    attempts: int = 1
    """Pods that were spent on it."""


@dataclass(frozen=True)
class PlannedTask:
    """A task of the plan."""

    id: str
    category: str | None = None
    difficulty: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scoring:
    """How the benchmark reads rewards."""

    pass_threshold: float = 1.0
    range_min: float = 0.0
    range_max: float = 1.0


DEFAULT_SCORING = Scoring()
"""Rewards in 0..1, and only a full reward passes."""


@dataclass(frozen=True)
class Counts:
    """Numbers of rollouts: ``planned - scored - unscored`` are still to be recorded."""

    planned: int
    scored: int
    unscored: int
    attempts: int
    """Pods that were spent on the recorded ones."""


@dataclass(frozen=True)
class Interval:
    """An interval, both ends included."""

    low: float
    high: float


@dataclass(frozen=True)
class RewardFigures:
    """The mean and how far to trust it; each is None when undefined."""

    mean: float | None
    """Mean over tasks of each task's mean: a task that lost rollouts weighs as much as others."""
    standard_error: float | None
    """Of the mean, over tasks; None of fewer than two tasks."""
    rerun_error: float | None
    """Spread of the mean if the same tasks ran again; None unless each scored task ran twice."""
    interval95: Interval | None
    """None of fewer than two tasks, or with coverage below the floor (0.8)."""
    lower_bound: float | None
    """The mean if all that is missing got the least possible reward; None without a plan."""
    upper_bound: float | None
    """The mean if all that is missing got the greatest possible reward."""
    tasks_scored: int


@dataclass(frozen=True)
class Coverage:
    """Shares of the plan that have a reward, in [0, 1]; None without a plan."""

    rollouts: float | None
    tasks: float | None
    """Tasks with at least one scored rollout."""


@dataclass(frozen=True)
class PassFigure:
    """pass@k or pass^k for one k."""

    k: int
    value: float | None
    """Mean over tasks with at least k scored rollouts; None when there is none."""
    tasks_used: int
    low: float | None
    """Over all tasks, with everything that is missing counted as fail."""
    high: float | None
    """Over all tasks, with everything that is missing counted as pass."""


@dataclass(frozen=True)
class VerifierMean:
    """What one verifier said about a task."""

    name: str
    mean: float | None
    """Over its numbers, also of rollouts that another verifier left unscored."""
    scored: int


@dataclass(frozen=True)
class TaskRow:
    """The figures of one task."""

    id: str
    category: str | None
    difficulty: str | None
    mean: float | None
    pass_rate: float | None
    scored: int
    unscored: int
    by_verifier: tuple[VerifierMean, ...]


@dataclass(frozen=True)
class GroupRow:
    """The figures of the tasks that share a category, a difficulty or a tag."""

    by: str
    """``category``, ``difficulty`` or ``tag``."""
    name: str
    mean: float | None
    """Mean over tasks, as for the whole Run."""
    pass_rate: float | None
    scored: int
    unscored: int


@dataclass(frozen=True)
class CauseCount:
    """How many rollouts are unscored for one cause."""

    cause: Cause
    count: int


@dataclass(frozen=True)
class Aggregate:
    """Everything that a Run's records say, for its status and its results."""

    rollouts: Counts
    reward: RewardFigures
    zero_filled_mean: float | None
    """The mean with unscored rollouts as 0, SkillsBench's published rule: to compare with it."""
    pass_rate: float | None
    coverage: Coverage
    pass_at_k: tuple[PassFigure, ...]
    pass_hat_k: tuple[PassFigure, ...]
    tasks: tuple[TaskRow, ...]
    """In the plan's order."""
    groups: tuple[GroupRow, ...]
    """Categories by name, then difficulties, then tags."""
    unscored_by_cause: tuple[CauseCount, ...]
    """The most frequent first."""
