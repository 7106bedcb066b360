"""The status of a Run: how far it is, and what came out.

Numbers are decimals as strings; one that is undefined is absent, never 0. ``MAX_BYTES`` bounds
the whole, so lists are cut to what fits; the full table is in the ConfigMap ``<run>-results``.
"""

from typing import Annotated

from pydantic import Field

from wavetank.api.fields import (
    CauseName,
    Clipped,
    Conditions,
    Digests,
    DigestText,
    Figure,
    Message,
    StatusModel,
)

MAX_BYTES = 65_536
"""Of a Run's status as JSON; a test asserts it at full lists."""

TASKS_KEPT = 100

TaskId = Annotated[str, Clipped(128)]
GroupName = Annotated[str, Clipped(64)]
"""Of a category, difficulty or tag."""
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class ResolvedImages(StatusModel):
    """The images that a Run's Pods were seen to run, with their digests."""

    world: Annotated[str, Clipped(600)] | None = None
    """world is the image that serves worlds."""
    agent: Annotated[str, Clipped(600)] | None = None
    """agent is the image that the agent runs in."""
    verifier: Annotated[str, Clipped(600)] | None = None
    """verifier is the image that grades."""


class Resolved(StatusModel):
    """What the Run's references stood for when it started; later edits do not change it."""

    benchmark_generation: int | None = None
    """benchmarkGeneration is the generation of the Benchmark's spec that is run."""
    spec_digest: DigestText | None = None
    """specDigest is the digest of the Run's spec without suspend, parallelism and k."""
    digests: Digests | None = None
    """digests of the bundles that rollouts, graders and solutions are made of."""
    images: ResolvedImages | None = None
    """images that the Run's Pods were seen to run."""
    operator_version: Annotated[str, Field(max_length=64)] | None = None
    """operatorVersion is the version of the operator that planned the Run."""
    store: Annotated[str, Field(max_length=200)] | None = None
    """store is the Service that keeps the evidence, as <namespace>/<name>:<port>."""


class RolloutCounts(StatusModel):
    """How many rollouts there are, and how far they are."""

    planned: int = 0
    """planned is the number of tasks times k."""
    active: int = 0
    """active is the number of rollouts that have a Pod which has not ended."""
    grading: int = 0
    """grading is the number of rollouts that have ended and are not recorded yet."""
    scored: int = 0
    """scored is the number of rollouts that have a reward."""
    unscored: int = 0
    """unscored is the number of rollouts that were recorded without a reward: never a 0."""


class Interval(StatusModel):
    """An interval of confidence."""

    low: Figure
    """low end of the interval."""
    high: Figure
    """high end of the interval."""


class RewardFigures(StatusModel):
    """The rewards of a Run as figures."""

    mean: Figure | None = None
    """mean over tasks of each task's mean reward, of the scored rollouts only."""
    standard_error: Figure | None = None
    """standardError of the mean, clustered by task; absent below two tasks."""
    rerun_error: Figure | None = None
    """rerunError is how far the mean would move if the same tasks were run again."""
    interval95: Annotated[Interval | None, Field(alias="interval95")] = None
    """interval95 of the mean; absent where the coverage is below 0.8."""
    lower_bound: Figure | None = None
    """lowerBound of the mean: every unscored rollout taken as the least reward."""
    upper_bound: Figure | None = None
    """upperBound of the mean: every unscored rollout taken as the greatest reward."""
    tasks_scored: int = 0
    """tasksScored is the number of tasks with at least one scored rollout."""


class Coverage(StatusModel):
    """The share of what was planned that has a reward."""

    rollouts: Figure | None = None
    """rollouts that are scored, of those planned."""
    tasks: Figure | None = None
    """tasks with at least one scored rollout, of all."""


class PassAt(StatusModel):
    """An estimate about k rollouts of a task, as a mean over tasks."""

    k: int
    """k is the number of rollouts that the estimate is about."""
    value: Figure | None = None
    """value of the estimate; absent when no task has k scored rollouts."""
    tasks_used: int = 0
    """tasksUsed is the number of tasks with at least k scored rollouts."""
    low: Figure | None = None
    """low is the value if every unscored rollout had failed."""
    high: Figure | None = None
    """high is the value if every unscored rollout had passed."""


