"""What the client does when the API server, or the way to it, fails."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from wavetank.kube.client import Client, open_client
from wavetank.kube.connection import Kubeconfig
from wavetank.kube.errors import ApiError, Invalid, TooManyRequests, Unauthorized, Unavailable
from wavetank.kube.objects import CONFIGMAPS, Manifest
from wavetank.kube.transport import ClientSettings
from wavetank.testing.api_server import (
    Answer,
    ScriptedApiServer,
    breaks_off,
    gives,
    gives_text,
    hangs,
    refuses,
    scripted_api_server,
)

CONFIGMAP: Manifest = {"metadata": {"name": "a", "namespace": "bench"}}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedApiServer]:
    async with scripted_api_server() as running:
        yield running


@pytest.fixture
async def client(server: ScriptedApiServer, tmp_path: Path) -> AsyncIterator[Client]:
    settings = ClientSettings(tries=3, request_seconds=0.5)
    async with open_client(Kubeconfig(server.kubeconfig(tmp_path)), settings) as opened:
        yield opened


@pytest.mark.parametrize(
    "fault",
    [
        refuses(429, "TooManyRequests", retry_after="0"),
        refuses(503, "ServiceUnavailable"),
        refuses(500, "InternalError"),
        gives_text("<h1>Bad Gateway</h1>", 502),
        gives_text("not JSON at all", 200),
        breaks_off(),
        hangs(),
    ],
    ids=["429", "503", "500", "a proxy's 502", "no JSON", "a cut", "a hang"],
)
async def test_a_read_is_tried_again_after(
    fault: Answer, server: ScriptedApiServer, client: Client
) -> None:
    server.will(fault, gives(CONFIGMAP))

    found = await client.get(CONFIGMAPS, "bench", "a")

    assert found == CONFIGMAP
    assert [asked.path for asked in server.asked] == ["/api/v1/namespaces/bench/configmaps/a"] * 2


async def test_a_read_that_fails_at_every_try_says_so_in_the_api_servers_words(
    server: ScriptedApiServer, client: Client
) -> None:
    server.will(*[refuses(503, "ServiceUnavailable")] * 3)

    with pytest.raises(Unavailable) as raised:
        await client.get(CONFIGMAPS, "bench", "a")

    assert str(raised.value) == (
        "get ConfigMap bench/a: words of ServiceUnavailable (503 ServiceUnavailable)"
    )
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    "fault",
    [refuses(503, "ServiceUnavailable"), breaks_off(), hangs()],
    ids=["503", "a cut", "a hang"],
)
async def test_a_write_that_may_have_happened_is_not_sent_again_after(
    fault: Answer, server: ScriptedApiServer, client: Client
) -> None:
    server.will(fault, gives(CONFIGMAP, 201))

    with pytest.raises(Unavailable):
        await client.create(CONFIGMAPS, "bench", CONFIGMAP)

    assert len(server.asked) == 1


async def test_a_write_that_was_turned_away_with_429_is_sent_again(
    server: ScriptedApiServer, client: Client
) -> None:
    server.will(refuses(429, "TooManyRequests", retry_after="0"), gives(CONFIGMAP, 201))

    created = await client.create(CONFIGMAPS, "bench", CONFIGMAP)

    assert created == CONFIGMAP
    assert [asked.method for asked in server.asked] == ["POST", "POST"]


async def test_a_429_that_stays_carries_the_wait_that_was_asked_for(
    server: ScriptedApiServer, tmp_path: Path
) -> None:
    server.will(refuses(429, "TooManyRequests", retry_after="7"))
    once = ClientSettings(tries=1)

    async with open_client(Kubeconfig(server.kubeconfig(tmp_path)), once) as client:
        with pytest.raises(TooManyRequests) as raised:
            await client.get(CONFIGMAPS, "bench", "a")

    assert raised.value.retry_after_seconds == 7.0


async def test_nobody_listening_is_unavailable_and_costs_the_write_nothing(
    tmp_path: Path,
) -> None:
    async with scripted_api_server() as gone:
        path = gone.kubeconfig(tmp_path)

    async with open_client(Kubeconfig(path), ClientSettings(tries=2)) as client:
        with pytest.raises(Unavailable, match="no connection"):
            await client.create(CONFIGMAPS, "bench", CONFIGMAP)


async def test_a_refused_token_is_read_anew_once(
    server: ScriptedApiServer, client: Client, tmp_path: Path
) -> None:
    server.will(refuses(401, "Unauthorized"), gives(CONFIGMAP), refuses(401, "Unauthorized"))
    server.will(refuses(401, "Unauthorized"))
    path = tmp_path / "kubeconfig"
    path.write_text(path.read_text().replace("made-up", "fresh"))

    await client.get(CONFIGMAPS, "bench", "a")

    assert [asked.authorization for asked in server.asked] == ["Bearer made-up", "Bearer fresh"]
    with pytest.raises(Unauthorized):
        await client.get(CONFIGMAPS, "bench", "a")
    assert len(server.asked) == 4


async def test_a_list_whose_parts_took_too_long_is_asked_for_whole(
    server: ScriptedApiServer, client: Client
) -> None:
    first = {"metadata": {"resourceVersion": "5", "continue": "next"}, "items": [CONFIGMAP]}
    whole = {"metadata": {"resourceVersion": "9"}, "items": [CONFIGMAP, CONFIGMAP]}
    server.will(gives(first), refuses(410, "Expired"), gives(whole))

    listing = await client.list(CONFIGMAPS, "bench", label_selector="a=b")

    assert (len(listing.items), listing.resource_version) == (2, "9")
    assert [asked.query for asked in server.asked] == [
        {"limit": "500", "labelSelector": "a=b"},
        {"limit": "500", "labelSelector": "a=b", "continue": "next"},
        {"limit": "0", "labelSelector": "a=b"},
    ]


@pytest.mark.parametrize("status", [405, 415, 418])
async def test_a_refusal_that_nobody_handles_apart_is_an_api_error(
    status: int, server: ScriptedApiServer, client: Client
) -> None:
    server.will(refuses(status, "Odd"))

    with pytest.raises(ApiError, match=f"create ConfigMap bench: words of Odd \\({status} Odd\\)"):
        await client.create(CONFIGMAPS, "bench", CONFIGMAP)


async def test_what_is_too_large_for_the_api_server_is_the_objects_own_fault(
    server: ScriptedApiServer, client: Client
) -> None:
    server.will(refuses(413, "RequestEntityTooLarge"))

    with pytest.raises(Invalid, match="words of RequestEntityTooLarge"):
        await client.create(CONFIGMAPS, "bench", CONFIGMAP)


async def test_every_wrong_field_is_a_finding(server: ScriptedApiServer, client: Client) -> None:
    causes = [
        {"field": "spec.k", "reason": "FieldValueInvalid", "message": "must be at least 1"},
        {"field": "spec.model", "reason": "FieldValueRequired", "message": "Required value"},
    ]
    status = {
        "kind": "Status",
        "code": 422,
        "reason": "Invalid",
        "message": "two faults",
        "details": {"causes": causes},
    }
    server.will(gives(status, 422))

    with pytest.raises(Invalid) as raised:
        await client.create(CONFIGMAPS, "bench", CONFIGMAP)

    assert str(raised.value) == (
        "ConfigMap bench spec.k: must be at least 1\nConfigMap bench spec.model: Required value"
    )


class Told:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, int]] = []
        self.waits: list[float] = []

    def requested(self, verb: str, resource: str, code: int, seconds: float) -> None:
        self.requests.append((verb, resource, code))

    def held_back(self, seconds: float) -> None:
        self.waits.append(round(seconds, 1))


async def test_writes_beyond_the_rate_wait_and_reads_do_not(
    server: ScriptedApiServer, tmp_path: Path
) -> None:
    observer = Told()
    server.will(*[gives(CONFIGMAP)] * 8)
    settings = ClientSettings(write_rate=10, write_burst=2)

    async with open_client(Kubeconfig(server.kubeconfig(tmp_path)), settings, observer) as client:
        writes = [client.create(CONFIGMAPS, "bench", CONFIGMAP) for _ in range(4)]
        reads = [client.get(CONFIGMAPS, "bench", "a") for _ in range(4)]
        await asyncio.gather(*writes, *reads)

    assert observer.waits == [0.0, 0.0, 0.1, 0.2]


async def test_every_request_is_told_to_the_observer(
    server: ScriptedApiServer, tmp_path: Path
) -> None:
    observer = Told()
    server.will(refuses(503, "ServiceUnavailable"), gives(CONFIGMAP), hangs())
    settings = ClientSettings(request_seconds=0.3, tries=2)

    async with open_client(
        Kubeconfig(server.kubeconfig(tmp_path)),
        settings,
        observer,
    ) as client:
        await client.get(CONFIGMAPS, "bench", "a")
        with pytest.raises(Unavailable, match="no answer in time"):
            await client.create(CONFIGMAPS, "bench", CONFIGMAP)

    assert observer.requests == [
        ("get", "configmaps", 503),
        ("get", "configmaps", 200),
        ("create", "configmaps", 0),
    ]


async def test_the_servers_clock_is_known_from_its_answers_refusals_too(
    server: ScriptedApiServer, client: Client
) -> None:
    assert client.server_now() is None
    server.will(refuses(404, "NotFound"))

    await client.find(CONFIGMAPS, "bench", "none")

    now = client.server_now()
    assert now is not None
    assert abs(now - time.time()) < 3
