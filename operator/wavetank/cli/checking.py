"""Waits for the cluster's check of what was pushed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from wavetank.api.benchmark import Benchmark
from wavetank.api.conditions import is_true
from wavetank.api.kinds import read
from wavetank.api.wire import BundleRef, BundleSet
from wavetank.api.world import World
from wavetank.cli import render
from wavetank.cli.packing import Piece
from wavetank.cli.target import Place
from wavetank.core.errors import ClusterError
from wavetank.kube.objects import BENCHMARKS, WORLDS

_POLL_SECONDS = 0.5
_CHECK_SECONDS = 600.0
"""How long a check is waited for: its own deadline is as long."""
_PATIENCE_SECONDS = 15.0
"""After so long people are told what the check waits for; most are over by then."""

_CHECKED = frozenset({"Checked", "FaultsFound"})
_GIVEN_UP = frozenset({"CheckFailed", "SourceInvalid"})


@dataclass(frozen=True)
class Checked:
    """Worlds and, where there are tasks, a Benchmark, after their check."""

    worlds: tuple[World, ...]
    benchmark: Benchmark | None

    @property
    def objects(self) -> tuple[World | Benchmark, ...]:
        """Return all of them, the Benchmark last."""
        return self.worlds if self.benchmark is None else (*self.worlds, self.benchmark)

    @property
    def is_ready(self) -> bool:
        """Tell whether all of it can be used."""
        return all(is_true(item.status.conditions, "Ready") for item in self.objects)


async def await_checks(place: Place, pieces: Sequence[Piece]) -> Checked:
    """Wait until the cluster has checked exactly what was pushed, or gave up.

    Raises:
        ClusterError: If that takes too long.
    """
    main = pieces[-1]
    clock = asyncio.get_running_loop().time
    begun = clock()
    with render.waiting(f"The cluster checks {main.name}") as say:
        while True:
            seen = await _look(place, pieces)
            if _is_over(seen):
                return seen
            if clock() - begun > _CHECK_SECONDS:
                raise ClusterError(f"{main.name} was not checked in time: {_words(seen)}")
            if clock() - begun > _PATIENCE_SECONDS:
                say(_words(seen))
            await asyncio.sleep(_POLL_SECONDS)


async def _look(place: Place, pieces: Sequence[Piece]) -> Checked:
    get = place.client.get
    worlds = [read(World, await get(WORLDS, place.namespace, piece.name)) for piece in pieces]
    main = pieces[-1]
    benchmark = None
    if main.has_tasks:
        benchmark = read(Benchmark, await get(BENCHMARKS, place.namespace, main.name))
    return Checked(tuple(worlds), benchmark)


def _is_over(seen: Checked) -> bool:
    worlds = {world.metadata.name: world for world in seen.worlds}
    if any(_is_given_up(world) for world in seen.worlds):
        return True  # Its Benchmark would wait for ever.
    if not all(_is_checked(world, _bundles(worlds, world)) for world in seen.worlds):
        return False
    if seen.benchmark is None or _is_given_up(seen.benchmark):
        return True
    main = worlds[seen.benchmark.spec.world.world_ref.name]
    return _is_checked(seen.benchmark, _bundles(worlds, main))


def _is_given_up(item: World | Benchmark) -> bool:
    return _is_current(item) and _ready(item)[0] in _GIVEN_UP


def _is_checked(item: World | Benchmark, bundles: BundleSet | None) -> bool:
    """Tell whether an object's status is about these bundles, not about what they replaced."""
    if bundles is None or not _is_current(item):
        return False
    return item.status.checked == bundles.digest() and _ready(item)[0] in _CHECKED


def _bundles(worlds: dict[str, World], world: World) -> BundleSet | None:
    """Return the set of bundles that a world's check is about; None before all are packed."""
    links = [(link.alias, worlds[link.world_ref.name]) for link in world.spec.dependencies]
    parts = [(alias, part.status.digests) for alias, part in [("", world), *links]]
    found = [(alias, digests) for alias, digests in parts if digests is not None]
    if len(found) < len(parts):
        return None
    return BundleSet(
        agent=[BundleRef(alias=alias, digest=digests.agent) for alias, digests in found],
        grader=[BundleRef(alias=alias, digest=digests.grader) for alias, digests in found],
        solutions=[BundleRef(alias=alias, digest=digests.solutions) for alias, digests in found],
    )


def _is_current(item: World | Benchmark) -> bool:
    return item.status.observed_generation == item.metadata.generation


def _ready(item: World | Benchmark) -> tuple[str, str]:
    """Return reason and message of the condition Ready; empty before an operator looked."""
    found = next((c for c in item.status.conditions if c.type == "Ready"), None)
    return (found.reason, found.message) if found else ("", "")


def _words(seen: Checked) -> str:
    """Return what the check waits for."""
    if not any(_is_current(item) for item in seen.objects):
        return (
            "no operator has looked at it yet. Is one running? "
            "kubectl get pods -A -l app.kubernetes.io/part-of=wavetank"
        )
    held_up = (_ready(item) for item in seen.objects if _is_current(item))
    return next((message for reason, message in held_up if reason not in _CHECKED), "")