class TaskFigures(StatusModel):
    """What came out of one task."""

    id: TaskId
    """id of the task."""
    category: GroupName | None = None
    """category of the task."""
    mean: Figure | None = None
    """mean reward of its scored rollouts."""
    pass_rate: Figure | None = None
    """passRate is the share of its scored rollouts that passed."""
    scored: int = 0
    """scored is the number of its rollouts with a reward."""
    unscored: int = 0
    """unscored is the number of its rollouts without one."""


class GroupFigures(StatusModel):
    """What came out of the tasks that have something in common."""

    by: Annotated[str, Field(max_length=32)]
    """by what the tasks are grouped: category, difficulty or tag."""
    name: GroupName
    """name of the group."""
    mean: Figure | None = None
    """mean over the group's tasks of their mean rewards."""
    pass_rate: Figure | None = None
    """passRate is the mean over the group's tasks of the share that passed."""
    scored: int = 0
    """scored is the number of its rollouts with a reward."""
    unscored: int = 0
    """unscored is the number of its rollouts without one."""


class CauseCount(StatusModel):
    """How many rollouts are unscored for one cause."""

    cause: CauseName
    """cause why they have no reward."""
    count: int
    """count of the rollouts."""


class LedgerCounts(StatusModel):
    """The Run's durable record of rewards: ConfigMaps named <run>-ledger-..."""

    shards: int = 0
    """shards is the number of ConfigMaps."""
    records: int = 0
    """records is the number of rollouts that are recorded."""


class RunStatus(StatusModel):
    """How far a Run is, and what came out."""

    conditions: Conditions = ()
    """conditions: Complete, Failed, Suspended and Progressing. A low score is Complete."""
    observed_generation: int | None = None
    """observedGeneration is the generation of the spec that this status tells of."""
    started_at: Moment | None = None
    """startedAt is when the Run's plan was made; RFC 3339."""
    completed_at: Moment | None = None
    """completedAt is when the Run was Complete or Failed; absent until then."""
    resolved: Resolved | None = None
    """resolved is what the Run's references stood for when it started."""
    progress: Annotated[str, Field(max_length=32)] | None = None
    """progress as recorded rollouts of those planned, like 12/15."""
    rollouts: RolloutCounts | None = None
    """rollouts are the numbers of rollouts by how far they are."""
    reward: RewardFigures | None = None
    """reward holds the mean reward, its error, and its bounds."""
    zero_filled_mean: Figure | None = None
    """zeroFilledMean counts every unscored rollout as 0, as some published tables do: for
    comparison with those only."""
    pass_rate: Figure | None = None
    """passRate is the mean over tasks of the share of scored rollouts that passed."""
    coverage: Coverage | None = None
    """coverage is the share of what was planned that has a reward."""
    pass_at_k: Annotated[tuple[PassAt, ...], Field(max_length=10)] = ()
    """passAtK estimates the chance that at least one of k rollouts of a task passes."""
    pass_hat_k: Annotated[tuple[PassAt, ...], Field(max_length=10)] = ()
    """passHatK estimates the chance that all of k rollouts of a task pass."""
    tasks: Annotated[tuple[TaskFigures, ...], Field(max_length=TASKS_KEPT)] = ()
    """tasks and what came out of them, written at completion; at most 100: the full table is in
    the ConfigMap <run>-results."""
    groups: Annotated[tuple[GroupFigures, ...], Field(max_length=50)] = ()
    """groups of tasks by category, difficulty and tag, written at completion; at most 50."""
    unscored_by_cause: Annotated[tuple[CauseCount, ...], Field(max_length=40)] = ()
    """unscoredByCause counts the unscored rollouts by why they have no reward."""
    ledger: LedgerCounts | None = None
    """ledger counts the durable records."""
    last_problem: Message | None = None
    """lastProblem is the newest trouble in Kubernetes' own words, like a quota or an image."""
