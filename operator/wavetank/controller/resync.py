"""Lists our three kinds now and then, and finds what no event told of.

A watch can die silently, and an object can vanish while a watch lists anew. So every object gets a
look at each resync: at once when it differs from what events told, else spread over the interval.
When a change stays untold, the watch is dead and :meth:`Resync.complaints` says so.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from random import uniform
from typing import Protocol

from wavetank.controller.logs import get_logger
from wavetank.controller.metrics import Metrics
from wavetank.controller.queue import Key
from wavetank.core.errors import ClusterError
from wavetank.kube.client import Listing
from wavetank.kube.objects import OWN_KINDS, RUNS, Manifest, Resource, name_of, version_of

_log = get_logger(__name__)

_LATE_SECONDS = 30.0
"""An event that comes later than the list by so much is not late but lost."""

RUN_STATES = ("waiting", "running", "suspended", "complete", "failed")


class Lists(Protocol):
    """The part of a client that is needed here."""

    async def list(self, resource: Resource, namespace: str | None = None) -> Listing:
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
        self._states: dict[Key, str] = {}
        self._heard = {kind.plural: _now() for kind in OWN_KINDS}

    def tell(self, resource: Resource, event: str | None, item: Manifest) -> None:
        """Take an event of the watch and enqueue its object."""
        key = _key(resource, item)
        self._heard[resource.plural] = _now()
        if event == "DELETED":
            self._forget(key)
        else:
            self._told[key] = version_of(item)
            self._note_state(resource, key, item)
        self._enqueue(key, 0.0)
        self._count_states()

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
        listing = await self._client.list(resource, self._namespace)
        self._heard[resource.plural] = _now()
        items = {_key(resource, item): item for item in listing.items}
        for key in [k for k in self._listed if k.kind == resource.kind and k not in items]:
            self._forget(key)
            self._enqueue(key, 0.0)
        for key, item in items.items():
            version = version_of(item)
            is_news = self._listed.get(key) != version
            self._listed[key] = version
            self._note_state(resource, key, item)
            self._suspect(resource, key, version)
            delay = 0.0 if is_news else uniform(0.0, spread_seconds)  # noqa: S311 - spreads load
            self._enqueue(key, delay)
        self._count_states()

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
        for known in (self._told, self._listed, self._suspects, self._states):
            known.pop(key, None)

    def _note_state(self, resource: Resource, key: Key, item: Manifest) -> None:
        if resource is RUNS:
            self._states[key] = state_of(item)

    def _count_states(self) -> None:
        counts = Counter(self._states.values())
        self._metrics.runs({state: counts[state] for state in RUN_STATES})


def state_of(run: Manifest) -> str:
    """Return a Run's state in one word, from its conditions.

    >>> state_of({"status": {"conditions": [{"type": "Complete", "status": "True"}]}})
    'complete'
    """
    conditions = (run.get("status") or {}).get("conditions") or ()
    true = {condition["type"] for condition in conditions if condition.get("status") == "True"}
    for condition, state in (
        ("Complete", "complete"),
        ("Failed", "failed"),
        ("Suspended", "suspended"),
        ("Progressing", "running"),
    ):
        if condition in true:
            return state
    return "waiting"


def _key(resource: Resource, item: Manifest) -> Key:
    where = name_of(item)
    return Key(resource.kind, where.namespace, where.name)


def _now() -> float:
    return asyncio.get_running_loop().time()
