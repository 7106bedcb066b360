"""The store as the command line reaches it: through the API server, by a token from the cluster."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wavetank.cli.target import Place
from wavetank.core.errors import ClusterError, Finding, Severity, SpecError
from wavetank.kube.errors import Forbidden, NotFound
from wavetank.kube.proxy import ServiceProxy


@dataclass(frozen=True)
class Store:
    """A store's Service, and a token for what is wanted of it."""

    service: ServiceProxy
    token: str
    where: str

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Turn what the API server says about the Service into words about the store."""
        try:
            yield
        except NotFound as error:
            raise ClusterError(
                f"there is no Service {self.where}: Wavetank was removed, or installed elsewhere."
            ) from error
        except Forbidden as error:
            namespace = self.where.partition("/")[0]
            words = f"you may not reach it. Ask for Role wavetank-store-access in {namespace}."
            raise SpecError([Finding(Severity.FAULT, f"store {self.where}", words)]) from error


def store_at(place: Place, where: str, token: str) -> Store:
    """Return the store that an object's status names.

    Args:
        place: In the same cluster.
        where: The Service as ``<namespace>/<name>:<port>``.
        token: What the store is to be shown.
    """
    service, _, port = where.rpartition(":")
    namespace, _, name = service.partition("/")
    return Store(ServiceProxy(place.client, namespace, name, int(port)), token, where)


def refusal(body: bytes) -> ClusterError:
    """Return the error for an answer of the store that is no success.

    >>> refusal(b'{"error": {"type": "TooLarge", "message": "at most 5 bytes"}}')
    ClusterError('the store refused: at most 5 bytes')
    """
    try:
        words = str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        words = body[:300].decode(errors="replace")
    return ClusterError(f"the store refused: {words}")
