"""Fetches what the store keeps of an attempt, through the API server."""

import base64
from http import HTTPStatus
from pathlib import Path

import zstandard

from wavetank.api.run import Run
from wavetank.bundles import pack
from wavetank.cli import render
from wavetank.cli.store import Store, refusal, store_at
from wavetank.cli.target import Place
from wavetank.core.errors import ClusterError
from wavetank.core.identity import tokens_name
from wavetank.kube.objects import SECRETS


async def download(place: Place, run: Run, path: str, folder: Path) -> bool:
    """Write an attempt's snapshot, seal and log into a folder.

    Args:
        place: The Run's namespace.
        run: Whose attempt it is.
        path: Of the attempt in the store.
        folder: Is there.

    Returns:
        False when the store has no snapshot of that attempt.

    Raises:
        ClusterError: If the store did not answer, or refused the Run's token.
    """
    store = await _store(place, run)
    with store.reached():
        if not await _snapshot(store, f"{path}/snapshot", folder):
            return False
        seal = await store.service.get(f"{path}/seal", store.token)
        log = await store.service.get(f"{path}/agent-log", store.token)
    if seal.is_success:
        (folder / "seal.json").write_bytes(seal.body)
    if log.is_success:
        (folder / "agent.log").write_bytes(zstandard.ZstdDecompressor().decompress(log.body))
    return True


async def _snapshot(store: Store, path: str, folder: Path) -> bool:
    archive = folder / ".snapshot"
    try:
        with archive.open("wb") as packed:
            async with store.service.download(path, store.token) as answer:
                with render.transfer("Downloading", answer.length) as count:
                    async for part in answer.parts:
                        packed.write(part)
                        count(len(part))
        if answer.status == HTTPStatus.NOT_FOUND:
            return False
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise refusal(archive.read_bytes())
        pack.unpack(archive, folder)
    finally:
        archive.unlink(missing_ok=True)
    return True


async def _store(place: Place, run: Run) -> Store:
    """Return the store that has a Run's evidence, with the Run's token for reading."""
    where = run.status.resolved.store if run.status.resolved else None
    if where is None:
        raise ClusterError(f"Run {run.metadata.name} does not say where its store is")
    secret = await place.client.get(
        SECRETS, place.namespace, tokens_name(run.metadata.name, run.metadata.uid)
    )
    return store_at(place, where, base64.b64decode(secret["data"]["read"]).decode())
