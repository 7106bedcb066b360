"""Brings bundles and end states from the store into the folder that grade reads."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from wavetank.api.wire import BundleRef, GradeMember, GradeSpec
from wavetank.bundles import pack
from wavetank.bundles.archive import CAPS, Caps
from wavetank.core.errors import SpecError
from wavetank.store.client import StoreClient, StoreRefused, until
from wavetank.worlds.grading import exchange

_AT_ONCE = 4
"""Transfers at a time: more would only wait for the same store."""


_SNAPSHOT_CAPS = replace(CAPS, ratio=1 << 20)
"""An agent may fill its state with one letter: that packs to next to nothing, and is graded as any
other. How large a state can become is limited where it is made."""


_VERIFIERS = "verifiers/*"


class FetchError(Exception):
    """Something that was asked for is not to be had, whatever one waits."""


async def fetch_bundles(
    store: StoreClient, refs: Sequence[BundleRef], inbox: Path, deadline: float
) -> None:
    """Unpack bundles where grade looks for them; later ones of an alias lie over earlier ones.

    Raises:
        FetchError: If the store refuses one, or it is damaged.
        StoreUnavailable: If the store does not answer until the deadline.
    """
    for ref in refs:
        archive = inbox / "bundle.tar.zst"
        path = f"/v1/bundles/{ref.digest}"
        await _fetch(store, path, archive, deadline)
        folder = exchange.bundle_folder(inbox, ref.alias)
        older = set(folder.glob(_VERIFIERS))
        digest = _unpacked(archive, folder, path)
        _replace(older, set(folder.glob(_VERIFIERS)) - older)
        if digest != ref.digest:
            raise FetchError(f"the bundle at {path} has the digest {digest}")


def _replace(older: Collection[Path], newer: Collection[Path]) -> None:
    """Remove the verifiers that newer ones of the same name replace, though of another kind."""
    names = {path.stem for path in newer}
    for path in older:
        if path.stem in names:
            path.unlink()


async def fetch_members(
    store: StoreClient, spec: GradeSpec, inbox: Path, deadline: float
) -> list[str]:
    """Unpack the members' end states and return what is wrong with those that are not to be had.

    Raises:
        StoreUnavailable: If the store does not answer until the deadline.
    """
    (inbox / "members").mkdir(exist_ok=True)
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(member: GradeMember) -> str | None:
        async with slots:
            try:
                await _fetch_member(store, spec.run, member, inbox, deadline)
            except FetchError as error:
                return f"{exchange.member_name(member.ordinal, member.attempt)}: {error}"
        return None

    found = await asyncio.gather(*(one(member) for member in spec.members))
    return [problem for problem in found if problem is not None]


async def _fetch_member(
    store: StoreClient, run: str, member: GradeMember, inbox: Path, deadline: float
) -> None:
    folder = exchange.member_folder(inbox, member.ordinal, member.attempt)
    archive = folder.with_name(f"{folder.name}.tar.zst")
    path = f"/v1/runs/{run}/{member.ordinal}/{member.attempt}/snapshot"
    digest = await _fetch(store, path, archive, deadline)
    if digest != member.snapshot:
        raise FetchError(f"the snapshot has the digest {digest}, not the sealed {member.snapshot}")
    # Under another name until it is whole: grade takes a folder that is there for complete.
    part = folder.with_name(f"{folder.name}.part")
    _unpacked(archive, part, path, _SNAPSHOT_CAPS)
    part.rename(folder)


async def _fetch(store: StoreClient, path: str, file: Path, deadline: float) -> str:
    try:
        return await until(deadline, lambda: store.get_to_file(path, file))
    except StoreRefused as error:
        raise FetchError(f"{path}: {error}") from error


def _unpacked(archive: Path, folder: Path, path: str, caps: Caps = CAPS) -> str:
    try:
        return pack.unpack(archive, folder, caps)
    except SpecError as error:
        raise FetchError(f"{path} cannot be unpacked: {error}") from error
    finally:
        archive.unlink()
