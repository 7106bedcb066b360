"""``wavetank benchmarks push``: a folder becomes a World, its links, and a Benchmark."""

import asyncio
import base64
import re
from dataclasses import dataclass
from pathlib import Path

import click

from wavetank.api.benchmark import Benchmark
from wavetank.api.conditions import is_true
from wavetank.api.kinds import API_VERSION, read
from wavetank.api.world import World
from wavetank.bundles import pack
from wavetank.bundles.pack import Files
from wavetank.bundles.world import ReadWorld, linked_folders
from wavetank.bundles.world import read as read_world
from wavetank.cli import render
from wavetank.cli.target import AT_FAULT, Target, carry_out, target_options
from wavetank.core.errors import ClusterError, Finding, Severity, SpecError
from wavetank.kube.client import Client, open_client
from wavetank.kube.errors import AlreadyExists
from wavetank.kube.objects import BENCHMARKS, CONFIGMAPS, WORLDS, Manifest, owner_reference, uid_of
from wavetank.kube.proxy import ServiceProxy

CONFIG_MAP_BYTES = 700_000
"""Largest packed bundle that travels in a ConfigMap: 1 MiB holds it with base64's third more."""

_POLL_SECONDS = 0.5
_CHECK_SECONDS = 600.0
"""How long the cluster's check is waited for."""


@dataclass(frozen=True)
class Piece:
    """One folder to bring: a world of its own, with the names of the worlds it is linked to."""

    name: str
    files: Files
    links: dict[str, str]
    """World's name by alias."""

    @property
    def digest(self) -> str:
        """Return the bundle's digest."""
        return pack.digest_of(self.files)


@click.command(epilog="Example:  wavetank benchmarks push ./crm-bench -n bench")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--name", help="Of World and Benchmark; [world] name when not given.")
@click.option("--kind", type=click.Choice(["world"]), help="What the folder must be.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@target_options
def push(target: Target, folder: Path, name: str | None, kind: str | None, as_json: bool) -> None:
    """Bring the bundle in FOLDER, and the worlds it is linked to, to the cluster.

    The whole bundle is read first: with a fault in it nothing is written. Then the cluster
    checks it; exit code 1 when it finds faults.
    """
    del kind  # A folder is read as a world, or it is at fault: there is one kind so far.
    carry_out(lambda: _push(target, folder, name, as_json=as_json))


async def _push(target: Target, folder: Path, name: str | None, *, as_json: bool) -> int:
    linked = dict(linked_folders(folder))
    bundle = read_world(folder, linked)
    if bundle.faults:
        raise SpecError(bundle.faults)
    pieces = _pieces(folder, linked, bundle, name)
    main = pieces[-1]
    async with open_client(target.kubeconfig) as client:
        await _require_free(client, target.namespace, main.name)
        for piece in pieces:
            await _bring(client, target.namespace, piece, quiet=as_json)
        ready = True
        if bundle.tasks:
            await _apply_benchmark(client, target.namespace, main.name)
            ready = await _await_benchmark(client, target.namespace, main.name, as_json=as_json)
    return 0 if ready else AT_FAULT


def _pieces(
    folder: Path, linked: dict[str, Path], bundle: ReadWorld, name: str | None
) -> list[Piece]:
    """Return the folders to bring, the linked ones first."""
    names = {alias: _slug(bundle.linked[alias].name, path) for alias, path in linked.items()}
    pieces = [Piece(names[alias], pack.read_folder(path), {}) for alias, path in linked.items()]
    own = _slug(name or bundle.main.name, folder)
    if own in names.values():
        words = f"this world and one that it is linked to are both named {own!r}: give --name."
        raise SpecError([Finding(Severity.FAULT, str(folder), words)])
    return [*pieces, Piece(own, pack.read_folder(folder), names)]


def _slug(name: str, folder: Path) -> str:
    """Return an object's name for a world.

    >>> _slug("CRM bench", Path("."))
    'crm-bench'
    """
    text = name or folder.resolve().name
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:200].strip("-")
    if not slug:
        words = f"no object can be named after {text!r}: give --name."
        raise SpecError([Finding(Severity.FAULT, str(folder), words)])
    return slug


async def _require_free(client: Client, namespace: str, name: str) -> None:
    """Refuse before anything is written where a Benchmark of that name is of another world."""
    raw = await client.find(BENCHMARKS, namespace, name)
    if raw is None:
        return
    other = read(Benchmark, raw).spec.world.world_ref.name
    if other != name:
        words = (
            f"{namespace} has a Benchmark of this name that runs on World {other!r}. "
            f"Give another --name, or delete it."
        )
        raise SpecError([Finding(Severity.FAULT, f"benchmark {name}", words)])


