"""What one operator process remembers of a Run between looks. All of it can be lost.

Everything here is either a copy of what API server and store hold, or a moment at which this
process first saw something; a restarted operator starts with an empty one.
"""

from dataclasses import dataclass, field

from wavetank.api.plan import Plan
from wavetank.api.run_status import ResolvedImages
from wavetank.controller.ledger import RunLedger
from wavetank.core.figures import Aggregate
from wavetank.core.identity import AttemptKey
from wavetank.core.lifecycle import Stage
from wavetank.core.observed import Graded, Ledger, PodSeen, SealSeen
from wavetank.kube.objects import Manifest


@dataclass
class Created:
    """A Pod that this process made and the watch may not have told of yet."""

    pod: Manifest
    at: float


@dataclass
class RunMemory:
    """Of one Run, by its UID."""

    uid: str
    plan: Plan
    ledger: RunLedger
    seals: dict[AttemptKey, SealSeen] = field(default_factory=dict)
    """Seals of Pods that are gone, as the store lists them."""
    seen: dict[AttemptKey, PodSeen] = field(default_factory=dict)
    """Attempts that had a Pod, as it was when last seen."""
    asked: set[AttemptKey] = field(default_factory=set)
    """Vanished attempts for whose seal the store was asked."""
    created: dict[AttemptKey, Created] = field(default_factory=dict)
    ended_seen: dict[AttemptKey, float] = field(default_factory=dict)
    refused: dict[AttemptKey, str] = field(default_factory=dict)
    reports: dict[str, tuple[Graded, ...]] = field(default_factory=dict)
    """What finished verifier Jobs reported, by the Job's UID, read and checked once."""
    blocked_until: float = 0.0
    blocked_by: str = ""
    tokens_at: float = 0.0
    """When this process last signed the Run's tokens; 0.0 for never."""
    stages: dict[int, Stage] = field(default_factory=dict)
    images: ResolvedImages = field(default_factory=ResolvedImages)
    figures: tuple[Ledger, int, Aggregate] | None = None
    """What came out, and of which ledger and k."""
    status_at: float = 0.0
    status_text: str = ""
    """The status last written, to write only what changed."""
