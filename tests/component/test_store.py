"""The store as a process of its own, over real sockets."""

import asyncio
import hashlib
import itertools
import json
import signal
import socket
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from wavetank.api.wire import TOKEN_HEADER, Grant, Operation, digest_of
from wavetank.bundles import pack
from wavetank.store.client import StoreClient, StoreNotFound, StoreRefused, StoreUnavailable, until
from wavetank.store.tokens import make_key, sign
from wavetank.testing.store import FAR, RunningStore, running_store

RUN = "/v1/runs/3f2a1b9c-0000-4000-8000-000000000000"
SEAL = f"{RUN}/0/1/seal"
FILES = {
    "schema/world.json": pack.BundleFile(0o644, b"{}"),
    "run.sh": pack.BundleFile(0o755, b"#!"),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStore]:
    with running_store(tmp_path_factory.mktemp("store") / "data") as store:
        yield store


def seal_of(ordinal: int) -> str:
    return f"{RUN}/{ordinal}/1/seal"


async def refused(client: StoreClient, path: str, content: bytes | Path) -> tuple[int, str]:
    with pytest.raises(StoreRefused) as caught:
        await client.put(path, content)
    return caught.value.status, caught.value.kind


async def test_what_was_put_is_got_back(shared: RunningStore) -> None:
    async with shared.client() as client:
        assert await client.put(seal_of(1), b"sealed") is True

        assert await client.get(seal_of(1)) == b"sealed"
        assert await client.exists(seal_of(1))


async def test_the_same_bytes_again_are_a_success_and_other_bytes_a_conflict(
    shared: RunningStore,
) -> None:
    async with shared.client() as client:
        assert await client.put(seal_of(2), b"first") is True
        assert await client.put(seal_of(2), b"first") is False

        assert await refused(client, seal_of(2), b"other") == (409, "Conflict")
        assert await refused(client, seal_of(2), b"longer than first") == (409, "Conflict")
        assert await client.get(seal_of(2)) == b"first"


async def test_of_twenty_writers_at_once_exactly_one_creates(shared: RunningStore) -> None:
    async with shared.client() as client:
        bodies = [f"writer {number}".encode() for number in range(20)]

        results = await asyncio.gather(
            *(client.put(seal_of(3), body) for body in bodies), return_exceptions=True
        )

        assert [r for r in results if r is True] == [True]
        others = [r for r in results if r is not True]
        assert [r.status for r in others if isinstance(r, StoreRefused)] == [409] * 19
        assert await client.get(seal_of(3)) == bodies[results.index(True)]


async def test_of_twenty_writers_of_the_same_bytes_one_creates_and_all_succeed(
    shared: RunningStore,
) -> None:
    async with shared.client() as client:
        results = await asyncio.gather(*(client.put(seal_of(4), b"same") for _ in range(20)))

    assert sorted(results) == [False] * 19 + [True]


async def test_nothing_there_is_not_found(shared: RunningStore) -> None:
    async with shared.client() as client:
        with pytest.raises(StoreNotFound):
            await client.get(seal_of(404))

        assert await client.exists(seal_of(404)) is False


async def test_an_empty_object_is_an_object(shared: RunningStore) -> None:
    async with shared.client() as client:
        assert await client.put(f"{RUN}/5/1/agent-log", b"") is True

        assert await client.get(f"{RUN}/5/1/agent-log") == b""


async def test_a_bundle_is_kept_under_the_digest_of_its_manifest_only(shared: RunningStore) -> None:
    packed = pack.pack(FILES)
    right = f"/v1/bundles/{pack.digest_of(FILES)}"
    async with shared.client() as client:
        assert await refused(client, f"/v1/bundles/{digest_of(packed)}", packed) == (
            422,
            "DigestMismatch",
        )
        assert await client.put(right, packed) is True
        assert await client.put(right, packed) is False

        assert pack.validate_archive(await client.get(right)) == pack.digest_of(FILES)


