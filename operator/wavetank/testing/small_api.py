"""An API server small enough to be read: objects in a dict, and refusals where a test wants them.

It knows create, get, list, delete, merge patch and apply of whole objects, names and versions. It
knows no watch: what a watch would hold is ``owned_by``.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from wavetank.kube.objects import Manifest, controller_of
from wavetank.testing.api_server import Answer, gives, refuses

_CREATED = "2027-01-15T08:00:00Z"


@dataclass
class Refusal:
    """Answers instead of the server, while it is in force."""

    pattern: str
    """Of method and path, like ``POST .*/pods``."""
    answer: Answer
    times: int = 1_000_000


@dataclass
class SmallApi:
    """Use ``server.otherwise = api.answer`` on a scripted API server."""

    objects: dict[str, Manifest] = field(default_factory=dict)
    """By path."""
    asked: list[str] = field(default_factory=list)
    """Method and path of every request."""
    refusals: list[Refusal] = field(default_factory=list)
    _version: int = 0

    def refuse(self, pattern: str, answer: Answer, times: int = 1_000_000) -> Refusal:
        """Give this answer to what matches; take the refusal out of ``refusals`` to end it."""
        self.refusals.append(Refusal(pattern, answer, times))
        return self.refusals[-1]

    def put(self, path: str, item: Manifest) -> Manifest:
        """Store an object as a new version and return it."""
        self._version += 1
        known = self.objects.get(path, {}).get("metadata", {})
        metadata = {
            "uid": f"uid-{self._version}",
            "creationTimestamp": _CREATED,
            "generation": 1,
            **{k: known[k] for k in ("uid", "creationTimestamp") if k in known},
            **item["metadata"],
            "resourceVersion": str(self._version),
        }
        self.objects[path] = {**item, "metadata": metadata}
        return self.objects[path]

    def owned_by(self, uid: str, kind: str) -> Sequence[Manifest]:
        """Return the objects of a kind that the object with this UID controls."""
        return [
            item
            for item in self.objects.values()
            if item["kind"] == kind and (owner := controller_of(item)) and owner.uid == uid
        ]

    def named(self, ending: str) -> Manifest:
        """Return the one object whose path ends so."""
        (found,) = [item for path, item in self.objects.items() if path.endswith(ending)]
        return found

    def answer(self, request: web.Request) -> Answer:
        """Return the answer to a request."""
        what = f"{request.method} {request.path}"
        self.asked.append(what)
        for refusal in self.refusals:
            if refusal.times and re.fullmatch(refusal.pattern, what):
                refusal.times -= 1
                return refusal.answer
        return lambda asked: self._served(asked)

    async def _served(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = json.loads(await request.text() or "{}")
        path = request.path.removesuffix("/status")
        match request.method:
            case "POST":
                answer = self._create(f"{path}/{body['metadata']['name']}", body)
            case "GET" if path in self.objects or not _is_collection(path):
                answer = self._found(path)
            case "GET":
                items = [o for at, o in self.objects.items() if at.rpartition("/")[0] == path]
                answer = gives({"metadata": {"resourceVersion": "1"}, "items": items})
            case "PATCH":
                answer = self._patch(path, body, is_status=path != request.path)
            case _:
                self.objects.pop(path, None)
                answer = gives({"kind": "Status"})
        return await answer(request)

    def _found(self, path: str) -> Answer:
        return gives(self.objects[path]) if path in self.objects else refuses(404, "NotFound")

    def _create(self, path: str, body: Manifest) -> Answer:
        if path in self.objects:
            return refuses(409, "AlreadyExists")
        return gives(self.put(path, body), 201)

    def _patch(self, path: str, body: Manifest, *, is_status: bool) -> Answer:
        known = self.objects.get(path)
        wanted = body.get("metadata", {}).get("resourceVersion")
        if known is None:
            if is_status or wanted is not None:
                return refuses(404, "NotFound")
            return gives(self.put(path, body), 201)
        if wanted not in (None, known["metadata"]["resourceVersion"]):
            return refuses(409, "Conflict")
        if is_status:
            return gives(self.put(path, {**known, "status": body["status"]}))
        data = {**known.get("data", {}), **body.get("data", {})}
        return gives(self.put(path, {**known, "data": data}))


def _is_collection(path: str) -> bool:
    return path.rpartition("/")[2] in {"pods", "jobs", "configmaps", "events", "runs"}
