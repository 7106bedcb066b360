"""The store of one local Run: the real server in this process, on a free port, over a folder.

So worlds, agents and judges do here what they do in a cluster, and evidence lies where people can
see it. What this process needs of it is read from the folder itself.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from wavetank.api.execution import seal_seen
from wavetank.api.wire import BundleRef, BundleSet, Grant, Operation, Seal, SessionEnd
from wavetank.bundles import pack
from wavetank.core.identity import AttemptKey
from wavetank.core.observed import SealSeen
from wavetank.store.objects import Objects
from wavetank.store.server import create_app
from wavetank.store.settings import Settings
from wavetank.store.tokens import make_key, sign
from wavetank.worlds.serving import Server

Clock = Callable[[], datetime]

_VALID = timedelta(days=7)
"""How long this process's tokens are good: no local Run takes that long in one go."""


@dataclass(frozen=True)
class LocalStore:
    """A store that is served now."""

    url: str
    folder: Path
    private_pem: bytes
    """Of a key that lives as long as this process."""
    now: Clock

    def token(self, get: Sequence[str] = (), create: Sequence[str] = ()) -> str:
        """Return a token to read, and to put once, what lies below these prefixes."""
        grants = [Grant(operation=Operation.GET, prefix=prefix) for prefix in get]
        grants += [Grant(operation=Operation.CREATE, prefix=prefix) for prefix in create]
        return sign(self.private_pem, grants, self.now() + _VALID)


@asynccontextmanager
async def served(folder: Path, key_file: Path, clock: Clock) -> AsyncIterator[LocalStore]:
    """Serve a folder until the block ends.

    Args:
        folder: For the objects.
        key_file: Takes the public half of a new key.
        clock: Gives the moment, UTC.
    """
    private, public = make_key()
    key_file.write_bytes(public)
    settings = Settings(folder=folder, public_key_file=key_file)
    objects = Objects(settings)
    objects.sweep()
    server = Server(create_app(settings, objects, clock), "127.0.0.1", 0)
    serving = asyncio.create_task(server.run_until_told())
    try:
        yield LocalStore(server.url, folder, private, clock)
    finally:
        server.should_exit = True
        await serving


def bundle_paths(refs: Sequence[BundleRef]) -> list[str]:
    """Return the paths of these bundles."""
    return [f"/v1/bundles/{digest}" for digest in sorted({ref.digest for ref in refs})]


def packed(folders: Mapping[str, Path]) -> tuple[BundleSet, dict[str, bytes]]:
    """Pack a benchmark, split by who may fetch what.

    Args:
        folders: By alias; the benchmark's own under the empty one.

    Returns:
        The references, and the archives by digest.

    Raises:
        SpecError: With every file that no bundle may hold.
    """
    archives: dict[str, bytes] = {}
    refs: dict[str, list[BundleRef]] = {"agent": [], "grader": [], "solutions": []}
    for alias, folder in folders.items():
        halves = pack.split(pack.read_folder(folder))
        for part, files in (
            ("agent", halves.agent),
            ("grader", halves.grader),
            ("solutions", halves.solutions),
        ):
            digest = pack.digest_of(files)
            archives[digest] = pack.pack(files)
            refs[part].append(BundleRef(alias=alias, digest=digest))
    return BundleSet(**refs), archives


def keep(folder: Path, archives: Mapping[str, bytes]) -> None:
    """Write archives where the store has its bundles."""
    place = folder / "v1" / "bundles"
    place.mkdir(parents=True, exist_ok=True)
    for digest, archive in archives.items():
        part = place / f".{digest}.part"
        part.write_bytes(archive)
        part.replace(place / digest)


def read(folder: Path, path: str) -> bytes | None:
    """Return what was put at a path of a store's folder; None when nothing was."""
    file = folder / path.lstrip("/")
    return file.read_bytes() if file.is_file() else None


def attempt_path(run_uid: str, key: AttemptKey) -> str:
    """Return the path of the evidence of an attempt."""
    return f"/v1/runs/{run_uid}/{key.ordinal}/{key.attempt}"


def take_up(
    folder: Path, run_uid: str, is_over: Callable[[AttemptKey], bool]
) -> dict[AttemptKey, SealSeen]:
    """Return the sealed ends that an earlier process has left, and clear away what was cut short.

    What has no seal, or was interrupted, says nothing about its agent: that attempt is made again
    under its own number, so its place in the store must be free.

    Args:
        folder: Of the store.
        run_uid: Whose ends.
        is_over: Whether the ledger has the word on an attempt: it is left as it is.
    """
    root = folder / "v1" / "runs" / run_uid
    seals: dict[AttemptKey, SealSeen] = {}
    for place in root.glob("[0-9]*/[0-9]*"):
        key = AttemptKey(int(place.parent.name), int(place.name))
        if is_over(key):
            continue
        seal = _seal(place / "seal")
        seen = seal_seen(seal, key, run_uid)
        if seal is None or seen is None or seal.end is SessionEnd.INTERRUPTED:
            shutil.rmtree(place)
        else:
            seals[key] = seen
    return seals


def _seal(file: Path) -> Seal | None:
    try:
        return Seal.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None
