"""Why a rollout has no score, or why an attempt was tried again: the closed list, and what follows.

Every failure is given exactly one cause where it happens; everything else (may it be tried again,
is it graded, does its reward count) is read from ``RULES``. Nothing matches on messages.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class CauseGroup(StrEnum):
    """Whose doing a cause is."""

    AGENT = "agent"
    MODEL = "model"
    CLUSTER = "cluster"
    WORLD = "world"
    SETUP = "setup"
    VERIFIER = "verifier"
    USER = "user"


class Retry(StrEnum):
    """Whether a further attempt of the same rollout may follow."""

    NEVER = "never"
    ONCE = "once"
    """At most one attempt more, whatever ``maxAttempts`` allows."""
    UP_TO_MAX_ATTEMPTS = "upToMaxAttempts"


class Cause(StrEnum):
    """A cause, spelled as in records, status, metrics and the CLI."""

    AGENT_TIMEOUT = "AgentTimeout"
    AGENT_FAILED = "AgentFailed"
    AGENT_OUT_OF_MEMORY = "AgentOutOfMemory"
    DISK_FULL = "DiskFull"
    IMAGE_PULL = "ImagePull"
    UNSCHEDULABLE = "Unschedulable"
    START_TIMEOUT = "StartTimeout"
    EVICTED = "Evicted"
    NODE_LOST = "NodeLost"
    POD_DELETED = "PodDeleted"
    POD_REFUSED = "PodRefused"
    STORE_UNAVAILABLE = "StoreUnavailable"
    WORLD_FAILED = "WorldFailed"
    AGENT_SETUP_FAILED = "AgentSetupFailed"
    VERIFIER_FAILED = "VerifierFailed"
    VERIFIER_TIMEOUT = "VerifierTimeout"
    REWARD_MISSING = "RewardMissing"
    REWARD_INVALID = "RewardInvalid"
    CANCELLED = "Cancelled"


@dataclass(frozen=True)
class CauseRule:
    """What follows from a cause."""

    group: CauseGroup
    retry: Retry
    graded: bool
    """True when the end state is graded although this happened."""
    reward_valid: bool
    """True when a reward given under this cause counts: it is a measurement of the agent."""


_AGENT = CauseRule(CauseGroup.AGENT, Retry.NEVER, graded=True, reward_valid=True)
_CLUSTER = CauseRule(CauseGroup.CLUSTER, Retry.UP_TO_MAX_ATTEMPTS, graded=False, reward_valid=False)
_VERIFIER = CauseRule(CauseGroup.VERIFIER, Retry.NEVER, graded=False, reward_valid=False)

RULES: Mapping[Cause, CauseRule] = MappingProxyType(
    {
        Cause.AGENT_TIMEOUT: _AGENT,
        Cause.AGENT_FAILED: _AGENT,
        Cause.AGENT_OUT_OF_MEMORY: _AGENT,
        Cause.DISK_FULL: _AGENT,
        Cause.IMAGE_PULL: _CLUSTER,
        Cause.UNSCHEDULABLE: _CLUSTER,
        Cause.START_TIMEOUT: _CLUSTER,
        Cause.EVICTED: _CLUSTER,
        Cause.NODE_LOST: _CLUSTER,
        Cause.POD_DELETED: _CLUSTER,
        # The same Pod would be refused again: only a changed Run or namespace helps.
        Cause.POD_REFUSED: CauseRule(
            CauseGroup.CLUSTER, Retry.NEVER, graded=False, reward_valid=False
        ),
        Cause.STORE_UNAVAILABLE: _CLUSTER,
        Cause.WORLD_FAILED: CauseRule(
            CauseGroup.WORLD, Retry.ONCE, graded=False, reward_valid=False
        ),
        Cause.AGENT_SETUP_FAILED: CauseRule(
            CauseGroup.SETUP, Retry.UP_TO_MAX_ATTEMPTS, graded=False, reward_valid=False
        ),
        Cause.VERIFIER_FAILED: _VERIFIER,
        Cause.VERIFIER_TIMEOUT: _VERIFIER,
        Cause.REWARD_MISSING: _VERIFIER,
        Cause.REWARD_INVALID: _VERIFIER,
        Cause.CANCELLED: CauseRule(CauseGroup.USER, Retry.NEVER, graded=False, reward_valid=False),
    }
)
"""The table of causes; a test holds it complete."""
