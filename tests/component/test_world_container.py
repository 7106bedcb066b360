"""The world container as a process of its own, with a real store."""

import asyncio
import json
import signal
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
import zstandard

from wavetank.api.wire import SessionEnd, WorldMessage, digest_of
from wavetank.bundles.pack import unpack
from wavetank.core.causes import Cause
from wavetank.testing.bundles import CHAT, DESK, LINKED_CONFIG, write_bundle
from wavetank.testing.store import RunningStore, running_store
from wavetank.testing.worlds import PREFIX, RunningWorld, a_session, push, wait_until

CLOSE = {"id": "T-7", "status": "closed", "reason": "duplicate"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunningStore]:
    with running_store(tmp_path / "store") as running:
        yield running


@pytest.fixture
def started() -> Iterator[list[RunningWorld]]:
    worlds: list[RunningWorld] = []
    yield worlds
    for world in worlds:
        if world.process and not world.ended():
            world.process.kill()
            world.process.wait()


async def a_world(
    store: RunningStore,
    started: list[RunningWorld],
    tmp_path: Path,
    files: Mapping[str, object] | None = None,
    **changes: object,
) -> RunningWorld:
    desk = {**DESK, "gateway-env.toml": LINKED_CONFIG, **(files or {})}
    folders = {
        "": write_bundle(tmp_path / "crm", desk),
        "slack": write_bundle(tmp_path / "slack", CHAT),
    }
    session = a_session(store, await push(store, folders), **changes)
    world = RunningWorld(tmp_path / "world", session, store.token())
    started.append(world)
    world.start()
    return world


async def unpacked(store: RunningStore, tmp_path: Path) -> Path:
    async with store.client() as client:
        unpack(await client.get(f"{PREFIX}/snapshot"), tmp_path / "snapshot")
    return tmp_path / "snapshot"


