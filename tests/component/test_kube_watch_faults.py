"""What a watch makes of streams that are cut, freeze, or begin too late."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from wavetank.kube.client import Client, open_client
from wavetank.kube.connection import Kubeconfig
from wavetank.kube.objects import PODS, RUNS, Manifest, ObjectName, owner_reference
from wavetank.kube.rate import Backoff
from wavetank.kube.transport import ClientSettings
from wavetank.kube.watch import Change, Watch, WatchSettings
from wavetank.testing.api_server import (
    Answer,
    ScriptedApiServer,
    gives,
    hangs,
    refuses,
    scripted_api_server,
    streams,
)

QUICK = WatchSettings(silence_seconds=0.3, backoff=Backoff(first_seconds=0.01, most_seconds=0.05))
FROZEN = streams([], then="freeze")


def a_pod(name: str, version: int) -> Manifest:
    metadata = {"namespace": "bench", "name": name, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def a_list(version: int, *pods: Manifest) -> Answer:
    return gives({"metadata": {"resourceVersion": str(version)}, "items": list(pods)})


def event(kind: str, item: Manifest) -> dict[str, Any]:
    return {"type": kind, "object": item}


TOO_OLD = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "old"})


class Seen:
    """The changes that a watch told."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str, str]] = []

    def __call__(self, change: Change, item: Manifest) -> None:
        metadata = item["metadata"]
        self.changes.append((change.value, metadata["name"], metadata["resourceVersion"]))


async def until(fact: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not fact():
            await asyncio.sleep(0.005)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedApiServer]:
    async with scripted_api_server() as running:
        yield running


@pytest.fixture
async def client(server: ScriptedApiServer, tmp_path: Path) -> AsyncIterator[Client]:
    async with open_client(
        Kubeconfig(server.kubeconfig(tmp_path)), ClientSettings(tries=1)
    ) as opened:
        yield opened


@asynccontextmanager
async def watching(client: Client, seen: Seen) -> AsyncIterator[Watch]:
    watch = Watch(client, PODS, seen, namespace="bench", label_selector="a=b", settings=QUICK)
    task = asyncio.create_task(watch.run())
    try:
        yield watch
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def versions_asked(server: ScriptedApiServer) -> list[str]:
    """``list``, or the moment from which a watch was asked for."""
    return [
        asked.query.get("resourceVersion", "") if "watch" in asked.query else "list"
        for asked in server.asked
    ]


async def test_what_is_listed_and_what_happens_after_is_told_and_kept(
    server: ScriptedApiServer, client: Client
) -> None:
    seen = Seen()
    server.will(
        a_list(5, a_pod("a", 3), a_pod("b", 4)),
        streams(
            [
                event("ADDED", a_pod("c", 6)),
                event("MODIFIED", a_pod("a", 7)),
                event("DELETED", a_pod("b", 8)),
            ],
            then="freeze",
        ),
    )

    async with watching(client, seen) as watch:
        await until(lambda: len(seen.changes) == 5)

        assert seen.changes == [
            ("ADDED", "a", "3"),
            ("ADDED", "b", "4"),
            ("ADDED", "c", "6"),
            ("MODIFIED", "a", "7"),
            ("DELETED", "b", "8"),
        ]
        assert dict(watch.objects) == {
            ObjectName("bench", "a"): a_pod("a", 7),
            ObjectName("bench", "c"): a_pod("c", 6),
        }
        assert server.asked[1].query["allowWatchBookmarks"] == "true"
        assert server.asked[1].query["labelSelector"] == "a=b"


@pytest.mark.parametrize(
    "cut",
    [
        streams([event("ADDED", a_pod("a", 6))], then="cut"),
        streams([event("ADDED", a_pod("a", 6))], then="end"),
        streams([event("ADDED", a_pod("a", 6))], then="freeze"),
        streams([event("ADDED", a_pod("a", 6))], then="end", tail=b'{"type": "MODI'),
    ],
    ids=["is cut", "ends", "freezes", "ends within a line"],
)
async def test_a_new_stream_begins_where_the_old_one_stopped_when_it(
    cut: Answer, server: ScriptedApiServer, client: Client
) -> None:
    seen = Seen()
    server.will(a_list(5), cut, streams([event("MODIFIED", a_pod("a", 7))], then="freeze"))

    async with watching(client, seen):
        await until(lambda: len(seen.changes) == 2)

        assert seen.changes == [("ADDED", "a", "6"), ("MODIFIED", "a", "7")]
        assert versions_asked(server)[:3] == ["list", "5", "6"]


async def test_a_bookmark_moves_the_moment_from_which_it_goes_on(
    server: ScriptedApiServer, client: Client
) -> None:
    bookmark = event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "99"}})
    server.will(a_list(5), streams([bookmark], then="cut"), FROZEN)

    async with watching(client, Seen()):
        await until(lambda: len(server.asked) == 3)

    assert versions_asked(server) == ["list", "5", "99"]


