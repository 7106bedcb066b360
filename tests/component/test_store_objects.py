"""Objects on a folder and on a bucket: the same promises."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from wavetank.store.objects import DiskFullError, Objects, Upload
from wavetank.store.settings import Settings

KEY = "v1/runs/u1/0/1/seal"


@pytest.fixture(params=["", "memory:///"], ids=["folder", "bucket"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    return Objects(Settings(tmp_path, tmp_path / "public.pem", url=request.param))


@asynccontextmanager
async def upload_of(objects: Objects, data: bytes) -> AsyncIterator[Upload]:
    async with objects.receive() as upload:
        await upload.write(data)
        await upload.finish()
        yield upload


async def put(objects: Objects, key: str, data: bytes) -> bool:
    async with upload_of(objects, data) as upload:
        return await objects.keep(upload, key)


async def content(objects: Objects, key: str) -> bytes | None:
    found = await objects.read(key)
    return None if found is None else b"".join([part async for part in found[1]])


async def test_the_first_to_put_a_key_keeps_it(objects: Objects) -> None:
    assert await put(objects, KEY, b"first") is True
    assert await put(objects, KEY, b"other") is False

    assert await content(objects, KEY) == b"first"
    assert await objects.size(KEY) == 5


async def test_of_twenty_at_once_one_creates(objects: Objects) -> None:
    created = await asyncio.gather(*(put(objects, KEY, b"%d" % number) for number in range(20)))

    assert sorted(created) == [False] * 19 + [True]
    assert await content(objects, KEY) == b"%d" % created.index(True)


async def test_nothing_is_left_of_the_way_in(objects: Objects, tmp_path: Path) -> None:
    await put(objects, KEY, b"first")
    await put(objects, KEY, b"other")

    assert await objects.list("incoming") == []
    assert list((tmp_path / "incoming").iterdir()) == []


async def test_what_is_missing_is_none(objects: Objects) -> None:
    assert await objects.size(KEY) is None
    assert await objects.read(KEY) is None


async def test_keys_are_listed_in_order_below_whole_segments(objects: Objects) -> None:
    for key in ("v1/b/2", "v1/b/1", "v1/bb/1", "v1/b/0/1"):
        await put(objects, key, b"x")

    assert await objects.list("v1/b") == ["v1/b/0/1", "v1/b/1", "v1/b/2"]


async def test_sameness_is_of_all_bytes(objects: Objects) -> None:
    await put(objects, KEY, b"first")

    for data, is_same in [(b"first", True), (b"First", False), (b"firs", False)]:
        async with upload_of(objects, data) as upload:
            assert await objects.is_same(upload, KEY) is is_same


async def test_a_sweep_leaves_uploads_that_are_on_their_way(
    objects: Objects, tmp_path: Path
) -> None:
    (tmp_path / "incoming" / "dead").write_bytes(b"half")
    async with objects.receive() as upload:
        assert objects.sweep() == 1

        assert [path.name for path in (tmp_path / "incoming").iterdir()] == [upload.name]


async def test_an_upload_that_leaves_too_little_room_is_refused(tmp_path: Path) -> None:
    objects = Objects(Settings(tmp_path, tmp_path / "public.pem", min_free_bytes=1 << 60))

    with pytest.raises(DiskFullError):
        await put(objects, KEY, b"x")

    assert list((tmp_path / "incoming").iterdir()) == []


async def test_a_cancelled_upload_closes_only_when_its_thread_is_done(tmp_path: Path) -> None:
    objects = Objects(Settings(tmp_path, tmp_path / "public.pem"))

    async def endless() -> None:
        async with objects.receive() as upload:
            while True:
                await upload.write(bytes(4 * 1024 * 1024))

    task = asyncio.create_task(endless())
    while not any(path.stat().st_size for path in (tmp_path / "incoming").iterdir()):
        await asyncio.sleep(0)
        await asyncio.to_thread(lambda: None)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert list((tmp_path / "incoming").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_noticed(tmp_path: Path) -> None:
    objects = Objects(Settings(tmp_path, tmp_path / "public.pem"))
    assert objects.is_writable()

    (tmp_path / "incoming").rmdir()

    assert not objects.is_writable()
