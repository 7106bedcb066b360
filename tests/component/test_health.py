"""What the kubelet and Prometheus are answered."""

import httpx
import pytest

from wavetank.controller import health


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_a_probe_fails_with_every_complaint_and_passes_without(path: str) -> None:
    complaints: list[str] = []
    other: list[str] = []
    probes = {"/healthz": (complaints, other), "/readyz": (other, complaints)}
    healthy, ready = probes[path]
    async with (
        health.serve(0, healthy=lambda: healthy, ready=lambda: ready, metrics=bytes) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http,
    ):
        well = await http.get(path)
        complaints += ["the watch of pods heard nothing for 301 s", "a look has been running"]
        ill = await http.get(path)

    assert (well.status_code, well.text) == (200, "ok\n")
    assert (ill.status_code, ill.text) == (
        503,
        "the watch of pods heard nothing for 301 s\na look has been running\n",
    )


async def test_there_is_nothing_else() -> None:
    async with (
        health.serve(0, healthy=list, ready=list, metrics=lambda: b"up 1\n") as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http,
    ):
        metrics, other = await http.get("/metrics"), await http.get("/")

    assert (metrics.status_code, metrics.content) == (200, b"up 1\n")
    assert other.status_code == 404
