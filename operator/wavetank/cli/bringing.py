"""Brings worlds to the cluster: by ConfigMap or through the store, as Worlds and a Benchmark."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from wavetank.api.kinds import read
from wavetank.api.world import Upload, World
from wavetank.bundles import pack
from wavetank.cli import render
from wavetank.cli.packing import Piece
from wavetank.cli.store import refusal, store_at
from wavetank.cli.target import Place
from wavetank.core.errors import ClusterError, Finding, Severity, SpecError
from wavetank.kube.errors import AlreadyExists
from wavetank.kube.objects import (
    BENCHMARKS,
    CONFIGMAPS,
    WORLDS,
    Manifest,
    owner_reference,
    uid_of,
)

CONFIG_MAP_BYTES = 700_000
"""Largest packed bundle that travels in a ConfigMap: 1 MiB holds it with base64's third more."""

_BUNDLE_LABELS = {
    "app.kubernetes.io/part-of": "wavetank",
    "app.kubernetes.io/component": "bundle",
}
_POLL_SECONDS = 0.5
_OFFER_SECONDS = 120.0
"""How long the operator is waited for until it offers a place for an upload."""
_PART_BYTES = 256 * 1024


class Change(StrEnum):
    """What a push did to a World."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Brought:
    """A World as it was brought."""

    piece: Piece
    packed_bytes: int
    change: Change


async def require_free(place: Place, pieces: list[Piece]) -> None:
    """Refuse, before anything is written, where other things have the names that are needed.

    A World that was applied by other means may stand for a piece that has the same files.

    Raises:
        SpecError: With each World or Benchmark that was not pushed, but written by other means.
    """
    refused: list[Finding] = []
    for piece in pieces:
        raw = await place.client.find(WORLDS, place.namespace, piece.name)
        if raw is not None and not _is_pushed(raw) and not _holds(raw, piece):
            words = (
                f"{place.namespace} has a World of this name that was not pushed: its source is "
                f"{next(iter(raw['spec']['source']))}. Delete it, or give this one another name: "
                f"--name, or [world] name in {piece.folder / 'gateway-env.toml'}."
            )
            refused.append(Finding(Severity.FAULT, f"World {piece.name}", words))
    main = pieces[-1]
    raw = await place.client.find(BENCHMARKS, place.namespace, main.name)
    if main.has_tasks and raw is not None and raw["spec"].get("world") != _world_of(main):
        words = (
            f"{place.namespace} has a Benchmark of this name that was not pushed: it has another "
            f"world, or tasks of its own. Delete it, or give --name."
        )
        refused.append(Finding(Severity.FAULT, f"Benchmark {main.name}", words))
    if refused:
        raise SpecError(refused)


def _is_pushed(world: Manifest) -> bool:
    """Tell whether a World's source is as ``bring`` writes it."""
    source, name = world["spec"]["source"], world["metadata"]["name"]
    config_map = source.get("configMap") or {}
    return "bundle" in source or config_map.get("name", "").startswith(f"{name}-bundle-")


def _holds(world: Manifest, piece: Piece) -> bool:
    """Tell whether a World has these very files and links already, by whatever means."""
    status, spec = world.get("status", {}), world["spec"]
    links = {link["alias"]: link["worldRef"]["name"] for link in spec.get("dependencies", ())}
    current = status.get("observedGeneration") == world["metadata"]["generation"]
    return current and status.get("bundle") == piece.digest and links == piece.links


def _world_of(piece: Piece) -> Manifest:
    return {"worldRef": {"name": piece.name}}


async def bring(place: Place, piece: Piece) -> Brought:
    """Apply one World, its bundle in a ConfigMap or, if larger, in the store."""
    packed = pack.pack(piece.files)
    before = await place.client.find(WORLDS, place.namespace, piece.name)
    if before is not None and not _is_pushed(before):
        return Brought(piece, len(packed), Change.UNCHANGED)
    spec = _spec(piece, len(packed))
    if len(packed) <= CONFIG_MAP_BYTES:
        await _by_config_map(place, piece, spec, packed)
    else:
        await place.client.apply(WORLDS, place.namespace, piece.name, {"spec": spec})
        await _upload(place, piece, packed)
    if before is None:
        return Brought(piece, len(packed), Change.NEW)
    old = {name: before["spec"].get(name) for name in spec}
    return Brought(piece, len(packed), Change.UNCHANGED if old == spec else Change.CHANGED)


