"""What the operator saw of a Run, built from what matters to a test: for ``decide`` and its parts.

The clock stands at ``NOW``. A Pod was made 20 s before, its agent ran from 10 s to 5 s before.
"""

from dataclasses import replace
from typing import Any

from wavetank.core.actions import GradeMember
from wavetank.core.causes import Cause
from wavetank.core.identity import AttemptKey
from wavetank.core.observed import (
    Container,
    ContainerPhase,
    End,
    Graded,
    JobSeen,
    Limits,
    PodSeen,
    RunSeen,
    SealSeen,
)

NOW = 1_000.0
WAITING = Container(ContainerPhase.WAITING, "PodInitializing")
RUNNING = Container(ContainerPhase.RUNNING, started_at=990.0)
DONE = Container(ContainerPhase.TERMINATED, exit_code=0, started_at=990.0, finished_at=995.0)


def key(ordinal: int, attempt: int = 1) -> AttemptKey:
    """Return which attempt."""
    return AttemptKey(ordinal, attempt)


def a_pod(ordinal: int = 0, attempt: int = 1, **changes: Any) -> PodSeen:
    """Return a Pod whose agent acts, with changes."""
    pod = PodSeen(
        name=f"r-{ordinal}-a{attempt}",
        uid=f"uid-{ordinal}-{attempt}",
        key=key(ordinal, attempt),
        created_at=980.0,
        scheduled_at=981.0,
        world=RUNNING,
        agent=RUNNING,
    )
    return replace(pod, **changes)


def a_seal(ordinal: int = 0, end: End = End.CLOSED, exit_code: int | None = 0) -> SealSeen:
    """Return the seal of a session."""
    return SealSeen(end, f"seal-{ordinal}", f"snap-{ordinal}", exit_code, 990.0, 995.0)


def a_sealed_pod(ordinal: int = 0, attempt: int = 1, **changes: Any) -> PodSeen:
    """Return a Pod whose session was closed and sealed, with changes."""
    return a_pod(
        ordinal, attempt, **{"world": DONE, "agent": DONE, "seal": a_seal(ordinal), **changes}
    )


def a_run(total: int = 1, parallelism: int = 10, **rest: Any) -> RunSeen:
    """Return a Run of so many rollouts, of which nothing else is known unless given."""
    return RunSeen(total=total, limits=Limits(parallelism=parallelism), **rest)


def graded(ordinal: int = 0, reward: float | None = 1.0, cause: Cause | None = None) -> Graded:
    """Return what a judge says of a rollout's first attempt."""
    return Graded(key(ordinal), f"seal-{ordinal}", "grader", reward, cause, ())


def a_job(*ordinals: int, try_number: int = 1, **rest: Any) -> JobSeen:
    """Return a verifier Job whose judge runs, unless said otherwise."""
    members = tuple(key(ordinal) for ordinal in ordinals)
    return JobSeen(
        **{
            "name": "job",
            "uid": "job-uid",
            "members": members,
            "try_number": try_number,
            "created_at": 996.0,
            "started_at": 997.0,
            **rest,
        }
    )


def a_member(ordinal: int) -> GradeMember:
    """Return a rollout's first attempt as a member of a verifier Job."""
    return GradeMember(key(ordinal), f"seal-{ordinal}", f"snap-{ordinal}")
