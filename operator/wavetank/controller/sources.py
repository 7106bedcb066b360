"""The files of a World or Benchmark, as packed bundles in the store. Bytes only: nothing is run.

Called by the reconcilers of World and Benchmark. What people brought is read here only as far as
its paths; the check Job reads the rest.
"""

import asyncio
import base64
import binascii
import json
from dataclasses import dataclass

from wavetank.api.benchmark import WorldBenchmark
from wavetank.api.fields import Digests
from wavetank.api.wire import BundleRef, BundleSet
from wavetank.api.world import ConfigMapSource, Source
from wavetank.bundles import pack
from wavetank.bundles.pack import PLAIN, BundleFile, Files
from wavetank.core.errors import Finding, Severity, SpecError
from wavetank.kube.client import Client
from wavetank.kube.objects import CONFIGMAPS
from wavetank.store.client import StoreClient

ARCHIVE_KEY = "bundle.tar.zst"


@dataclass(frozen=True)
class StoredBundle:
    """A bundle whose three parts are in the store."""

    whole: str
    """Digest of the manifest of all files."""
    digests: Digests

    def refs(self, alias: str = "") -> BundleSet:
        """Return the parts as what Pods are given, under a world's alias."""
        return BundleSet(
            agent=[BundleRef(alias=alias, digest=self.digests.agent)],
            grader=[BundleRef(alias=alias, digest=self.digests.grader)],
            solutions=[BundleRef(alias=alias, digest=self.digests.solutions)],
        )


async def world_files(
    client: Client, store: StoreClient, namespace: str, source: Source
) -> dict[str, BundleFile]:
    """Return a World's files, from wherever its source says they are.

    Raises:
        SpecError: If the source names what is not there or cannot be a bundle.
        ClusterError: If the API server or the store did not answer.
    """
    if source.inline is not None:
        return {file.path: BundleFile(PLAIN, file.content.encode()) for file in source.inline}
    if source.config_map is not None:
        return await _from_config_map(client, namespace, source.config_map)
    if source.bundle is None:
        raise SpecError([_fault("spec.source", "has none of inline, configMap and bundle")])
    data = await store.get(f"/v1/bundles/{source.bundle.digest}")
    return await asyncio.to_thread(_unpacked, data, "spec.source.bundle")


@dataclass(frozen=True)
class PackedBundle(StoredBundle):
    """A bundle's files beside their digests, not yet in the store perhaps."""

    parts: tuple[Files, Files, Files]
    """Agent, grader, solutions."""


def packed(files: Files) -> PackedBundle:
    """Split a bundle's files by who may fetch them, and name the parts by digest."""
    halves = pack.split(files)
    parts = (halves.agent, halves.grader, halves.solutions)
    agent, grader, solutions = (pack.digest_of(part) for part in parts)
    return PackedBundle(
        whole=pack.digest_of(files),
        digests=Digests(agent=agent, grader=grader, solutions=solutions),
        parts=parts,
    )


async def put_bundle(store: StoreClient, bundle: PackedBundle) -> None:
    """Put a bundle's parts into the store, unless they are there.

    Raises:
        SpecError: If the files have names that no bundle may hold.
        StoreUnavailable: If the store does not answer.
    """
    digests = (bundle.digests.agent, bundle.digests.grader, bundle.digests.solutions)
    for digest, part in zip(digests, bundle.parts, strict=True):
        path = f"/v1/bundles/{digest}"
        if not await store.exists(path):
            await store.put(path, await asyncio.to_thread(pack.pack, part))


def overlay_files(world: WorldBenchmark) -> dict[str, BundleFile]:
    """Return a Benchmark's own tasks and verifiers as files that lie over its world's."""
    files: dict[str, BundleFile] = {}
    if world.tasks is not None:
        text = json.dumps({"tasks": [task.entry() for task in world.tasks]}, indent=1)
        files["benchmark.json"] = BundleFile(PLAIN, text.encode())
    for verifier in world.verifiers:
        files[f"verifiers/{verifier.name}.sql"] = BundleFile(PLAIN, verifier.sql.encode())
    return files


def joined(*sets: BundleSet) -> BundleSet:
    """Return bundle sets as one, in order: later ones lie over earlier ones."""
    return BundleSet(
        agent=[ref for one in sets for ref in one.agent],
        grader=[ref for one in sets for ref in one.grader],
        solutions=[ref for one in sets for ref in one.solutions],
    )


async def _from_config_map(
    client: Client, namespace: str, source: ConfigMapSource
) -> dict[str, BundleFile]:
    path = "spec.source.configMap"
    item = await client.find(CONFIGMAPS, namespace, source.name)
    if item is None:
        raise SpecError([_fault(path, f"there is no ConfigMap {source.name!r} in {namespace}.")])
    text: dict[str, str] = item.get("data") or {}
    binary: dict[str, str] = item.get("binaryData") or {}
    if source.items is None:
        if ARCHIVE_KEY not in binary:
            raise SpecError(
                [
                    _fault(
                        path,
                        f"ConfigMap {source.name!r} has no key {ARCHIVE_KEY!r} in binaryData. "
                        f"Make it by `wavetank benchmarks push`, or list its keys as items.",
                    )
                ]
            )
        return await asyncio.to_thread(_unpacked, _decoded(binary[ARCHIVE_KEY], path), path)
    missing = [item.key for item in source.items if item.key not in text and item.key not in binary]
    if missing:
        known = ", ".join(sorted([*text, *binary])) or "none"
        raise SpecError(
            [
                _fault(
                    f"{path}.items", f"ConfigMap {source.name!r} has no key {key!r}; keys: {known}."
                )
                for key in missing
            ]
        )
    return {
        item.path: BundleFile(
            PLAIN,
            text[item.key].encode() if item.key in text else _decoded(binary[item.key], path),
        )
        for item in source.items
    }


def _decoded(text: str, path: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise SpecError([_fault(path, f"binaryData is not base64: {error}.")]) from error


def _unpacked(data: bytes, path: str) -> dict[str, BundleFile]:
    """Return the files of a packed bundle."""
    try:
        return pack.read_archive(data)
    except SpecError as error:
        raise SpecError(
            [Finding(f.severity, f"{path}: {f.path}", f.message) for f in error.findings]
        ) from error


def _fault(path: str, message: str) -> Finding:
    return Finding(Severity.FAULT, path, message)