async def test_a_bundle_that_is_no_archive_is_refused_with_the_reason(shared: RunningStore) -> None:
    async with shared.client() as client:
        with pytest.raises(StoreRefused, match="422 BundleRefused: archive: is no zstd stream"):
            await client.put(f"/v1/bundles/{digest_of(b'text')}", b"text")


@pytest.mark.parametrize("folder", [f"{RUN}/grades", "/v1/checks/3f2a/7"])
async def test_a_document_by_digest_must_hash_to_it(shared: RunningStore, folder: str) -> None:
    async with shared.client() as client:
        assert await client.put(f"{folder}/{digest_of(b'records')}", b"records") is True

        wrong = await refused(client, f"{folder}/{digest_of(b'other')}", b"records")
        assert wrong == (422, "DigestMismatch")


@pytest.mark.parametrize(
    "path",
    [
        f"{RUN}/0/1/reward",
        f"{RUN}/00/1/seal",
        f"{RUN}/0/1/seal/",
        f"{RUN}/0/1/seal/more",
        f"{RUN}//0/1/seal",
        f"{RUN}/../0/1/seal",
        f"{RUN}/%2e%2e/0/1/seal",
        f"{RUN}/0/1/seal%00",
        f"{RUN}/0/1/seal%0a",
        "/v1/bundles/sha256:" + "A" * 64,
        "/v1/bundles/sha512:" + "a" * 64,
        "/v1/incoming/x",
        "/v1/../incoming/x",
        "/v1/",
    ],
)
async def test_a_path_of_no_known_shape_does_not_exist(shared: RunningStore, path: str) -> None:
    status, body = await raw(shared, f"PUT {path} HTTP/1.1", "Content-Length: 1", body=b"x")

    assert (status, json.loads(body)["error"]["type"]) in [(404, "NotFound"), (403, "Forbidden")]


async def raw(
    store: RunningStore, request: str, *headers: str, body: bytes = b"", token: str | None = None
) -> tuple[int, bytes]:
    """Send a request as written, since a client would put its path in order first."""
    host, port = store.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    sent = [f"{TOKEN_HEADER}: {token or store.token()}", "Host: x", "Connection: close", *headers]
    writer.write("\r\n".join([request, *sent, "", ""]).encode() + body)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, rest = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), rest


async def test_paths_are_listed_below_a_prefix_of_whole_segments(shared: RunningStore) -> None:
    async with shared.client() as client:
        for path in ("/v1/runs/aa/0/1/seal", "/v1/runs/aa/0/1/snapshot", "/v1/runs/aab/0/1/seal"):
            await client.put(path, b"x")

        assert await client.list("/v1/runs/aa/") == [
            "/v1/runs/aa/0/1/seal",
            "/v1/runs/aa/0/1/snapshot",
        ]
        assert await client.list("/v1/runs/aa/0/1/") == await client.list("/v1/runs/aa/")
        assert await client.list("/v1/runs/nobody/") == []
        with pytest.raises(StoreRefused, match="404 NotFound: '/v1/runs/aa' is no prefix"):
            await client.list("/v1/runs/aa")


async def test_no_token_is_401_and_says_so(shared: RunningStore) -> None:
    async with httpx.AsyncClient() as http:
        answer = await http.get(f"{shared.url}{SEAL}")

    assert (answer.status_code, answer.json()) == (
        401,
        {"error": {"type": "Unauthorized", "message": f"the header {TOKEN_HEADER} is missing"}},
    )


async def test_a_token_of_another_key_is_401(shared: RunningStore) -> None:
    forged = sign(make_key()[0], [Grant(operation=Operation.CREATE, prefix="/v1")], FAR)
    async with StoreClient(shared.url, forged) as client:
        assert await refused(client, SEAL, b"x") == (401, "Unauthorized")


