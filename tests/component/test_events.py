"""How Events are posted, and what happens when they cannot be."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wavetank.controller.events import EventPoster
from wavetank.kube.client import open_client
from wavetank.kube.connection import Kubeconfig
from wavetank.kube.objects import Manifest
from wavetank.kube.transport import ClientSettings
from wavetank.testing.api_server import ScriptedApiServer, gives, refuses, scripted_api_server

RUN: Manifest = {
    "apiVersion": "wavetank.dev/v1alpha1",
    "kind": "Run",
    "metadata": {"namespace": "bench", "name": "crm", "uid": "u-1", "resourceVersion": "7"},
}
POSTED = gives({"kind": "Event"}, 201)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedApiServer]:
    async with scripted_api_server() as running:
        yield running


@pytest.fixture
async def poster(server: ScriptedApiServer, tmp_path: Path) -> AsyncIterator[EventPoster]:
    settings = ClientSettings(tries=1)
    async with open_client(Kubeconfig(server.kubeconfig(tmp_path)), settings) as client:
        yield EventPoster(client, "pod-1", lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


async def test_an_event_says_what_why_and_about_whom(
    server: ScriptedApiServer, poster: EventPoster
) -> None:
    server.will(POSTED)

    await poster.post(RUN, "RunFailed", "The gate was missed.", warning=True)

    sent = json.loads(server.asked[0].body)
    name = sent["metadata"].pop("name")
    assert server.asked[0].path == "/apis/events.k8s.io/v1/namespaces/bench/events"
    assert name.startswith("crm.")
    assert sent == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "bench"},
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "type": "Warning",
        "reason": "RunFailed",
        "action": "RunFailed",
        "note": "The gate was missed.",
        "reportingController": "wavetank.dev/operator",
        "reportingInstance": "pod-1",
        "regarding": {
            "apiVersion": "wavetank.dev/v1alpha1",
            "kind": "Run",
            "namespace": "bench",
            "name": "crm",
            "uid": "u-1",
            "resourceVersion": "7",
        },
    }


async def test_the_same_is_said_once_and_something_else_again(
    server: ScriptedApiServer, poster: EventPoster
) -> None:
    server.will(POSTED, POSTED, POSTED)
    newer = {**RUN, "metadata": {**RUN["metadata"], "resourceVersion": "8"}}

    await poster.post(RUN, "RunStarted", "15 rollouts")
    await poster.post(newer, "RunStarted", "15 rollouts")
    await poster.post(RUN, "RunStarted", "30 rollouts")
    await poster.post(RUN, "RunCompleted", "30 rollouts")

    assert [json.loads(asked.body)["note"] for asked in server.asked] == [
        "15 rollouts",
        "30 rollouts",
        "30 rollouts",
    ]


@pytest.mark.parametrize(
    ("status", "reason", "requests"),
    [
        (409, "AlreadyExists", 1),
        (403, "Forbidden", 1),
        (422, "Invalid", 1),
        (503, "ServiceUnavailable", 2),
    ],
)
async def test_an_event_that_is_refused_raises_nothing_and_is_tried_again_if_that_may_help(
    status: int, reason: str, requests: int, server: ScriptedApiServer, poster: EventPoster
) -> None:
    server.will(refuses(status, reason), POSTED)

    await poster.post(RUN, "RunStarted", "15 rollouts")
    await poster.post(RUN, "RunStarted", "15 rollouts")

    assert len(server.asked) == requests


async def test_a_long_note_is_cut_between_characters(
    server: ScriptedApiServer, poster: EventPoster
) -> None:
    server.will(POSTED)

    await poster.post(RUN, "RunFailed", "x" + "ä" * 600)

    assert json.loads(server.asked[0].body)["note"] == "x" + "ä" * 511
