"""What ``decide`` may ask for. Each action is safe to repeat, and safe to be lost."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from wavetank.core.identity import AttemptKey
from wavetank.core.lifecycle import Stage
from wavetank.core.observed import FailedGrading, Failure, Record


@dataclass(frozen=True)
class StartRollout:
    """Create the Pod of this attempt; a Pod of that name that is ours already is the same thing."""

    key: AttemptKey


@dataclass(frozen=True)
class DeletePod:
    """Delete exactly this Pod (UID precondition): all it had to say is in the ledger."""

    name: str
    uid: str


@dataclass(frozen=True)
class GradeMember:
    """One sealed rollout of a verifier Job."""

    key: AttemptKey
    seal: str
    snapshot: str


@dataclass(frozen=True)
class StartGrading:
    """Create a verifier Job for these sealed rollouts."""

    members: tuple[GradeMember, ...]
    try_number: int


@dataclass(frozen=True)
class DeleteJob:
    """Delete exactly this Job and, in the background, its Pod."""

    name: str
    uid: str


Entry = Record | Failure | FailedGrading


@dataclass(frozen=True)
class WriteLedger:
    """Add entries that the ledger lacks, in one compare-and-swap per shard."""

    entries: tuple[Entry, ...]


Action = WriteLedger | StartRollout | StartGrading | DeletePod | DeleteJob


@dataclass(frozen=True)
class Decision:
    """What to do now, where everything stands, and when to look again at the latest."""

    actions: tuple[Action, ...] = ()
    stages: Mapping[int, Stage] = field(default_factory=dict)
    """Of every rollout that has left ``planned`` and is not ``recorded``."""
    problem: str = ""
    """The one sentence, in Kubernetes' own words, on what is in the way; empty when nothing is."""
    look_again_after: float | None = None
    """Seconds; None when only an event can change anything."""
    complete: bool = False
    """Every planned rollout has its record."""