async def test_a_token_is_good_for_an_hour_after_its_end_and_no_longer(
    shared: RunningStore,
) -> None:
    now = datetime.now(UTC)
    grants = [Grant(operation=Operation.GET, prefix="/v1")]
    async with StoreClient(shared.url, shared.token(grants, now - timedelta(minutes=59))) as late:
        assert await late.exists(seal_of(1234)) is False
    async with StoreClient(shared.url, shared.token(grants, now - timedelta(minutes=61))) as ended:
        with pytest.raises(StoreRefused, match="401 Unauthorized: the token ended at"):
            await ended.get(SEAL)


async def test_a_token_covers_its_own_prefix_and_operation_only(shared: RunningStore) -> None:
    grants = [
        Grant(operation=Operation.CREATE, prefix="/v1/runs/aaa"),
        Grant(operation=Operation.GET, prefix="/v1/runs/aaa/0"),
    ]
    async with shared.client(grants) as client:
        assert await client.put("/v1/runs/aaa/0/1/seal", b"x") is True
        assert await client.get("/v1/runs/aaa/0/1/seal") == b"x"
        assert await client.put("/v1/runs/aaa/1/1/seal", b"x") is True

        assert await refused(client, "/v1/runs/aaab/0/1/seal", b"x") == (403, "Forbidden")
        for step in (client.get("/v1/runs/aaa/1/1/seal"), client.list("/v1/runs/aaa/")):
            with pytest.raises(StoreRefused, match="403 Forbidden"):
                await step


async def test_a_grant_limits_the_size_declared_or_not(
    shared: RunningStore, tmp_path: Path
) -> None:
    grants = [Grant(operation=Operation.CREATE, prefix=f"{RUN}/6", max_bytes=10)]

    async def unannounced() -> AsyncIterator[bytes]:
        yield b"x" * 6
        yield b"x" * 6

    async with shared.client(grants) as client:
        assert await refused(client, f"{RUN}/6/1/seal", b"x" * 11) == (413, "TooLarge")
        assert await client.put(f"{RUN}/6/1/seal", b"x" * 10) is True
    async with httpx.AsyncClient(headers={TOKEN_HEADER: shared.token(grants)}) as http:
        answer = await http.put(f"{shared.url}{RUN}/6/2/seal", content=unannounced())
    assert answer.status_code == 413


async def test_a_large_upload_that_is_refused_still_gets_its_answer(
    shared: RunningStore, tmp_path: Path
) -> None:
    big = tmp_path / "big"
    big.write_bytes(bytes(30 * 1024 * 1024))
    async with shared.client([Grant(operation=Operation.GET, prefix="/v1")]) as client:
        assert await refused(client, f"{RUN}/7/1/snapshot", big) == (403, "Forbidden")


async def test_an_upload_that_is_cut_leaves_nothing(shared: RunningStore) -> None:
    _, writer = await asyncio.open_connection(*shared.url.removeprefix("http://").split(":"))
    path = f"{RUN}/8/1/snapshot"
    head = f"PUT {path} HTTP/1.1\r\nHost: x\r\n{TOKEN_HEADER}: {shared.token()}\r\n"
    writer.write(f"{head}Content-Length: 5000000\r\n\r\n".encode() + bytes(3_000_000))
    await writer.drain()
    writer.transport.abort()

    line = await asyncio.to_thread(shared.wait_for_line, path)

    assert "status=400" in line
    assert list((shared.folder / "incoming").iterdir()) == []
    async with shared.client() as client:
        assert await client.exists(path) is False


async def test_an_upload_that_stands_still_is_dropped(tmp_path: Path) -> None:
    with running_store(tmp_path / "data", idle_seconds="1") as store:
        status, body = await raw(store, f"PUT {SEAL} HTTP/1.1", "Content-Length: 10", body=b"half")

        assert (status, json.loads(body)["error"]["type"]) == (408, "Timeout")
        assert list((store.folder / "incoming").iterdir()) == []


