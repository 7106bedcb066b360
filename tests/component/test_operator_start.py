"""How the operator's process starts where something is missing, and how it ends."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from wavetank.testing.api_server import (
    ScriptedApiServer,
    gives,
    refuses,
    scripted_api_server,
)
from wavetank.testing.operator_process import NEEDED, OperatorProcess


@pytest.fixture
async def server() -> AsyncIterator[ScriptedApiServer]:
    async with scripted_api_server() as running:
        yield running


async def test_without_settings_it_says_all_that_is_missing_and_ends() -> None:
    operator = await OperatorProcess.start({"WAVETANK_WRITE_RATE": "fast"})

    assert await operator.ended() == 2
    assert [line.split(":")[0] for line in operator.lines] == [
        "WAVETANK_NAMESPACE",
        "WAVETANK_IMAGE_WORLD",
        "WAVETANK_IMAGE_AGENT",
        "WAVETANK_IMAGE_VERIFIER",
        "WAVETANK_VERSION",
        "WAVETANK_WRITE_RATE",
    ]


async def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "nowhere")
    operator = await OperatorProcess.start(
        {**NEEDED, "WAVETANK_KUBECONFIG": path, "WAVETANK_CONTEXT": "kind"}
    )

    assert await operator.ended() == 2
    assert operator.count(f"kubeconfig '{path}', context 'kind' cannot be used") == 1


async def test_while_the_crds_are_missing_it_waits_not_ready_but_healthy(
    server: ScriptedApiServer, tmp_path: Path
) -> None:
    server.will(*[refuses(404, "NotFound")] * 1000)
    operator = await OperatorProcess.start(
        {**NEEDED, "WAVETANK_KUBECONFIG": str(server.kubeconfig(tmp_path))}
    )
    await operator.said("are the CRDs installed, and the role bound")

    health, ready = await operator.http("/healthz"), await operator.http("/readyz")

    assert health.status_code == 200
    assert (ready.status_code, ready.text) == (
        503,
        "worlds: list World: words of NotFound (404 NotFound)\n",
    )
    async with asyncio.timeout(5):
        assert await operator.end() == 0


async def test_it_can_be_stopped_while_the_first_list_of_pods_does_not_come(
    server: ScriptedApiServer, tmp_path: Path
) -> None:
    empty = gives({"metadata": {"resourceVersion": "1"}, "items": []})
    server.will(empty, empty, empty, *[refuses(403, "Forbidden")] * 1000)
    operator = await OperatorProcess.start(
        {**NEEDED, "WAVETANK_KUBECONFIG": str(server.kubeconfig(tmp_path))}
    )
    await operator.said("the watch was cut")

    ready = await operator.http("/readyz")

    assert (ready.status_code, ready.text) == (503, "the first list of Pods and Jobs\n")
    async with asyncio.timeout(5):
        assert await operator.end() == 0
