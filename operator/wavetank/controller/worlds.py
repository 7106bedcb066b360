"""The cycle of a World: pack its files, have them checked, say what was found."""

import asyncio
from datetime import timedelta

from wavetank.api.conditions import Says, merged
from wavetank.api.fields import clip
from wavetank.api.kinds import read
from wavetank.api.moments import rfc3339, seconds
from wavetank.api.wire import BundleSet, CheckKind, CheckResult, CheckSpec
from wavetank.api.world import Entity, Upload, World, WorldCounts, WorldStatus
from wavetank.controller.checks import (
    Checked,
    Checker,
    Request,
    findings_of,
    has_faults,
    result_findings,
    summary,
)
from wavetank.controller.logs import get_logger
from wavetank.controller.queue import Key
from wavetank.controller.shell import Shell
from wavetank.controller.sources import (
    PackedBundle,
    StoredBundle,
    joined,
    packed,
    put_bundle,
    world_files,
)
from wavetank.controller.statuses import write_status
from wavetank.controller.storage import Storage, create
from wavetank.core.errors import BugError, Finding, Severity, SpecError
from wavetank.kube.client import Client
from wavetank.kube.objects import WORLDS, Manifest
from wavetank.manifests.objects import CheckOwner
from wavetank.store.client import StoreNotFound

_log = get_logger(__name__)

UPLOAD_SECONDS = 3_600.0
"""How long a token for bringing a bundle is good."""

WAIT_SECONDS = 3.0
"""Between looks at what is not there yet: a linked world, a ConfigMap."""


async def linked_refs(client: Client, world: World) -> BundleSet | list[Finding]:
    """Return the bundles of a World's linked worlds, or which of them are not there yet."""
    sets: list[BundleSet] = []
    missing: list[Finding] = []
    for place, link in enumerate(world.spec.dependencies):
        name = link.world_ref.name
        raw = await client.find(WORLDS, world.metadata.namespace, name)
        where = f"spec.dependencies[{place}].worldRef"
        if raw is None:
            missing.append(Finding(Severity.FAULT, where, f"there is no World {name!r} yet."))
            continue
        other = read(World, raw)
        bundle = stored_bundle(other)
        if bundle is None:
            missing.append(Finding(Severity.FAULT, where, f"World {name!r} is not packed yet."))
        else:
            sets.append(bundle.refs(link.alias))
    return missing or joined(*sets)


def stored_bundle(world: World) -> StoredBundle | None:
    """Return a World's bundle as its status tells; None while that is of an older spec."""
    status = world.status
    current = status.observed_generation == world.metadata.generation
    if not current or status.bundle is None or status.digests is None:
        return None
    return StoredBundle(status.bundle, status.digests)


