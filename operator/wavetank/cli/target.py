"""Which cluster and namespace a command talks to, and how its failures become exit codes."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml

from wavetank.cli.settings import files_of, kubeconfig_path
from wavetank.core.errors import ClusterError, SpecError, WavetankError
from wavetank.kube.client import Client, open_client
from wavetank.kube.connection import Kubeconfig
from wavetank.kube.errors import AlreadyExists, Conflict, Forbidden, NotFound

T = TypeVar("T")

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

AT_FAULT = 1
UNREACHABLE = 3
INTERRUPTED = 130


@dataclass(frozen=True)
class Target:
    """What the options say about cluster and namespace; None where they say nothing."""

    kubeconfig: Path
    context: str | None
    namespace: str | None

    @property
    def is_named(self) -> bool:
        """Tell whether a cluster is meant for sure: its context or a namespace was given."""
        return self.context is not None or self.namespace is not None


@dataclass(frozen=True)
class Place:
    """A namespace of a cluster, with an open client."""

    client: Client
    namespace: str


def target_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options that name a cluster, and pass what they say as ``target``."""

    @click.option(
        "-n", "--namespace", metavar="NAME", help="Namespace. Default: the context's own."
    )
    @click.option(
        "--context", metavar="NAME", help="Context of the kubeconfig. Default: the current one."
    )
    @click.option(
        "--kubeconfig",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Which cluster. Default: KUBECONFIG, else ~/.kube/config.",
    )
    @wraps(command)
    def wrapped(
        namespace: str | None, context: str | None, kubeconfig: Path | None, **rest: object
    ) -> T:
        return command(target=Target(kubeconfig_path(kubeconfig), context, namespace), **rest)

    return wrapped


class ObjectName(click.ParamType[str]):
    """The type of an option that names an object to be made."""

    name = "name"

    def __init__(self, longest: int) -> None:
        self._longest = longest

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or fail with what one must look like."""
        if len(value) > self._longest or not _NAME.fullmatch(value):
            self.fail(
                f"{value!r} cannot name an object: lower-case letters, digits, '-' and '.', at "
                f"most {self._longest} characters, with a letter or digit at both ends.",
                param,
                ctx,
            )
        return value


@asynccontextmanager
async def connected(target: Target) -> AsyncIterator[Place]:
    """Give a client for the target, and the namespace that is meant; nothing is sent yet.

    Raises:
        ClusterError: If the kubeconfig cannot be used.
    """
    context, namespace = _context_of(target)
    async with open_client(Kubeconfig(target.kubeconfig, context)) as client:
        yield Place(client, target.namespace or namespace)


def _context_of(target: Target) -> tuple[str, str]:
    """Return the name of the context that is meant, and its namespace."""
    documents = [_read(file) for file in files_of(target.kubeconfig) if file.exists()]
    if not documents:
        raise ClusterError(
            f"there is no kubeconfig '{target.kubeconfig}'. Give --kubeconfig, or set KUBECONFIG."
        )
    contexts: dict[str, dict[str, Any]] = {}
    for document in documents:
        for entry in document.get("contexts") or ():
            contexts.setdefault(str(entry.get("name")), entry.get("context") or {})
    current = next((d["current-context"] for d in documents if d.get("current-context")), None)
    name = target.context or current
    if name not in contexts:
        what = "it has no current context" if name is None else f"it has no context {name!r}"
        raise ClusterError(
            f"kubeconfig '{target.kubeconfig}': {what}. "
            f"Give --context, one of: {', '.join(contexts) or 'none'}."
        )
    return str(name), str(contexts[name].get("namespace") or "default")


def _read(file: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ClusterError(f"kubeconfig '{file}' cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise ClusterError(f"kubeconfig '{file}' is no kubeconfig: it holds no mapping.")
    return document


def carry_out(step: Callable[[], Awaitable[int]]) -> None:
    """Run a command's coroutine and leave with its exit code; failures become words and codes."""
    sys.exit(_code_of(step))


def _code_of(step: Callable[[], Awaitable[int]]) -> int:
    try:
        return asyncio.run(_awaited(step))
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
    except WavetankError as error:
        code, words = _verdict(error)
        click.echo(words, err=True)
        return code
    except BrokenPipeError:
        raise  # Whoever read our output has gone; click ends quietly.
    except OSError as error:
        click.echo(f"{error.filename or 'output'}: {error.strerror or error}.", err=True)
        return AT_FAULT


def _verdict(error: WavetankError) -> tuple[int, str]:
    """Return exit code and words of a failure."""
    # With a Status object the object is missing; with a plain 404 the kind itself is.
    if isinstance(error, NotFound) and not error.failure.reason:
        kind = error.failure.request.kind
        return UNREACHABLE, (
            f"This cluster does not know the kind {kind}: Wavetank is not installed there. "
            f"Install its Helm chart, or name another cluster by --context."
        )
    if isinstance(error, Forbidden):
        return AT_FAULT, (
            f"{error}\nAsk for a role that allows it, or name another --namespace or --context."
        )
    if isinstance(error, SpecError | NotFound | AlreadyExists | Conflict):
        return AT_FAULT, str(error)
    if isinstance(error, ClusterError):
        return UNREACHABLE, f"The cluster or the store could not be reached: {error}"
    return AT_FAULT, str(error)


async def _awaited(step: Callable[[], Awaitable[int]]) -> int:
    return await step()
