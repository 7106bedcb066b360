"""How the API server is reached: from within a Pod, or by a kubeconfig file."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from wavetank.core.errors import ClusterError


@dataclass(frozen=True)
class Kubeconfig:
    """Which kubeconfig file, and which context of it."""

    path: Path
    context: str | None = None
    """None means the file's current context."""


@dataclass(frozen=True)
class Credentials:
    """What another client (kopf's) needs to reach the same API server."""

    server: str
    ca_file: str | None
    verify: bool
    token: str | None = field(repr=False)
    certificate_file: str | None
    key_file: str | None
    username: str | None
    password: str | None = field(repr=False)
    proxy: str | None


class Connection:
    """An open way to one API server. Close it when done; it belongs to one event loop."""

    def __init__(self, configuration: Configuration, kubeconfig: Kubeconfig | None) -> None:
        self._kubeconfig = kubeconfig
        self._configuration = configuration
        self._renewal = asyncio.Lock()
        self.api = ApiClient(configuration)
        """The client library's; its ``rest_client`` holds the pool of sockets."""

    @property
    def server(self) -> str:
        """Return the API server's base URL, without a slash at its end."""
        return str(self._configuration.host).rstrip("/")

    async def headers(self) -> dict[str, str]:
        """Return the headers that prove who asks; a Pod's token is read anew as it rotates."""
        settings = await self._configuration.auth_settings()
        bearer = settings.get("BearerToken")
        if bearer and bearer["value"]:
            return {"Authorization": bearer["value"]}
        if self._configuration.username:
            return {"Authorization": self._configuration.get_basic_auth_token() or ""}
        return {}

    def session(self) -> aiohttp.ClientSession:
        """Return the pool of sockets itself, for bodies that are streamed."""
        rest = self.api.rest_client
        if rest.pool_manager is None:
            # The library makes it at its first request, by this same method.
            rest.pool_manager = rest._create_pool_manager()
        pool: aiohttp.ClientSession = rest.pool_manager
        return pool

    async def renew(self) -> None:
        """Read the kubeconfig again after a 401: its exec plugin may give a fresh token."""
        if self._kubeconfig is None:
            return
        async with self._renewal:
            fresh = await _configuration(self._kubeconfig)
            self._configuration.api_key.update(fresh.api_key)

    async def credentials(self) -> Credentials:
        """Return the same credentials for a client that keeps its own connections."""
        header = (await self.headers()).get("Authorization", "")
        scheme, _, token = header.partition(" ")
        configuration = self._configuration
        return Credentials(
            server=self.server,
            ca_file=configuration.ssl_ca_cert,
            verify=configuration.verify_ssl,
            token=token if scheme.lower() == "bearer" else None,
            certificate_file=configuration.cert_file,
            key_file=configuration.key_file,
            username=configuration.username or None,
            password=configuration.password or None,
            proxy=configuration.proxy,
        )

    async def close(self) -> None:
        """Close the sockets."""
        await self.api.close()  # type: ignore[no-untyped-call]


async def connect(kubeconfig: Kubeconfig | None = None) -> Connection:
    """Prepare a connection; nothing is sent yet.

    Args:
        kubeconfig: The file and context; None means the Pod's own service account.

    Raises:
        ClusterError: If the file, the context or the service account cannot be read.
    """
    return Connection(await _configuration(kubeconfig), kubeconfig)


async def _configuration(kubeconfig: Kubeconfig | None) -> Configuration:
    configuration = Configuration()
    try:
        if kubeconfig is None:
            load_incluster_config(  # type: ignore[no-untyped-call]
                client_configuration=configuration
            )
        else:
            await load_kube_config(  # type: ignore[no-untyped-call]
                config_file=str(kubeconfig.path),
                context=kubeconfig.context,
                client_configuration=configuration,
                persist_config=False,
            )
    except (ConfigException, OSError, AttributeError) as error:
        # AttributeError: the loader's answer to a file that is not there.
        place = (
            "this Pod's service account"
            if kubeconfig is None
            else f"kubeconfig '{kubeconfig.path}', context '{kubeconfig.context or 'current'}'"
        )
        raise ClusterError(f"{place} cannot be used: {error}") from error
    if kubeconfig is not None and not configuration.proxy:
        configuration.proxy = _proxy_of_the_environment(str(configuration.host))
    # Else aiohttp looks for a .netrc, in a thread, before each request.
    configuration.client_session_kwargs = {"trust_env": False}
    return configuration


def _proxy_of_the_environment(server: str) -> str | None:
    """Return what HTTPS_PROXY and NO_PROXY say, as kubectl heeds them."""
    parts = urlsplit(server)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