async def test_a_full_disk_is_507_and_may_be_tried_again(tmp_path: Path) -> None:
    with running_store(tmp_path / "data", min_free_bytes=str(1 << 60)) as store:
        async with store.client() as client:
            with pytest.raises(StoreUnavailable, match="507 DiskFull"):
                await client.put(SEAL, b"x")
            assert await client.exists(SEAL) is False
        assert list((store.folder / "incoming").iterdir()) == []


async def test_a_start_again_keeps_objects_and_removes_what_was_half_uploaded(
    tmp_path: Path,
) -> None:
    with running_store(tmp_path / "data") as store:
        async with store.client() as client:
            await client.put(SEAL, b"sealed")
        store.stop(signal.SIGKILL)
        (store.folder / "incoming" / "left-behind").write_bytes(b"half")

        store.start()

        assert list((store.folder / "incoming").iterdir()) == []
        async with store.client() as client:
            assert await client.get(SEAL) == b"sealed"
            assert await client.put(SEAL, b"sealed") is False


async def test_what_was_answered_outlives_a_kill_at_any_moment(tmp_path: Path) -> None:
    body = bytes(range(256)) * 1000
    answered: set[str] = set()
    asked: set[str] = set()

    async def write(client: StoreClient, writer: int) -> None:
        for number in itertools.count():
            path = f"{RUN}/{writer}/{number}/snapshot"
            asked.add(path)
            await client.put(path, body + path.encode())
            answered.add(path)

    with running_store(tmp_path / "data") as store:
        for kill in range(3):
            async with store.client() as client:
                writers = [
                    asyncio.create_task(write(client, 10 * kill + number)) for number in range(8)
                ]
                while len(answered) < 10 * (kill + 1):
                    await asyncio.sleep(0)
                store.stop(signal.SIGKILL)
                ended = await asyncio.gather(*writers, return_exceptions=True)
            assert [type(error) for error in ended] == [StoreUnavailable] * 8
            store.start()
        async with store.client() as client:
            kept = set(await client.list(f"{RUN}/"))
            assert answered <= kept <= asked
            for path in kept:
                assert await client.get(path) == body + path.encode()
        assert list((store.folder / "incoming").iterdir()) == []


async def test_sigterm_ends_it_at_once_with_exit_code_0(tmp_path: Path) -> None:
    with running_store(tmp_path / "data") as store:
        async with store.client() as client:  # with an idle connection open
            await client.put(SEAL, b"x")
            assert await asyncio.to_thread(store.stop) == 0


async def test_sigterm_lets_an_upload_on_its_way_arrive(tmp_path: Path) -> None:
    with running_store(tmp_path / "data") as store:
        host, port = store.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"PUT {SEAL} HTTP/1.1\r\nHost: x\r\n{TOKEN_HEADER}: {store.token()}\r\n"
        writer.write(f"{head}Content-Length: 10\r\n\r\nfirst".encode())
        await asyncio.to_thread(wait_until, lambda: any((store.folder / "incoming").iterdir()))
        stopping = asyncio.create_task(asyncio.to_thread(store.stop))
        await asyncio.to_thread(store.wait_for_line, "Shutting down")

        writer.write(b"later")

        assert (await reader.read()).startswith(b"HTTP/1.1 201 ")
        assert await stopping == 0
        writer.close()
        store.start()
        async with store.client() as client:
            assert await client.get(SEAL) == b"firstlater"


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.005)


async def test_the_key_may_come_later_and_change(tmp_path: Path) -> None:
    with running_store(tmp_path / "data") as store:
        store.key_file.unlink()
        async with store.client() as client, httpx.AsyncClient() as http:
            assert (await http.get(f"{store.url}/readyz")).status_code == 503
            assert (await http.get(f"{store.url}/healthz")).status_code == 200
            with pytest.raises(StoreUnavailable, match="503 NotReady: the store has no public key"):
                await client.put(SEAL, b"x")

            store.key_file.write_bytes(store.public_pem)

            assert (await http.get(f"{store.url}/readyz")).json() == {"status": "ready"}
            assert await client.put(SEAL, b"x") is True

            store.key_file.write_bytes(make_key()[1])

            assert await refused(client, SEAL, b"x") == (401, "Unauthorized")