def _spec(piece: Piece, packed_bytes: int) -> Manifest:
    small = packed_bytes <= CONFIG_MAP_BYTES
    source: Manifest = (
        {"configMap": {"name": _config_map_name(piece)}}
        if small
        else {"bundle": {"digest": piece.digest}}
    )
    links = [
        {"alias": alias, "worldRef": {"name": name}} for alias, name in sorted(piece.links.items())
    ]
    return {"source": source, **({"dependencies": links} if links else {})}


def _config_map_name(piece: Piece) -> str:
    return f"{piece.name}-bundle-{piece.digest.removeprefix('sha256:')[:12]}"


async def _by_config_map(place: Place, piece: Piece, spec: Manifest, packed: bytes) -> None:
    name = _config_map_name(piece)
    body: Manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": _BUNDLE_LABELS},
        "immutable": True,
        "binaryData": {"bundle.tar.zst": base64.b64encode(packed).decode()},
    }
    with suppress(AlreadyExists):  # It is named after its content.
        await place.client.create(CONFIGMAPS, place.namespace, body)
    world = await place.client.apply(WORLDS, place.namespace, piece.name, {"spec": spec})
    owner = owner_reference(WORLDS, piece.name, uid_of(world))
    patch = {"metadata": {"ownerReferences": [owner]}}
    await place.client.merge_patch(CONFIGMAPS, place.namespace, name, patch)


async def _upload(place: Place, piece: Piece, packed: bytes) -> None:
    """Bring a bundle's bytes to the store, by the token that the World's status offers."""
    upload = await _offer(place, piece)
    if upload is None:
        return  # The store has it already.
    store = store_at(place, upload.service, upload.token)
    with store.reached(), render.transfer(f"Uploading {piece.name}", len(packed)) as count:
        answer = await store.service.put(upload.path, store.token, _parts(packed, count))
    if not answer.is_success:
        raise refusal(answer.body)


async def _parts(packed: bytes, count: Callable[[int], None]) -> AsyncIterator[bytes]:
    for start in range(0, len(packed), _PART_BYTES):
        part = packed[start : start + _PART_BYTES]
        yield part
        count(len(part))


async def _offer(place: Place, piece: Piece) -> Upload | None:
    """Wait for the operator to offer a place for a bundle; None when it has the bundle."""
    deadline = asyncio.get_running_loop().time() + _OFFER_SECONDS
    with render.waiting(f"Waiting for the operator to take bundle {piece.name}"):
        while asyncio.get_running_loop().time() < deadline:
            raw = await place.client.get(WORLDS, place.namespace, piece.name)
            status, generation = read(World, raw).status, raw["metadata"]["generation"]
            if status.observed_generation == generation:
                if status.upload is not None and status.upload.path.endswith(piece.digest):
                    return status.upload
                if status.bundle == piece.digest:
                    return None
            await asyncio.sleep(_POLL_SECONDS)
    raise ClusterError(
        f"no operator offered a place for bundle {piece.name} within {_OFFER_SECONDS:.0f} s. "
        f"Is one running? kubectl get pods -A -l app.kubernetes.io/part-of=wavetank"
    )


async def apply_benchmark(place: Place, piece: Piece) -> None:
    """Apply the Benchmark of a world with tasks."""
    fields = {"spec": {"world": _world_of(piece)}}
    await place.client.apply(BENCHMARKS, place.namespace, piece.name, fields)


async def sweep(place: Place, pieces: list[Piece]) -> None:
    """Delete the ConfigMaps of these Worlds' earlier bundles; what was packed is in the store."""
    labels = ",".join(f"{key}={value}" for key, value in _BUNDLE_LABELS.items())
    listing = await place.client.list(CONFIGMAPS, place.namespace, label_selector=labels)
    names = {piece.name: _config_map_name(piece) for piece in pieces}
    for item in listing.items:
        owners = item["metadata"].get("ownerReferences") or [{}]
        wanted = names.get(owners[0].get("name", ""))
        if wanted is not None and item["metadata"]["name"] != wanted:
            await place.client.delete(
                CONFIGMAPS, place.namespace, item["metadata"]["name"], uid=uid_of(item)
            )
