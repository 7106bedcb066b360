"""Lists our three kinds now and then, and finds what no event told of.

A watch can die silently, and an object can vanish while a watch lists anew. So every object gets a
look at each resync: at once when it differs from what events told, else spread over the interval.
When a change stays untold, the watch is dead and :meth:`Resync.complaints` says so.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import uniform
from typing import Protocol

from wavetank.controller.logs import get_logger
from wavetank.controller.metrics import Metrics
from wavetank.controller.queue import Key
from wavetank.core.errors import ClusterError
from wavetank.kube.client import Listing
from wavetank.kube.objects import OWN_KINDS, Manifest, Resource, name_of, version_of

_log = get_logger(__name__)

_LATE_SECONDS = 30.0
"""An event that comes later than the list by so much is not late but lost."""


class Lists(Protocol):
    """The part of a client that is needed here."""

    async def list(
        self, resource: Resource, namespace: str | None = None, *, metadata_only: bool = False
    ) -> Listing:
        """Return all objects of a kind."""


class Resync:
    """What events told, compared with what lists show."""

    def __init__(
        self,
        client: Lists,
        namespace: str | None,
        enqueue: Callable[[Key, float], None],
        metrics: Metrics,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._enqueue = enqueue
        self._metrics = metrics
        self._told: dict[Key, str] = {}
        """The version that the last event of each object told."""
        self._listed: dict[Key, str] = {}
        self._suspects: dict[Key, tuple[str | None, float]] = {}
        """Objects whose list differs from this told version, and since when."""
        self._lost: set[Key] = set()
        self._heard = {kind.plural: _now() for kind in OWN_KINDS}

    def tell(self, resource: Resource, event: str | None, item: Manifest) -> None:
        """Take an event of the watch and enqueue its object."""
        key = _key(resource, item)
        self._heard[resource.plural] = _now()
        if event == "DELETED":
            self._forget(key)
        else:
            self._told[key] = version_of(item)
        self._enqueue(key, 0.0)

    def ages(self) -> dict[str, float]:
        """Return for how many seconds neither event nor list of each of our kinds came."""
        now = _now()
        return {plural: now - at for plural, at in self._heard.items()}

    def complaints(self) -> Sequence[str]:
        """Return which objects changed without an event, as of the last resync."""
        return [f"no watch told of a change of {key}" for key in sorted(self._lost)]

    async def run(self, interval_seconds: float) -> None:
        """Resync for ever; the first time at once."""
        while True:
            for resource in OWN_KINDS:
                try:
                    await self._resync(resource, interval_seconds / 2)
                except ClusterError as error:
                    _log.warning("resync failed", resource=resource.plural, problem=error)
            await asyncio.sleep(interval_seconds)

    async def _resync(self, resource: Resource, spread_seconds: float) -> None:
        listing = await self._client.list(resource, self._namespace, metadata_only=True)
        self._heard[resource.plural] = _now()
        items = {_key(resource, item): item for item in listing.items}
        for key in [k for k in self._listed if k.kind == resource.kind and k not in items]:
            self._forget(key)
            self._enqueue(key, 0.0)
        for key, item in items.items():
            version = version_of(item)
            is_news = self._listed.get(key) != version
            self._listed[key] = version
            self._suspect(resource, key, version)
            delay = 0.0 if is_news else uniform(0.0, spread_seconds)  # noqa: S311 - spreads load
            self._enqueue(key, delay)

    def _suspect(self, resource: Resource, key: Key, version: str) -> None:
        """Find out whether an object changed and no event came of it for too long."""
        told = self._told.get(key)
        self._lost.discard(key)
        if told == version:
            self._suspects.pop(key, None)
            return
        known, since = self._suspects.get(key, (None, _now()))
        if key not in self._suspects or known != told:
            self._suspects[key] = (told, _now())
        elif _now() - since >= _LATE_SECONDS:
            self._lost.add(key)
            self._metrics.missed(resource.plural)
            _log.error("no watch told of a change", key=key)

    def _forget(self, key: Key) -> None:
        self._lost.discard(key)
        self._told.pop(key, None)
        self._listed.pop(key, None)
        self._suspects.pop(key, None)


def _key(resource: Resource, item: Manifest) -> Key:
    where = name_of(item)
    return Key(resource.kind, where.namespace, where.name)


def _now() -> float:
    return asyncio.get_running_loop().time()
