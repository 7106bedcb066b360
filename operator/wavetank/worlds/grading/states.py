"""The end states of one session: where they are, and what else the graders may know of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wavetank.bundles.world import Entity, ReadWorld
from wavetank.worlds.grading.sql import SessionFacts


@dataclass(frozen=True)
class States:
    """The end states of a session: a file and the declared entities for each world."""

    files: Mapping[str, Path]
    """By alias; the own world's under the empty one."""
    entities: Mapping[str, Sequence[Entity]]
    session: SessionFacts
    trajectory: Path | None = None
    """The world's record of the calls; None for the untouched state, which has none."""


def states_of(
    world: ReadWorld, folder: Path, session: SessionFacts, trajectory: Path | None = None
) -> States:
    """Return the end states that ``Databases.dump`` has written into a folder.

    Args:
        world: The bundles that the session was of.
        folder: Holds ``main.sqlite`` and ``linked/<alias>.sqlite``.
        session: What ``_session`` will say.
        trajectory: The record of the session's calls.
    """
    return States(
        files={
            each.alias: folder / (f"linked/{each.alias}.sqlite" if each.alias else "main.sqlite")
            for each in world.worlds
        },
        entities={each.alias: each.entities for each in world.worlds},
        session=session,
        trajectory=trajectory,
    )