def rows(file: Path, statement: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(file) as connection:
        found = connection.execute(statement).fetchall()
    connection.close()
    return found


async def test_a_closed_session_is_sealed_with_its_end_state(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    httpx.post(f"{world.url}/v1/start").raise_for_status()
    httpx.post(f"{world.url}/v1/tools/update_ticket", json=CLOSE).raise_for_status()
    post = {"channel": "#security", "text": "closed"}
    httpx.post(f"{world.url}/v1/tools/slack__post_message", json=post).raise_for_status()

    report = {"reason": "completed", "finalAnswer": "Done.", "exitCode": 0, "log": "hello\n"}
    answer = httpx.post(f"{world.url}/v1/close", json=report)

    message = world.message
    assert message is not None
    assert message.seal is not None
    assert answer.json() == {
        "state": "closed",
        "end": "closed",
        "sealDigest": message.seal_digest,
    }
    assert (message.seal.end, message.seal.reason, message.seal.exit_code, message.seal.calls) == (
        SessionEnd.CLOSED,
        "completed",
        0,
        2,
    )
    async with store.client() as client:
        assert await client.get(f"{PREFIX}/seal") == message.seal.canonical()
        snapshot = await client.get(f"{PREFIX}/snapshot")
        log = await client.get(f"{PREFIX}/agent-log")
    assert message.seal_digest == message.seal.digest()
    assert message.seal.snapshot == digest_of(snapshot)
    assert zstandard.decompress(log) == b"hello\n"
    folder = await unpacked(store, tmp_path)
    assert json.loads((folder / "session.json").read_text()) == {
        "task": "close_ticket",
        "finalAnswer": "Done.",
        "calls": 2,
        "end": "closed",
        "reason": "completed",
    }
    assert rows(folder / "worlds/main.sqlite", "SELECT status FROM crm_tickets") == [
        ("closed",),
        ("pending",),
    ]
    assert rows(folder / "worlds/linked/slack.sqlite", "SELECT text FROM messages") == [
        ("hello",),
        ("closed",),
    ]
    lines = (folder / "trajectory.jsonl").read_text().splitlines()
    trajectory = [json.loads(line) for line in lines]
    assert [(call["n"], call["tool"], call["arguments"]) for call in trajectory] == [
        (1, "update_ticket", CLOSE),
        (2, "slack__post_message", post),
    ]


async def test_a_session_that_nobody_closes_is_sealed_at_its_deadline(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path, deadline_seconds=1)
    httpx.post(f"{world.url}/v1/start").raise_for_status()
    wait_until(lambda: httpx.get(f"{world.url}/v1/session").json()["state"] == "closed")

    refused = httpx.post(f"{world.url}/v1/tools/update_ticket", json=CLOSE)
    report = {"reason": "deadline", "finalAnswer": None, "exitCode": 137}
    httpx.post(f"{world.url}/v1/close", json=report).raise_for_status()

    assert (refused.status_code, refused.json()["error"]["type"]) == (409, "SessionClosed")
    seal = (world.message or WorldMessage()).seal
    assert seal is not None
    assert (seal.end, seal.reason, seal.exit_code) == (SessionEnd.DEADLINE, "deadline", 137)


async def test_a_world_that_is_told_to_stop_seals_as_interrupted(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    httpx.post(f"{world.url}/v1/start").raise_for_status()
    httpx.post(f"{world.url}/v1/tools/update_ticket", json=CLOSE).raise_for_status()

    code = world.stop()

    seal = (world.message or WorldMessage()).seal
    assert seal is not None
    assert (code, seal.end, seal.calls) == (0, SessionEnd.INTERRUPTED, 1)
    folder = await unpacked(store, tmp_path)
    assert rows(folder / "worlds/main.sqlite", "SELECT status FROM crm_tickets LIMIT 1") == [
        ("closed",)
    ]


async def test_a_tool_that_never_returns_keeps_no_world_from_its_seal(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    mark = tmp_path / "hanging"
    hangs = (
        "import time\nfrom pathlib import Path\nfrom wavetank.worlds import World, tool\n\n\n@tool\n"
        "def hang(world: World) -> None:\n"
        "    world.update('crm_tickets', {}, {'status': 'closed'})\n"
        f"    Path({str(mark)!r}).touch()\n"
        "    while True:\n        time.sleep(0.1)\n"
    )
    world = await a_world(store, started, tmp_path, {"tools/handlers.py": hangs})
    async with httpx.AsyncClient(base_url=world.url, timeout=60) as client:
        await client.post("/v1/start")
        hanging = asyncio.create_task(client.post("/v1/tools/hang", json={}))
        await asyncio.to_thread(wait_until, mark.exists)
        code = await asyncio.to_thread(world.stop)
        answer = await hanging

    seal = (world.message or WorldMessage()).seal
    assert seal is not None
    assert (code, seal.end) == (0, SessionEnd.INTERRUPTED)
    assert answer.json()["error"]["type"] == "SessionClosed"
    folder = await unpacked(store, tmp_path)
    assert rows(folder / "worlds/main.sqlite", "SELECT status FROM crm_tickets") == [
        ("open",),
        ("pending",),
    ]


async def test_a_world_told_to_stop_after_its_seal_leaves_the_seal_as_it_is(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    httpx.post(f"{world.url}/v1/start").raise_for_status()
    httpx.post(f"{world.url}/v1/close", json={"reason": "completed"}).raise_for_status()
    before = world.message

    world.stop()

    assert world.message == before


async def test_sealing_waits_for_a_store_that_is_away(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    httpx.post(f"{world.url}/v1/start").raise_for_status()
    store.stop()
    async with httpx.AsyncClient(timeout=60) as client:
        closing = asyncio.create_task(
            client.post(f"{world.url}/v1/close", json={"reason": "completed"})
        )
        # Said already, in case the Pod goes before the store comes back.
        await asyncio.to_thread(wait_until, lambda: world.message is not None)
        provisional = world.message
        store.start()
        answer = await closing

    assert provisional is not None
    assert provisional.cause is Cause.STORE_UNAVAILABLE
    assert answer.status_code == 200
    assert world.message is not None
    assert world.message.seal_digest == answer.json()["sealDigest"]


async def test_sealing_gives_up_when_the_store_stays_away(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path, deadline_seconds=1, seal_wait_seconds=1)
    httpx.post(f"{world.url}/v1/start").raise_for_status()
    store.stop()

    answer = httpx.post(f"{world.url}/v1/close", json={"reason": "completed"}, timeout=60)

    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "StoreUnavailable")
    message = world.message
    assert message is not None
    assert (message.cause, message.seal) == (Cause.STORE_UNAVAILABLE, None)


async def test_a_killed_world_refuses_after_its_restart(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    httpx.post(f"{world.url}/v1/start").raise_for_status()
    world.stop(signal.SIGKILL)

    world.start()

    started_again = httpx.post(f"{world.url}/v1/start")
    assert started_again.status_code == 409
    assert started_again.json()["error"]["type"] == "WorldFailed"
    assert httpx.get(f"{world.url}/healthz").status_code == 503
    assert world.stop() == 1
    assert (world.message or WorldMessage()).cause is Cause.WORLD_FAILED


async def test_a_sealed_world_keeps_its_seal_through_a_restart(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    world = await a_world(store, started, tmp_path)
    httpx.post(f"{world.url}/v1/start").raise_for_status()
    httpx.post(f"{world.url}/v1/close", json={"reason": "completed"}).raise_for_status()
    before = world.message
    world.stop(signal.SIGKILL)
    (world.folder / "termination-log").write_text("")

    world.start()

    assert world.message == before


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {"tools/handlers.py": "import json\nraise RuntimeError('no luck')\n"},
            "tools/handlers.py: importing it raised at line 2: RuntimeError: no luck",
        ),
        (
            {"tools/handlers.py": "import nothing_there\n"},
            "ModuleNotFoundError: No module named 'nothing_there'",
        ),
        (
            {"data/initial.json": {"crm_tickets": [{"id": "T-1", "status": "opne"}]}},
            "'opne' is not allowed. Name one of: 'open', 'pending', 'closed'.",
        ),
    ],
    ids=["handlers raise", "handlers import what is not there", "data at fault"],
)
async def test_a_world_that_cannot_be_opened_says_why_and_never_gets_healthy(
    store: RunningStore,
    started: list[RunningWorld],
    tmp_path: Path,
    files: Mapping[str, object],
    words: str,
) -> None:
    world = await a_world(store, started, tmp_path, files)

    assert world.ended()
    message = world.message
    assert message is not None
    assert message.cause is Cause.WORLD_FAILED
    assert words in message.message
    assert "serving url" not in world.log


async def test_a_token_without_a_grant_for_the_bundles_is_a_failed_world(
    store: RunningStore, started: list[RunningWorld], tmp_path: Path
) -> None:
    bundles = await push(store, {"": write_bundle(tmp_path / "crm", DESK)})
    world = RunningWorld(tmp_path / "world", a_session(store, bundles), store.token([]))
    started.append(world)

    world.start()

    message = world.message
    assert message is not None
    assert message.cause is Cause.WORLD_FAILED
    assert message.message.startswith("the bundles cannot be fetched: store answered 403")
