"""Keeps an up-to-date copy of all objects of one kind that carry a label.

A list in parts, then a watch from that moment on; again from the last moment seen when the stream
ends, and from a new list when the API server no longer knows that moment. A list also finds what a
silent stream has missed: its differences are told as events. Who runs it reads :meth:`Watch.age`
to learn whether it still hears anything.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import StrEnum
from random import uniform
from types import MappingProxyType

from wavetank.core.errors import ClusterError, WavetankError
from wavetank.kube.client import Client
from wavetank.kube.errors import Expired, Failure, Invalid, Request, error_for
from wavetank.kube.objects import (
    Manifest,
    ObjectName,
    Resource,
    controller_of,
    name_of,
    trimmed,
    version_of,
)
from wavetank.kube.rate import Backoff

_log = logging.getLogger(__name__)

_SHORT_SECONDS = 1.0
"""A stream that ends sooner is no stream: something between us and the API server closes it."""


class Change(StrEnum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


OnChange = Callable[[Change, Manifest], None]
"""Told of every difference, with the object as it is (or was, when deleted). Must not block."""


@dataclass(frozen=True)
class WatchSettings:
    """When a stream is given up."""

    silence_seconds: float = 75.0
    """A stream without a byte for so long is dead: the API server bookmarks once a minute."""
    stream_seconds: tuple[int, int] = (300, 600)
    """How long the API server is asked to keep a stream open; drawn, so that streams spread."""
    backoff: Backoff = field(default_factory=lambda: Backoff(first_seconds=0.5, most_seconds=30.0))
    """Between tries that fail."""


class Watch:
    """A copy of the objects of one kind, kept by one task that runs :meth:`run`."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        on_change: OnChange,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        settings: WatchSettings | None = None,
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        """Set once the first list is in."""
        self._client = client
        self._on_change = on_change
        self._namespace = namespace
        self._selector = label_selector
        self._settings = settings or WatchSettings()
        self._objects: dict[ObjectName, Manifest] = {}
        self._by_owner: dict[str, dict[ObjectName, Manifest]] = {}
        self._version: str | None = None
        self._heard = asyncio.get_running_loop().time()
        self._news = 0
        """Lists, changes and bookmarks so far: a stream that brought some has not failed in a row."""

    @property
    def objects(self) -> Mapping[ObjectName, Manifest]:
        """Return the copy: a live view, trimmed objects, not to be changed."""
        return MappingProxyType(self._objects)

    def owned_by(self, uid: str) -> Sequence[Manifest]:
        """Return the objects of the copy that the object with this UID controls, by name.

        Takes as long as there are such objects, however many others there are.
        """
        return [item for _, item in sorted(self._by_owner.get(uid, {}).items())]

    def age(self) -> float:
        """Return for how many seconds nothing was heard: no list, open stream, change, bookmark."""
        return asyncio.get_running_loop().time() - self._heard

    async def run(self) -> None:
        """List and watch until cancelled; no answer of the API server ends it."""
        failures = 0
        while True:
            before = self._news
            problem = await self._once()
            if problem is None:
                failures = 0
                continue
            failures = failures + 1 if before == self._news else 1
            _log.warning("%s: the watch was cut: %s", self.resource.plural, problem)
            asked = getattr(problem, "retry_after_seconds", None) or 0.0
            await asyncio.sleep(asked + self._settings.backoff.delay(failures))

    async def _once(self) -> WavetankError | None:
        """List if need be, then follow one stream to its end; return what was wrong with it."""
        now = asyncio.get_running_loop().time
        try:
            if self._version is None:
                await self._list()
            begun = now()
            await self._stream(self._version or "")
        except (Expired, Invalid) as error:
            # The API server does not know the moment (any more): a new list shows what happened.
            self._version = None
            return error
        except ClusterError as error:
            return error
        if now() - begun < _SHORT_SECONDS:
            return ClusterError("the stream ended at once")
        return None

    async def _list(self) -> None:
        listing = await self._client.list(
            self.resource, self._namespace, label_selector=self._selector
        )
        self._heard_something()
        listed = {name_of(item): trimmed(item) for item in listing.items}
        for name in [name for name in self._objects if name not in listed]:
            self._take(Change.DELETED, self._objects[name])
        for name, item in listed.items():
            known = self._objects.get(name)
            if known is None or version_of(known) != version_of(item):
                self._take(Change.ADDED if known is None else Change.MODIFIED, item)
        self._version = listing.resource_version
        self.synced.set()

    async def _stream(self, version: str) -> None:
        query = {"resourceVersion": version, "timeoutSeconds": str(self._stream_seconds())}
        if self._selector:
            query["labelSelector"] = self._selector
        stream = await self._client.watch(
            self.resource,
            self._namespace,
            query,
            silence_seconds=self._settings.silence_seconds,
        )
        self._heard = asyncio.get_running_loop().time()
        async with aclosing(stream) as lines:
            async for line in lines:
                if not line.endswith(b"\n"):
                    raise ClusterError("the stream broke off within a line")
                self._hear(json.loads(line))

    def _hear(self, event: Manifest) -> None:
        item = event["object"]
        if event["type"] == "ERROR":
            raise error_for(
                Failure(
                    Request("watch", self.resource.kind, self._namespace or ""),
                    int(item.get("code", 0)),
                    item.get("reason", ""),
                    item.get("message", ""),
                )
            )
        self._heard_something()
        if event["type"] != "BOOKMARK":
            self._take(Change(event["type"]), trimmed(item))
        self._version = version_of(item)

    def _take(self, change: Change, item: Manifest) -> None:
        name = name_of(item)
        before = self._objects.pop(name, None)
        if before is not None and (owner := controller_of(before)) is not None:
            siblings = self._by_owner[owner.uid]
            del siblings[name]
            if not siblings:
                del self._by_owner[owner.uid]
        if change is not Change.DELETED:
            self._objects[name] = item
            if (owner := controller_of(item)) is not None:
                self._by_owner.setdefault(owner.uid, {})[name] = item
        self._on_change(change, item)

    def _stream_seconds(self) -> int:
        return int(uniform(*self._settings.stream_seconds))  # noqa: S311 - spreads load

    def _heard_something(self) -> None:
        self._news += 1
        self._heard = asyncio.get_running_loop().time()