@pytest.mark.parametrize(
    "too_old",
    [streams([TOO_OLD]), refuses(410, "Expired"), refuses(400, "BadRequest")],
    ids=["told in the stream", "told at once", "an unknown moment"],
)
async def test_what_happened_behind_a_forgotten_moment_is_told_after_a_new_list(
    too_old: Answer, server: ScriptedApiServer, client: Client
) -> None:
    seen = Seen()
    server.will(
        a_list(5, a_pod("stays", 1), a_pod("changes", 2), a_pod("goes", 3)),
        too_old,
        a_list(50, a_pod("stays", 1), a_pod("changes", 40), a_pod("comes", 41)),
        FROZEN,
    )

    async with watching(client, seen) as watch:
        await until(lambda: len(server.asked) == 4)

        assert seen.changes[3:] == [
            ("DELETED", "goes", "3"),
            ("MODIFIED", "changes", "40"),
            ("ADDED", "comes", "41"),
        ]
        assert {name.name for name in watch.objects} == {"stays", "changes", "comes"}
        assert versions_asked(server)[3] == "50"


async def test_objects_are_found_by_the_owner_that_they_have_now(
    server: ScriptedApiServer, client: Client
) -> None:
    def owned(name: str, version: int, uid: str) -> Manifest:
        pod = a_pod(name, version)
        pod["metadata"]["ownerReferences"] = [owner_reference(RUNS, "crm", uid)]
        return pod

    seen = Seen()
    changes = [
        event("MODIFIED", owned("moves", 6, "two")),
        event("DELETED", owned("goes", 7, "one")),
        event("ADDED", owned("a", 8, "one")),
    ]
    server.will(
        a_list(5, owned("stays", 1, "one"), owned("goes", 2, "one"), owned("moves", 3, "one")),
        streams(changes, then="freeze"),
    )

    async with watching(client, seen) as watch:
        await until(lambda: len(seen.changes) == 6)

        assert [p["metadata"]["name"] for p in watch.owned_by("one")] == ["a", "stays"]
        assert [p["metadata"]["name"] for p in watch.owned_by("two")] == ["moves"]
        assert watch.owned_by("three") == []


async def test_it_goes_on_after_refusals_of_every_kind(
    server: ScriptedApiServer, client: Client
) -> None:
    seen = Seen()
    server.will(
        refuses(403, "Forbidden"),
        refuses(404, "NotFound"),
        refuses(503, "ServiceUnavailable"),
        a_list(5),
        refuses(429, "TooManyRequests", retry_after="0"),
        refuses(500, "InternalError"),
        streams([event("ADDED", a_pod("a", 6))], then="freeze"),
    )

    async with watching(client, seen):
        await until(lambda: len(seen.changes) == 1)

    assert versions_asked(server)[:7] == ["list"] * 4 + ["5"] * 3


async def test_its_age_grows_while_nothing_comes_and_falls_with_a_bookmark(
    server: ScriptedApiServer, client: Client
) -> None:
    release = asyncio.Event()

    async def bookmark_later(request: web.Request) -> web.StreamResponse:
        await release.wait()
        bookmark = event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "9"}})
        return await streams([bookmark], then="freeze")(request)

    server.will(a_list(5), bookmark_later)

    async with watching(client, Seen()) as watch:
        await watch.synced.wait()
        await until(lambda: watch.age() > 0.1)
        old = watch.age()
        release.set()
        await until(lambda: watch.age() < old)


async def test_it_is_not_synced_before_the_first_list_is_in(
    server: ScriptedApiServer, client: Client
) -> None:
    server.will(hangs())

    async with watching(client, Seen()) as watch:
        await until(lambda: len(server.asked) == 1)

        assert not watch.synced.is_set()


async def test_streams_that_end_at_once_are_opened_ever_more_slowly(
    server: ScriptedApiServer, client: Client
) -> None:
    server.will(a_list(5), *[streams([])] * 1000)

    async with watching(client, Seen()):
        await asyncio.sleep(0.5)

    # Unhindered it would be hundreds; QUICK's longest wait allows about 20.
    assert len(server.asked) < 40


def owned(item: Manifest, uid: str) -> Manifest:
    owner = {"apiVersion": "v1", "kind": "Run", "name": "r", "uid": uid, "controller": True}
    return {**item, "metadata": {**item["metadata"], "ownerReferences": [owner]}}


async def test_what_an_object_controls_is_found_without_looking_at_all_others(
    server: ScriptedApiServer, client: Client
) -> None:
    server.will(
        a_list(1, owned(a_pod("b", 1), "one"), owned(a_pod("a", 1), "one"), a_pod("free", 1)),
        streams(
            [
                event("ADDED", owned(a_pod("c", 2), "two")),
                event("MODIFIED", owned(a_pod("a", 3), "one")),
                event("MODIFIED", owned(a_pod("free", 4), "two")),
                event("DELETED", owned(a_pod("b", 5), "one")),
                event("DELETED", owned(a_pod("c", 6), "two")),
                event("MODIFIED", a_pod("free", 7)),
            ],
            then="freeze",
        ),
    )
    seen = Seen()
    async with watching(client, seen) as watch:
        await until(lambda: len(seen.changes) == 9)

        assert watch.owned_by("one") == [owned(a_pod("a", 3), "one")]
        assert watch.owned_by("two") == watch.owned_by("nobody") == []