class WorldReconciler:
    """Looks at Worlds; one instance per operator."""

    def __init__(self, shell: Shell, storage: Storage, checker: Checker) -> None:
        self._shell = shell
        self._storage = storage
        self._checker = checker

    async def __call__(self, key: Key) -> float | None:
        """Look at one World; return in how many seconds to look again at the latest."""
        raw = await self._shell.client.find(WORLDS, key.namespace, key.name)
        if raw is None or raw["metadata"].get("deletionTimestamp"):
            return None
        try:
            world = read(World, raw)
        except SpecError as error:
            _log.warning("world cannot be read", world=f"{key.namespace}/{key.name}", problem=error)
            return None
        try:
            bundle = await self._bundle(world)
        except SpecError as error:
            await self._say_faults(raw, world, list(error.findings), "SourceInvalid")
            return WAIT_SECONDS * 10
        except StoreNotFound:
            return await self._await_upload(world)
        linked = await linked_refs(self._shell.client, world)
        if not isinstance(linked, BundleSet):
            await self._put(bundle)
            await self._say_faults(raw, world, linked, "WaitingForLinks", bundle)
            return WAIT_SECONDS
        return await self._check(raw, world, bundle, joined(bundle.refs(), linked))

    async def _bundle(self, world: World) -> StoredBundle:
        """Return a World's bundle, packed from its source unless it is known by that digest.

        Raises:
            SpecError: If the source names what is not there or cannot be a bundle.
            StoreNotFound: If the source is a bundle that nobody has brought yet.
        """
        source, store, known = world.spec.source, self._storage.client, stored_bundle(world)
        wanted = source.bundle and f"/v1/bundles/{source.bundle.digest}"
        if wanted and known and wanted.endswith(known.whole) and await store.exists(wanted):
            return known
        files = await world_files(self._shell.client, store, world.metadata.namespace, source)
        # What people bring may be large, and looks at everything else must go on.
        return await asyncio.to_thread(packed, files)

    async def _put(self, bundle: StoredBundle) -> None:
        if isinstance(bundle, PackedBundle):
            await put_bundle(self._storage.client, bundle)

    async def _await_upload(self, world: World) -> float:
        """Say where the bytes of a bundle are to be brought, with a token for just that."""
        source, upload = world.spec.source.bundle, world.status.upload
        if source is None:
            raise BugError(f"World {world.metadata.name} waits for a bundle that it does not name")
        now = self._shell.clock()
        path = f"/v1/bundles/{source.digest}"
        left = (seconds(upload.expires_at) or 0.0) - now.timestamp() if upload else 0.0
        if upload is None or upload.path != path or left < UPLOAD_SECONDS / 2:
            valid = timedelta(seconds=UPLOAD_SECONDS)
            upload = Upload(
                service=self._storage.service,
                path=path,
                token=self._storage.token([create(path)], valid),
                expires_at=rfc3339((now + valid).timestamp()),
            )
        words = "The store does not have this bundle yet: bring it by `wavetank benchmarks push`."
        status = self._status(world, Says("Ready", False, "WaitingForUpload", words), None)
        await self._write(world, status.model_copy(update={"upload": upload}))
        return WAIT_SECONDS

    async def _check(
        self, raw: Manifest, world: World, bundle: StoredBundle, bundles: BundleSet
    ) -> float | None:
        meta, status = world.metadata, world.status
        current = status.observed_generation == meta.generation
        if current and status.checked == bundles.digest():
            await self._checker.forget(meta.namespace, meta.uid)
            return None
        try:
            await self._put(bundle)
        except SpecError as error:
            await self._say_faults(raw, world, list(error.findings), "SourceInvalid")
            return WAIT_SECONDS * 10
        request = Request(
            owner=CheckOwner(CheckKind.WORLD, meta.name, meta.namespace, meta.uid),
            spec=CheckSpec(
                kind=CheckKind.WORLD,
                uid=meta.uid,
                generation=meta.generation,
                bundles=bundles,
                aliases=[link.alias for link in world.spec.dependencies],
                store=self._storage.base_url,
            ),
            resources=world.spec.resources,
            runtime_class_name=world.spec.runtime_class_name,
        )
        outcome = await self._checker.check(request)
        if isinstance(outcome, Checked):
            await self._say_checked(raw, world, bundle, outcome.result)
            return None  # the status's own event brings the next look
        says = Says(
            "Ready", None if outcome.again_after else False, outcome.reason, outcome.message
        )
        await self._write(world, self._status(world, says, bundle))
        return outcome.again_after

    async def _say_checked(
        self, raw: Manifest, world: World, bundle: StoredBundle, result: CheckResult
    ) -> None:
        findings = result_findings(result)
        if has_faults(findings):
            says = Says("Ready", False, "FaultsFound", summary(findings))
        else:
            says = Says("Ready", True, "Checked", "The world was checked and can be served.")
        kept, omitted = findings_of(findings)
        changes = {
            "checked": result.bundles.digest(),
            "counts": WorldCounts(
                entities=len(result.entities),
                rows=sum(entity.rows for entity in result.entities),
                tools=len(result.tools),
            ),
            "entities": tuple(Entity(name=e.name, rows=e.rows) for e in result.entities[:500]),
            "tools": tuple(clip(tool, 128) for tool in result.tools[:500]),
            "findings": kept,
            "findings_omitted": omitted,
        }
        status = self._status(world, says, bundle).model_copy(update=changes)
        await self._write(world, status)
        if has_faults(findings):
            await self._shell.events.post(raw, "FaultsFound", summary(findings), warning=True)

    async def _say_faults(
        self,
        raw: Manifest,
        world: World,
        findings: list[Finding],
        reason: str,
        bundle: StoredBundle | None = None,
    ) -> None:
        kept, omitted = findings_of(findings)
        says = Says("Ready", False, reason, summary(findings))
        status = self._status(world, says, bundle)
        changes = {"findings": kept, "findings_omitted": omitted}
        await self._write(world, status.model_copy(update=changes))

    def _status(self, world: World, says: Says, bundle: StoredBundle | None) -> WorldStatus:
        generation = world.metadata.generation
        return WorldStatus(
            conditions=merged(world.status.conditions, [says], generation, self._now()),
            observed_generation=generation,
            bundle=bundle.whole if bundle else None,
            digests=bundle.digests if bundle else None,
        )

    async def _write(self, world: World, status: WorldStatus) -> None:
        if status == world.status:
            return
        meta = world.metadata
        if not await write_status(self._shell.client, WORLDS, meta, status):
            # Changed since it was read: its own event brings the next look, or this does.
            self._shell.enqueue(Key("World", meta.namespace, meta.name), 0.5)

    def _now(self) -> str:
        return rfc3339(self._shell.clock().timestamp())
