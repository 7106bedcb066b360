"""kopf in its thread: what it hands over, and that its end is not ours."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from wavetank.controller.handlers import watch_own_kinds
from wavetank.kube.connection import Connection, Kubeconfig, connect
from wavetank.kube.objects import NAMESPACES, OWN_KINDS, Manifest, Resource
from wavetank.testing.api_server import (
    Answer,
    ScriptedApiServer,
    gives,
    refuses,
    scripted_api_server,
    streams,
)
from wavetank.testing.cluster import until


def discovered(*kinds: Resource) -> Answer:
    """What discovery tells of kinds."""
    return gives(
        {
            "kind": "APIResourceList",
            "resources": [
                {
                    "name": kind.plural,
                    "singularName": kind.kind.lower(),
                    "kind": kind.kind,
                    "namespaced": kind.namespaced,
                    "verbs": ["get", "list", "watch"],
                }
                for kind in kinds
            ],
        }
    )


def a_run(name: str, version: int) -> Manifest:
    metadata = {
        "namespace": "bench",
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
    }
    return {"apiVersion": "wavetank.dev/v1alpha1", "kind": "Run", "metadata": metadata}


class ApiServer:
    """Serves the three kinds as far as kopf asks; watches of Runs go as a test says."""

    def __init__(self) -> None:
        self.runs: list[Manifest] = []
        self.watches_of_runs: list[Answer] = []

    def __call__(self, request: web.Request) -> Answer:
        path = request.path
        if path == "/apis":
            version = {"groupVersion": "wavetank.dev/v1alpha1", "version": "v1alpha1"}
            group = {"name": "wavetank.dev", "versions": [version], "preferredVersion": version}
            return gives({"kind": "APIGroupList", "groups": [group]})
        if path == "/apis/wavetank.dev/v1alpha1":
            return discovered(*OWN_KINDS)
        if path == "/api":
            return gives({"kind": "APIVersions", "versions": ["v1"]})
        if path == "/api/v1":
            return discovered(NAMESPACES)
        if "/runs" in path and "watch" in request.query and self.watches_of_runs:
            return self.watches_of_runs.pop(0)
        if "watch" in request.query:
            return streams([], then="freeze")
        items = self.runs if path.endswith("/runs") else []
        return gives({"metadata": {"resourceVersion": "5"}, "items": items})


@pytest.fixture
async def server() -> AsyncIterator[ScriptedApiServer]:
    async with scripted_api_server() as running:
        yield running


@pytest.fixture
async def connection(server: ScriptedApiServer, tmp_path: Path) -> AsyncIterator[Connection]:
    opened = await connect(Kubeconfig(server.kubeconfig(tmp_path)))
    yield opened
    await opened.close()


Told = list[tuple[str, str | None, str]]


@asynccontextmanager
async def kopf_running(connection: Connection) -> AsyncIterator[Told]:
    told: Told = []

    def tell(resource: Resource, event: str | None, item: Manifest) -> None:
        told.append((resource.plural, event, item["metadata"]["name"]))

    ready = asyncio.Event()
    task = asyncio.create_task(watch_own_kinds(connection, "bench", tell, ready))
    await ready.wait()
    yield told
    task.cancel()
    async with asyncio.timeout(10):
        await asyncio.gather(task, return_exceptions=True)


async def grows_to(told: Told, count: int) -> None:
    async def enough() -> bool:
        return len(told) >= count

    await until(enough)


async def test_lists_and_events_are_handed_over_and_nothing_is_written(
    server: ScriptedApiServer, connection: Connection
) -> None:
    api = ApiServer()
    api.runs = [a_run("listed", 4)]
    changes = [
        {"type": "ADDED", "object": a_run("new", 6)},
        {"type": "MODIFIED", "object": a_run("listed", 7)},
        {"type": "DELETED", "object": a_run("new", 8)},
    ]
    api.watches_of_runs = [streams(changes, then="freeze")]
    server.otherwise = api

    async with kopf_running(connection) as told:
        await grows_to(told, 4)

    assert sorted(told, key=str) == [
        ("runs", "ADDED", "new"),
        ("runs", "DELETED", "new"),
        ("runs", "MODIFIED", "listed"),
        ("runs", None, "listed"),
    ]
    assert {asked.method for asked in server.asked} == {"GET"}
    assert {asked.authorization for asked in server.asked} == {"Bearer made-up"}


async def test_after_an_error_that_ends_kopf_it_is_started_again(
    server: ScriptedApiServer, connection: Connection
) -> None:
    error = {"kind": "Status", "code": 500, "reason": "InternalError", "message": "etcd is away"}
    api = ApiServer()
    api.watches_of_runs = [
        streams([{"type": "ERROR", "object": error}]),
        streams([{"type": "ADDED", "object": a_run("after", 6)}], then="freeze"),
    ]
    server.otherwise = api

    async with kopf_running(connection) as told:
        await grows_to(told, 1)

    assert told == [("runs", "ADDED", "after")]


async def test_a_token_that_is_refused_is_read_anew(
    server: ScriptedApiServer, connection: Connection, tmp_path: Path
) -> None:
    api = ApiServer()
    api.watches_of_runs = [
        refuses(401, "Unauthorized"),
        streams([{"type": "ADDED", "object": a_run("after", 6)}], then="freeze"),
    ]
    server.otherwise = api
    path = tmp_path / "kubeconfig"

    async with kopf_running(connection) as told:
        path.write_text(path.read_text().replace("made-up", "fresh"))
        await grows_to(told, 1)

    assert "Bearer fresh" in {asked.authorization for asked in server.asked}
