"""Posts Kubernetes Events about our objects: few stable reasons, each said once.

An Event's name is a hash of what it says, so saying it again (a second look, a restarted operator)
meets the first one. An Event that cannot be posted is dropped: nothing depends on it.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime

from wavetank.controller.logs import get_logger
from wavetank.core.errors import WavetankError
from wavetank.kube.client import Client
from wavetank.kube.errors import AlreadyExists, Forbidden, Invalid
from wavetank.kube.objects import EVENTS, Manifest, name_of, uid_of

_log = get_logger(__name__)

_REMEMBERED = 2000
"""Events that are known to be posted, so that repeated looks cost no request."""

_NOTE_BYTES = 1024
"""The API server's limit for a note."""


class EventPoster:
    """Posts Events in the name of one operator."""

    def __init__(self, client: Client, instance: str, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._instance = instance
        self._clock = clock
        self._posted: OrderedDict[str, None] = OrderedDict()

    async def post(self, about: Manifest, reason: str, note: str, *, warning: bool = False) -> None:
        """Post an Event unless it was posted before; never raises for what the cluster does.

        Args:
            about: The object, with apiVersion, kind and metadata.
            reason: One of few CamelCase words.
            note: A sentence; cut at 1,024 bytes.
            warning: For trouble that a person should see.
        """
        note = note.encode()[:_NOTE_BYTES].decode(errors="ignore")
        said = hashlib.sha256(f"{uid_of(about)} {reason} {note}".encode()).hexdigest()[:16]
        if said in self._posted:
            return
        event = self._event(about, reason, note, warning=warning)
        where = name_of(about)
        event["metadata"] = {"namespace": where.namespace, "name": f"{where.name[:200]}.{said}"}
        try:
            await self._client.create(EVENTS, where.namespace, event)
        except AlreadyExists:
            pass
        except (Forbidden, Invalid) as error:
            # The next try would end the same.
            _log.info("event dropped", reason=reason, about=where, problem=error)
        except WavetankError as error:
            _log.info("event not posted yet", reason=reason, about=where, problem=error)
            return
        self._posted[said] = None
        if len(self._posted) > _REMEMBERED:
            self._posted.popitem(last=False)

    def _event(self, about: Manifest, reason: str, note: str, *, warning: bool) -> Manifest:
        metadata = about["metadata"]
        moment = self._clock().astimezone(UTC).isoformat(timespec="microseconds")
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "eventTime": moment.replace("+00:00", "Z"),
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "action": reason,
            "note": note,
            "reportingController": "wavetank.dev/operator",
            "reportingInstance": self._instance,
            "regarding": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "namespace": metadata.get("namespace", ""),
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
        }