async def test_the_log_has_a_line_per_request_and_no_token(shared: RunningStore) -> None:
    token = shared.token()
    async with StoreClient(shared.url, token) as client:
        await client.put(seal_of(99), b"12345")

        with pytest.raises(StoreNotFound):
            await client.get(f"{seal_of(99)}%0aforged")
    line = await asyncio.to_thread(shared.wait_for_line, seal_of(99))
    forged = await asyncio.to_thread(shared.wait_for_line, "forged")

    assert f'path="{seal_of(99)}\\nforged" status=404' in forged
    assert f'request method=PUT path="{seal_of(99)}" status=201 received=5 ' in line
    assert token not in shared.log


async def test_there_is_no_delete_and_no_post(shared: RunningStore) -> None:
    async with httpx.AsyncClient(headers={TOKEN_HEADER: shared.token()}) as http:
        for method in ("DELETE", "POST", "PATCH"):
            answer = await http.request(method, f"{shared.url}{SEAL}")
            assert (answer.status_code, set(answer.json()["error"])) == (405, {"type", "message"})


async def test_until_waits_for_a_store_that_is_away(tmp_path: Path) -> None:
    with running_store(tmp_path / "data") as store:
        store.stop()
        clock = asyncio.get_running_loop().time
        async with store.client() as client:
            with pytest.raises(StoreUnavailable):
                await until(clock() + 0.3, lambda: client.put(SEAL, b"x"))

            starting = threading.Thread(target=store.start)
            starting.start()
            created = await until(clock() + 20, lambda: client.put(SEAL, b"x"))
            await asyncio.to_thread(starting.join)

        assert created is True


async def test_until_does_not_repeat_what_is_refused(shared: RunningStore) -> None:
    asked = []

    async def step() -> bytes:
        asked.append(1)
        return await client.get(seal_of(404))

    async with shared.client() as client:
        with pytest.raises(StoreNotFound):
            await until(asyncio.get_running_loop().time() + 60, step)

    assert asked == [1]


async def test_200_mb_stream_through_in_bounded_memory(tmp_path: Path) -> None:
    big, back = tmp_path / "big", tmp_path / "back"
    with big.open("wb") as file:  # with a hole, so that the disk has less to do
        file.write(b"begin")
        file.seek(200 * 1024 * 1024 - 3)
        file.write(b"end")
    with big.open("rb") as file:
        expected = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    with running_store(tmp_path / "data") as store:
        async with store.client() as client:
            await client.put(f"{RUN}/0/1/agent-log", b"warm")
            before = peak_memory(store.process.pid)

            await client.put(f"{RUN}/0/1/snapshot", big)
            digest = await client.get_to_file(f"{RUN}/0/1/snapshot", back)

            grown = peak_memory(store.process.pid) - before
    assert digest == expected
    assert stat.S_ISREG(back.stat().st_mode)
    assert back.stat().st_size == big.stat().st_size
    assert grown < 32 * 1024 * 1024


def peak_memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


async def test_what_is_larger_than_asked_for_is_not_got(
    shared: RunningStore, tmp_path: Path
) -> None:
    async with shared.client() as client:
        await client.put(seal_of(50), b"x" * 100)

        with pytest.raises(StoreRefused, match="has more than 99 bytes"):
            await client.get(seal_of(50), max_bytes=99)
        with pytest.raises(StoreRefused, match="has more than 99 bytes"):
            await client.get_to_file(seal_of(50), tmp_path / "copy", max_bytes=99)
        assert list(tmp_path.iterdir()) == []


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def test_nobody_listening_is_unavailable() -> None:
    async with StoreClient(f"http://127.0.0.1:{free_port()}", "token") as client:
        with pytest.raises(StoreUnavailable, match=r"PUT /v1/.*: ConnectError"):
            await client.put(SEAL, b"x")
