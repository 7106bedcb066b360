"""What a decision gathers on its way: handed from step to step, and thrown away at its end."""

from dataclasses import dataclass, field

from wavetank.core.actions import Action, Entry
from wavetank.core.causes import Cause
from wavetank.core.identity import AttemptKey
from wavetank.core.lifecycle import Stage
from wavetank.core.observed import Failure, PodSeen, RunSeen, SealSeen


@dataclass(frozen=True)
class Sealed:
    """An attempt whose end is sealed and waits to be graded."""

    key: AttemptKey
    seal: SealSeen
    agent_cause: Cause | None
    """What the agent did to itself."""
    pod: PodSeen | None
    """None when it is gone."""


@dataclass
class Notes:
    """What a decision gathers on its way."""

    seen: RunSeen
    now: float
    entries: list[Entry] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    stages: dict[int, Stage] = field(default_factory=dict)
    sealed: dict[int, Sealed] = field(default_factory=dict)
    """By ordinal; an end that is found to be graded already is taken out."""
    problems: list[str] = field(default_factory=list)
    wake_at: list[float] = field(default_factory=list)
    new_failures: dict[int, list[Failure]] = field(default_factory=dict)
    unfit: set[str] = field(default_factory=set)
    """UIDs of Jobs that graded nothing by no fault of a verifier: they are made anew."""

    @property
    def busy(self) -> int:
        """How many rollouts have a Pod that has not ended."""
        return sum(stage in (Stage.STARTING, Stage.ACTING) for stage in self.stages.values())

    @property
    def is_blocked(self) -> bool:
        """Whether nothing can be created now."""
        return self.seen.blocked_until > self.now

    def failures(self, ordinal: int) -> tuple[Failure, ...]:
        """Return the ledger's failures of a rollout and those found in this look."""
        return (*self.seen.ledger.failures.get(ordinal, ()), *self.new_failures.get(ordinal, ()))
