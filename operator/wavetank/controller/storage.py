"""The operator's hold on the store: the signing key, the tokens it gives out, and a client.

The key is made once, at the operator's first start, in a Secret of its own namespace; Helm must not
make it, since a template's ``lookup`` would renew it under Argo CD. Store and gateway read only the
public half, from a ConfigMap.
"""

import base64
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from wavetank.api.wire import BundleRef, Grant, Operation
from wavetank.core.errors import ClusterError
from wavetank.kube.client import Client
from wavetank.kube.errors import AlreadyExists
from wavetank.kube.objects import CONFIGMAPS, MANAGED_BY, SECRETS, SERVICES, Manifest
from wavetank.store.client import StoreClient
from wavetank.store.tokens import make_key, public_of, sign

KEY_SECRET = "wavetank-signing-key"  # noqa: S105 - the name of an object
PUBLIC_CONFIG_MAP = "wavetank-public-key"
STORE_PORT = 8081

RUN_TOKEN_DAYS = 7
"""Run tokens are signed anew every day while the Run lasts, so a week is for long outages."""

EVIDENCE_BYTES = 1 << 30
"""Largest snapshot that a rollout may leave."""


class Storage:
    """Signs tokens and talks to the store; made once at the operator's start by ``open_storage``."""

    def __init__(
        self, private_pem: bytes, base_url: str, service: str, clock: Callable[[], datetime]
    ) -> None:
        self.base_url = base_url
        """By address, not by name: Pods of a Run need no DNS."""
        self.service = service
        """``<namespace>/<name>:<port>``: for people, who come by the API server's proxy."""
        self._private_pem = private_pem
        self._clock = clock
        self._own: tuple[datetime, str] | None = None
        self.client = StoreClient(base_url, self._own_token)

    def token(self, grants: Sequence[Grant], valid: timedelta) -> str:
        """Return a token for these grants."""
        return sign(self._private_pem, grants, self._clock() + valid)

    def _own_token(self) -> str:
        now = self._clock()
        if self._own is None or self._own[0] < now:
            grants = [Grant(operation=operation, prefix="/v1") for operation in Operation]
            self._own = (now + timedelta(minutes=30), self.token(grants, timedelta(hours=1)))
        return self._own[1]


def get(prefix: str) -> Grant:
    """Return the permission to read a path and all below it."""
    return Grant(operation=Operation.GET, prefix=prefix)


def create(prefix: str, max_bytes: int | None = None) -> Grant:
    """Return the permission to put, once, a path and all below it."""
    return Grant(operation=Operation.CREATE, prefix=prefix, max_bytes=max_bytes)


def get_bundles(refs: Sequence[BundleRef]) -> list[Grant]:
    """Return the permission to read exactly these bundles."""
    return [get(f"/v1/bundles/{digest}") for digest in sorted({ref.digest for ref in refs})]


async def open_storage(
    client: Client, namespace: str, service: str, clock: Callable[[], datetime]
) -> Storage:
    """Find or make the signing key, publish its public half, find the store's address."""
    private_pem = await _signing_key(client, namespace)
    await client.apply(
        CONFIGMAPS,
        namespace,
        PUBLIC_CONFIG_MAP,
        {
            "metadata": {"labels": {MANAGED_BY: "wavetank"}},
            "data": {"public.pem": public_of(private_pem).decode()},
        },
    )
    found = await client.get(SERVICES, namespace, service)
    address = found.get("spec", {}).get("clusterIP")
    if not address or address == "None":
        raise ClusterError(f"Service {namespace}/{service} has no cluster IP; the store needs one.")
    host = f"[{address}]" if ":" in address else address
    base_url = f"http://{host}:{STORE_PORT}"
    return Storage(private_pem, base_url, f"{namespace}/{service}:{STORE_PORT}", clock)


async def _signing_key(client: Client, namespace: str) -> bytes:
    found = await client.find(SECRETS, namespace, KEY_SECRET)
    if found is None:
        private, _ = make_key()
        body: Manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": KEY_SECRET, "labels": {MANAGED_BY: "wavetank"}},
            "type": "Opaque",
            "data": {"private.pem": base64.b64encode(private).decode()},
        }
        try:
            found = await client.create(SECRETS, namespace, body)
        except AlreadyExists:
            found = await client.get(SECRETS, namespace, KEY_SECRET)
    return base64.b64decode(found["data"]["private.pem"])
