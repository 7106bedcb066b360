"""A small client: raw JSON in and out, named refusals, a limit on writes, tries again on reads.

Used by the controller's observe and apply steps, by the watches, and by the command line.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import aiohttp

from wavetank.kube.connection import Connection, Kubeconfig, connect
from wavetank.kube.errors import Conflict, Expired, NotFound, Request
from wavetank.kube.objects import Manifest, Resource
from wavetank.kube.transport import Call, ClientSettings, Observer, Transport, answered, drop

FIELD_MANAGER = "wavetank"

_JSON = "application/json"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True)
class Listing:
    """All objects of a list, and the moment that it shows."""

    items: list[Manifest]
    resource_version: str


class Client:
    """Requests to one API server. Use :func:`open_client`, or close it yourself."""

    def __init__(
        self,
        connection: Connection,
        settings: ClientSettings | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.settings = settings or ClientSettings()
        self.transport = Transport(connection, self.settings, observer)

    def server_now(self) -> float | None:
        """Return the moment on the API server's clock, in seconds; None before its first answer."""
        return self.transport.server_clock.read(asyncio.get_running_loop().time())

    async def close(self) -> None:
        """Close the connection."""
        await self.transport.connection.close()

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Manifest:
        """Return an object as it is now (a consistent read).

        Raises:
            NotFound: If there is none.
        """
        return await self.transport.json(Call("get", resource, namespace, name))

    async def find(self, resource: Resource, namespace: str | None, name: str) -> Manifest | None:
        """Return an object as it is now, or None when there is none."""
        try:
            return await self.get(resource, namespace, name)
        except NotFound:
            return None

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        metadata_only: bool = False,
    ) -> Listing:
        """Return all objects, fetched in parts that show one and the same moment.

        Args:
            resource: Which kind.
            namespace: None means all namespaces.
            label_selector: As in ``kubectl -l``.
            field_selector: As in ``kubectl --field-selector``.
            resource_version: Empty for a consistent read; ``"0"`` for whatever is cached.
            metadata_only: Leave out spec and status, which makes a list of large objects cheap.
        """
        query = {"limit": str(self.settings.chunk)}
        for key, value in (
            ("labelSelector", label_selector),
            ("fieldSelector", field_selector),
            ("resourceVersion", resource_version),
        ):
            if value:
                query[key] = value
        accept = _METADATA_LIST if metadata_only else _JSON
        first = Call("list", resource, namespace, query=query, accept=accept)
        try:
            return await self._all_parts(first)
        except Expired:
            # The parts took longer than the API server keeps the moment: once more, all at once.
            return await self._all_parts(replace(first, query={**query, "limit": "0"}))

    async def create(self, resource: Resource, namespace: str | None, body: Manifest) -> Manifest:
        """Create an object and return it as stored.

        Raises:
            AlreadyExists: If the name is taken.
            Invalid: If the object is wrong; unknown fields are.
            Forbidden: If quota, Pod Security, the namespace or RBAC forbids it.
        """
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        return await self.transport.json(
            Call("create", resource, namespace, query=query, body=body)
        )

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str,
        grace_seconds: int | None = None,
    ) -> bool:
        """Delete an object and, in the background, what it owns.

        Args:
            resource: Which kind.
            namespace: Its namespace.
            name: Its name.
            uid: Only the object with this UID is deleted, not a later one of that name.
            grace_seconds: Instead of the object's own grace period.

        Returns:
            False when it (or the one with this UID) is gone already.
        """
        # Without a policy a Job's Pods are orphaned by a raw DELETE.
        body: Manifest = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        try:
            await self.transport.json(Call("delete", resource, namespace, name, body=body))
        except NotFound:
            return False
        except Conflict as error:
            # Two wordings, of the registry's two places that compare the UID.
            if (
                "UID in" in error.failure.message
                and "precondition" in error.failure.message.lower()
            ):
                return False
            raise
        return True

    async def merge_patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        patch: Manifest,
        *,
        resource_version: str | None = None,
        subresource: str | None = None,
    ) -> Manifest:
        """Merge fields into an object and return the whole; null removes a field.

        Args:
            resource: Which kind.
            namespace: Its namespace.
            name: Its name.
            patch: JSON merge patch; lists are replaced.
            resource_version: Compare-and-swap: refuse if the object is no longer this version.
            subresource: For instance ``status``.

        Raises:
            Conflict: If the object has another version by now.
            NotFound: If there is none.
        """
        if resource_version is not None:
            metadata = {**patch.get("metadata", {}), "resourceVersion": resource_version}
            patch = {**patch, "metadata": metadata}
        return await self.transport.json(
            Call(
                "patch",
                resource,
                namespace,
                name,
                subresource,
                query={"fieldManager": FIELD_MANAGER},
                body=patch,
                content_type="application/merge-patch+json",
            )
        )

    async def apply(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        fields: Manifest,
        *,
        resource_version: str | None = None,
        subresource: str | None = None,
    ) -> Manifest:
        """Own exactly these fields (server-side apply, forced) and return the whole object.

        What an earlier apply of ours set and this one leaves out is removed.

        Args:
            resource: Which kind; apiVersion and kind are filled in.
            namespace: Its namespace.
            name: Its name; without a subresource it is created when missing.
            fields: For instance ``{"status": {...}}``.
            resource_version: Refuse if the object is no longer this version.
            subresource: For instance ``status``.

        Raises:
            Conflict: If the object has another version by now.
            NotFound: If there is none and ``subresource`` is given.
            Invalid: If a field is wrong.
        """
        metadata = {**fields.get("metadata", {}), "name": name}
        if namespace is not None:
            metadata["namespace"] = namespace
        if resource_version is not None:
            metadata["resourceVersion"] = resource_version
        body = {
            **fields,
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": metadata,
        }
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}
        return await self.transport.json(
            Call(
                "apply",
                resource,
                namespace,
                name,
                subresource,
                query=query,
                body=body,
                content_type="application/apply-patch+yaml",
            )
        )

    async def watch(
        self,
        resource: Resource,
        namespace: str | None,
        query: Mapping[str, str],
        *,
        silence_seconds: float,
    ) -> AsyncGenerator[bytes]:
        """Open a watch and return its lines until it ends; for :mod:`wavetank.kube.watch`.

        Args:
            resource: Which kind.
            namespace: None means all.
            query: labelSelector, resourceVersion, timeoutSeconds.
            silence_seconds: After so long without a byte the stream counts as cut (Unavailable).
        """
        asked = {**query, "watch": "true", "allowWatchBookmarks": "true"}
        call = Call("watch", resource, namespace, query=asked)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silence_seconds)
        return _lines_of(call.described, await self.transport.open(call, timeout))

    async def _all_parts(self, first: Call) -> Listing:
        items: list[Manifest] = []
        query = dict(first.query or {})
        part = await self.transport.json(first)
        query.pop("resourceVersion", None)
        while True:
            for item in part.get("items") or ():
                # Items of a list leave these out (or name the form without spec and status).
                item["apiVersion"] = first.resource.api_version
                item["kind"] = first.resource.kind
                items.append(item)
            metadata = part["metadata"]
            if not metadata.get("continue"):
                return Listing(items, str(metadata.get("resourceVersion", "")))
            query["continue"] = metadata["continue"]
            part = await self.transport.json(replace(first, query=dict(query)))


async def _lines_of(request: Request, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    try:
        with answered(request):
            async for line in response.content:
                yield line
    finally:
        drop(response)


@asynccontextmanager
async def open_client(
    kubeconfig: Kubeconfig | None = None,
    settings: ClientSettings | None = None,
    observer: Observer | None = None,
) -> AsyncIterator[Client]:
    """Give a client and close it in the end.

    Args:
        kubeconfig: The file and context; None means the Pod's own service account.
        settings: How hard it may lean on the API server.
        observer: Told of every request.

    Raises:
        ClusterError: If the kubeconfig or the service account cannot be read.
    """
    client = Client(await connect(kubeconfig), settings, observer)
    try:
        yield client
    finally:
        await client.close()