async def _bring(client: Client, namespace: str, piece: Piece, *, quiet: bool) -> None:
    """Apply one World, its bundle in a ConfigMap or, if larger, in the store."""
    packed = pack.pack(piece.files)
    if len(packed) <= CONFIG_MAP_BYTES:
        name = f"{piece.name}-bundle-{piece.digest[7:19]}"
        await _create_config_map(client, namespace, name, packed)
        world = await _apply_world(client, namespace, piece, {"configMap": {"name": name}})
        owner = owner_reference(WORLDS, piece.name, uid_of(world))
        await client.merge_patch(
            CONFIGMAPS, namespace, name, {"metadata": {"ownerReferences": [owner]}}
        )
    else:
        source = {"bundle": {"digest": piece.digest}}
        world = await _apply_world(client, namespace, piece, source)
        await _upload(client, namespace, piece, packed)
    if not quiet:
        size = f"{len(packed) / 1000:,.1f} kB"
        click.echo(f"World {piece.name}: {len(piece.files)} files, {size}, {piece.digest[:19]}…")


async def _create_config_map(client: Client, namespace: str, name: str, packed: bytes) -> None:
    body: Manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": "wavetank"}},
        "immutable": True,
        "binaryData": {"bundle.tar.zst": base64.b64encode(packed).decode()},
    }
    try:
        await client.create(CONFIGMAPS, namespace, body)
    except AlreadyExists:
        return  # It is named after its content.


async def _apply_world(client: Client, namespace: str, piece: Piece, source: Manifest) -> Manifest:
    spec: Manifest = {"source": source}
    if piece.links:
        spec["dependencies"] = [
            {"alias": alias, "worldRef": {"name": name}} for alias, name in piece.links.items()
        ]
    return await client.apply(WORLDS, namespace, piece.name, {"spec": spec})


async def _upload(client: Client, namespace: str, piece: Piece, packed: bytes) -> None:
    """Bring a bundle's bytes to the store, by the token that the World's status offers."""
    deadline = asyncio.get_running_loop().time() + _CHECK_SECONDS
    path = f"/v1/bundles/{piece.digest}"
    while True:
        world = read(World, await client.get(WORLDS, namespace, piece.name))
        upload = world.status.upload
        if world.status.observed_generation == world.metadata.generation:
            if upload is None and world.status.bundle is not None:
                return  # The store has it already.
            if upload is not None and upload.path == path:
                break
        if asyncio.get_running_loop().time() > deadline:
            raise ClusterError(f"the operator offered no upload for World {piece.name}")
        await asyncio.sleep(_POLL_SECONDS)
    where, _, port = upload.service.rpartition(":")
    store_namespace, _, service = where.partition("/")
    proxy = ServiceProxy(client, store_namespace, service, int(port))
    answer = await proxy.put(path, upload.token, packed)
    if not answer.is_success:
        raise ClusterError(f"the store refused the bundle: {answer.body.decode(errors='replace')}")


async def _apply_benchmark(client: Client, namespace: str, name: str) -> None:
    await client.apply(
        BENCHMARKS, namespace, name, {"spec": {"world": {"worldRef": {"name": name}}}}
    )


async def _await_benchmark(client: Client, namespace: str, name: str, *, as_json: bool) -> bool:
    """Wait for the check of what was pushed, tell what it found, and whether it is good."""
    deadline = asyncio.get_running_loop().time() + _CHECK_SECONDS
    with render.console.status(f"The cluster checks {name} …"):
        while True:
            world = read(World, await client.get(WORLDS, namespace, name))
            benchmark = read(Benchmark, await client.get(BENCHMARKS, namespace, name))
            if _is_checked(world, benchmark):
                break
            if asyncio.get_running_loop().time() > deadline:
                words = next((c.message for c in benchmark.status.conditions), "no word yet")
                raise ClusterError(f"Benchmark {name} was not checked in time: {words}")
            await asyncio.sleep(_POLL_SECONDS)
    status = benchmark.status
    ready = is_true(status.conditions, "Ready")
    if as_json:
        render.print_json(
            {
                "name": name,
                "namespace": namespace,
                "apiVersion": API_VERSION,
                "ready": ready,
                "status": benchmark.document().get("status"),
            }
        )
        return ready
    for verifier in status.verifiers:
        score = verifier.initial_score or f"null ({verifier.cause})"
        click.echo(f"verifiers.{verifier.name}.initial_score  {score}")
    for finding in status.findings:
        click.echo(f"{finding.severity}: {finding.path}: {finding.message}")
    words = f"{status.tasks} tasks, initial mean {status.initial_mean or '-'}"
    click.echo(f"Benchmark {name} in {namespace} {'is ready' if ready else 'has faults'}: {words}.")
    return ready


def _is_checked(world: World, benchmark: Benchmark) -> bool:
    status = benchmark.status
    current = status.observed_generation == benchmark.metadata.generation
    world_current = world.status.observed_generation == world.metadata.generation
    reasons = {c.reason for c in status.conditions if c.type == "Ready"}
    over = bool(reasons & {"Checked", "FaultsFound", "CheckFailed"})
    return current and world_current and world.status.checked is not None and over
