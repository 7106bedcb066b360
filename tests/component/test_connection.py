"""How the API server is found, and by what proxy."""

import asyncio
from pathlib import Path

import pytest

from wavetank.core.errors import ClusterError
from wavetank.kube.connection import Kubeconfig, connect
from wavetank.testing.api_server import ScriptedApiServer

SERVER = ScriptedApiServer(url="https://api.test:6443")


async def test_the_kubeconfig_gives_server_and_token(tmp_path: Path) -> None:
    connection = await connect(Kubeconfig(SERVER.kubeconfig(tmp_path)))

    known = await connection.credentials()

    assert (known.server, known.token, known.proxy) == ("https://api.test:6443", "made-up", None)
    assert "made-up" not in repr(known)
    await connection.close()


@pytest.mark.parametrize(
    ("no_proxy", "proxy"),
    [
        ("", "http://proxy.test:3128"),
        ("api.test", None),
        ("*", None),
        (".other", "http://proxy.test:3128"),
    ],
    ids=["none excepted", "excepted by name", "all excepted", "another excepted"],
)
async def test_the_environments_proxy_is_heeded(
    no_proxy: str, proxy: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)

    connection = await connect(Kubeconfig(SERVER.kubeconfig(tmp_path)))

    assert (await connection.credentials()).proxy == proxy
    await connection.close()


async def test_a_context_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = SERVER.kubeconfig(tmp_path)

    with pytest.raises(ClusterError, match=f"kubeconfig '{path}', context 'kind' cannot be used"):
        await connect(Kubeconfig(path, "kind"))


async def test_outside_a_pod_there_is_no_service_account() -> None:
    with pytest.raises(ClusterError, match="this Pod's service account cannot be used"):
        await connect()


async def test_many_renewals_at_once_read_the_file_in_turn(tmp_path: Path) -> None:
    path = SERVER.kubeconfig(tmp_path)
    connection = await connect(Kubeconfig(path))
    path.write_text(path.read_text().replace("made-up", "fresh"))

    await asyncio.gather(*(connection.renew() for _ in range(5)))

    assert (await connection.credentials()).token == "fresh"
    await connection.close()
