"""What the operator saw of a Run, as frozen values: the whole input of ``decide``.

Moments are seconds since the epoch, on the API server's clock. ``None`` means not seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from wavetank.core.causes import Cause
from wavetank.core.identity import AttemptKey


class ContainerPhase(StrEnum):
    """The three states that a kubelet reports of a container."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


@dataclass(frozen=True)
class Container:
    """One named container of a Pod."""

    phase: ContainerPhase
    reason: str = ""
    """Kubernetes' own word, like ImagePullBackOff or OOMKilled."""
    message: str = ""
    exit_code: int | None = None
    started_at: float | None = None
    finished_at: float | None = None
    restarts: int = 0


class End(StrEnum):
    """How a session ended (``api.wire.SessionEnd``)."""

    CLOSED = "closed"
    DEADLINE = "deadline"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class SealSeen:
    """A sealed end of a session, from the Pod's message or from the store."""

    end: End
    digest: str
    snapshot: str
    exit_code: int | None = None
    started_at: float | None = None
    ended_at: float | None = None


@dataclass(frozen=True)
class PodSeen:
    """A rollout Pod. Its phase is left out on purpose: only container states are trusted."""

    name: str
    uid: str
    key: AttemptKey
    created_at: float
    scheduled_at: float | None = None
    unschedulable: str = ""
    """The scheduler's words while no node fits."""
    delete_requested_at: float | None = None
    """When deletion was asked for (deletionTimestamp less the grace period)."""
    has_grace: bool = True
    """False when it was deleted at once. A kubelet does that too, at the end of a deletion with
    grace: ``delete_requested_at`` is that moment then, and when it was first asked is not known."""
    disrupted_at: float | None = None
    """When a DisruptionTarget condition came."""
    disruption: str = ""
    ends_at: float | None = None
    """When its kubelet ends it whatever it does (``activeDeadlineSeconds`` after its start there)."""
    reason: str = ""
    """``status.reason``: Evicted, NodeLost, DeadlineExceeded, ..."""
    message: str = ""
    setup: Container | None = None
    """The init container that fetches a solution, where there is one."""
    world: Container | None = None
    agent: Container | None = None
    seal: SealSeen | None = None
    world_cause: Cause | None = None
    """What the world itself gave as the cause for having no seal."""
    world_message: str = ""


@dataclass(frozen=True)
class ScoreSeen:
    """One verifier's answer for one rollout."""

    name: str
    value: float | None
    cause: Cause | None = None
    message: str = ""


@dataclass(frozen=True)
class Graded:
    """A valid record of the judge about one member."""

    key: AttemptKey
    seal: str
    grader: str
    reward: float | None
    cause: Cause | None
    scores: tuple[ScoreSeen, ...]


@dataclass(frozen=True)
class JobSeen:
    """A verifier Job."""

    name: str
    uid: str
    members: tuple[AttemptKey, ...]
    try_number: int
    """Which try this is for its members; more than 1 only for a Job with a single member."""
    created_at: float
    started_at: float | None = None
    """When its judge began; None while its Pod has not started."""
    finished: bool = False
    store_away: bool = False
    """It finished without grading, since it could not reach the store: no verifier's fault."""
    timed_out: bool = False
    """Its Pod was ended by its deadline."""
    graded: tuple[Graded, ...] = ()
    """Records that were reported, validated and belong to its members."""
    pending: bool = False
    """It reported, but the store that holds its records did not answer yet."""
    problem: str = ""
    """Kubernetes' words on why its Pod does not start, or why there is no report."""


@dataclass(frozen=True)
class Stages:
    """Seconds that each stage of a recorded rollout took; None where it was not reached."""

    queue: float | None = None
    start: float | None = None
    act: float | None = None
    grade: float | None = None


@dataclass(frozen=True)
class Record:
    """A rollout's record in the ledger."""

    key: AttemptKey
    reward: float | None
    cause: Cause | None = None
    agent_cause: Cause | None = None
    scores: tuple[ScoreSeen, ...] = ()
    seal: str | None = None
    grader: str | None = None
    stages: Stages = field(default_factory=Stages)
    message: str = ""


@dataclass(frozen=True)
class Failure:
    """An attempt that left no end state to grade."""

    key: AttemptKey
    cause: Cause
    message: str
    at: float


@dataclass(frozen=True)
class FailedGrading:
    """A try at grading that gave no valid record for this rollout."""

    key: AttemptKey
    try_number: int
    cause: Cause
    message: str


@dataclass(frozen=True)
class Ledger:
    """All entries of a Run's newest generation."""

    records: Mapping[int, Record] = field(default_factory=dict)
    """By ordinal."""
    failures: Mapping[int, tuple[Failure, ...]] = field(default_factory=dict)
    """By ordinal, in the order of attempts."""
    failed_gradings: Mapping[int, tuple[FailedGrading, ...]] = field(default_factory=dict)

    def is_over(self, key: AttemptKey) -> bool:
        """Tell whether all that an attempt had to say is here: its failure, or any record."""
        if key.ordinal in self.records:
            return True
        return any(failure.key == key for failure in self.failures.get(key.ordinal, ()))


@dataclass(frozen=True)
class Limits:
    """What the Run allows, with multipliers already applied."""

    parallelism: int
    max_attempts: int = 3
    start_seconds: float = 300
    verifier_seconds: float = 600
    """For each member of a verifier Job."""
    seal_wait_seconds: float = 600


@dataclass(frozen=True)
class RunSeen:
    """Everything that ``decide`` may look at."""

    total: int
    """Planned rollouts: tasks times k. Ordinals run from 0 to ``total`` - 1."""
    limits: Limits
    suspended: bool = False
    ledger: Ledger = field(default_factory=Ledger)
    pods: tuple[PodSeen, ...] = ()
    jobs: tuple[JobSeen, ...] = ()
    seals: Mapping[AttemptKey, SealSeen] = field(default_factory=dict)
    """Seals found in the store whose Pod is gone."""
    vanished: frozenset[AttemptKey] = frozenset()
    """Attempts whose Pod is gone, though nothing of them is in the ledger."""
    last_seen: Mapping[AttemptKey, PodSeen] = field(default_factory=dict)
    """Pods that are gone, as they were when last seen; not of all that vanished."""
    ended_seen: Mapping[AttemptKey, float] = field(default_factory=dict)
    """When this operator first saw a seal: the wait for a fuller verifier Job starts there."""
    attempts_before: Mapping[int, int] = field(default_factory=dict)
    """The last attempt of earlier generations, by ordinal: attempt numbers never restart."""
    refused: Mapping[AttemptKey, str] = field(default_factory=dict)
    """Creates that the API server refused for good (Pod Security, 422), in its own words."""
    blocked_until: float = 0.0
    """No creates before this moment: quota or RBAC refused one, which costs no attempt."""
    blocked_by: str = ""
