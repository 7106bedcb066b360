"""How the operator's process starts where something is missing, and how it ends."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx
import pytest

from wavetank.testing.api_server import (
    ScriptedApiServer,
    gives,
    refuses,
    scripted_api_server,
)

NEEDED = {
    "WAVETANK_NAMESPACE": "wavetank",
    "WAVETANK_IMAGE_WORLD": "none",
    "WAVETANK_IMAGE_AGENT": "none",
    "WAVETANK_IMAGE_VERIFIER": "none",
    "WAVETANK_VERSION": "test",
    "WAVETANK_HEALTH_PORT": "0",
}


async def start(environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "wavetank.controller",
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


async def line_with(process: asyncio.subprocess.Process, pattern: str) -> re.Match[str]:
    assert process.stdout is not None
    async with asyncio.timeout(30):
        async for line in process.stdout:
            if found := re.search(pattern, line.decode()):
                return found
    pytest.fail(f"the process ended without saying '{pattern}'")


@pytest.fixture
async def server() -> AsyncIterator[ScriptedApiServer]:
    async with scripted_api_server() as running:
        yield running


async def test_without_settings_it_says_all_that_is_missing_and_ends() -> None:
    process = await start({"WAVETANK_WRITE_RATE": "fast"})

    said, _ = await process.communicate()

    assert process.returncode == 2
    assert [line.split(":")[0] for line in said.decode().splitlines()] == [
        "WAVETANK_NAMESPACE",
        "WAVETANK_IMAGE_WORLD",
        "WAVETANK_IMAGE_AGENT",
        "WAVETANK_IMAGE_VERIFIER",
        "WAVETANK_VERSION",
        "WAVETANK_WRITE_RATE",
    ]


async def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "nowhere")
    process = await start({**NEEDED, "WAVETANK_KUBECONFIG": path, "WAVETANK_CONTEXT": "kind"})

    said, _ = await process.communicate()

    assert process.returncode == 2
    assert f"kubeconfig '{path}', context 'kind' cannot be used" in said.decode()


async def test_while_the_crds_are_missing_it_waits_not_ready_but_healthy(
    server: ScriptedApiServer, tmp_path: Path
) -> None:
    server.will(*[refuses(404, "NotFound")] * 1000)
    process = await start({**NEEDED, "WAVETANK_KUBECONFIG": str(server.kubeconfig(tmp_path))})
    port = (await line_with(process, r"health_port=(\d+)"))[1]
    await line_with(process, "are the CRDs installed, and the role bound")

    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
        health, ready = await http.get("/healthz"), await http.get("/readyz")

    assert health.status_code == 200
    assert (ready.status_code, ready.text) == (
        503,
        "worlds: list World: words of NotFound (404 NotFound)\n",
    )
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(5):
        assert await process.wait() == 0


async def test_it_can_be_stopped_while_the_first_list_of_pods_does_not_come(
    server: ScriptedApiServer, tmp_path: Path
) -> None:
    empty = gives({"metadata": {"resourceVersion": "1"}, "items": []})
    server.will(empty, empty, empty, *[refuses(403, "Forbidden")] * 1000)
    process = await start({**NEEDED, "WAVETANK_KUBECONFIG": str(server.kubeconfig(tmp_path))})
    port = (await line_with(process, r"health_port=(\d+)"))[1]
    await line_with(process, "the watch was cut")

    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
        ready = await http.get("/readyz")

    assert (ready.status_code, ready.text) == (503, "the first list of Pods and Jobs\n")
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(5):
        assert await process.wait() == 0
