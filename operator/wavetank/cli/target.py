"""Which cluster and namespace a command talks to, and how its failures become exit codes."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import click
import yaml

from wavetank.cli.settings import kubeconfig_path
from wavetank.core.errors import ClusterError, SpecError, WavetankError
from wavetank.kube.connection import Kubeconfig
from wavetank.kube.errors import Forbidden, NotFound

P = ParamSpec("P")
T = TypeVar("T")

AT_FAULT = 1
UNREACHABLE = 3
INTERRUPTED = 130


@dataclass(frozen=True)
class Target:
    """A cluster and a namespace in it."""

    kubeconfig: Kubeconfig
    namespace: str


def target_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options that name a cluster, and pass what they say as ``target``."""

    @click.option("-n", "--namespace", help="Namespace; the context's own when not given.")
    @click.option("--context", help="Context of the kubeconfig; the current one when not given.")
    @click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path, dir_okay=False),
        help="File; KUBECONFIG or ~/.kube/config when not given.",
    )
    @wraps(command)
    def wrapped(
        namespace: str | None, context: str | None, kubeconfig: Path | None, **rest: object
    ) -> T:
        return command(target=target_of(namespace, context, kubeconfig), **rest)

    return wrapped


def target_of(namespace: str | None, context: str | None, kubeconfig: Path | None) -> Target:
    """Return the target that options name, the kubeconfig's context filling in."""
    path = kubeconfig_path(kubeconfig)
    if namespace is None:
        namespace = _namespace_of(path, context)
    return Target(Kubeconfig(path, context), namespace)


def _namespace_of(path: Path, context: str | None) -> str:
    """Return the namespace of a kubeconfig's context; ``default`` when it names none."""
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError):
        return "default"  # Opening the client says what is wrong with the file.
    if not isinstance(document, dict):
        return "default"
    name = context or document.get("current-context")
    for entry in document.get("contexts") or ():
        if entry.get("name") == name:
            return str((entry.get("context") or {}).get("namespace") or "default")
    return "default"


def carry_out(step: Callable[[], Awaitable[int]]) -> None:
    """Run a command's coroutine and leave with its exit code; failures become words and codes."""
    sys.exit(_code_of(step))


def _code_of(step: Callable[[], Awaitable[int]]) -> int:
    try:
        return asyncio.run(_awaited(step))
    except KeyboardInterrupt:
        click.echo("interrupted; what runs in the cluster goes on.", err=True)
        return INTERRUPTED
    except SpecError as error:
        click.echo(str(error), err=True)
        return AT_FAULT
    except (NotFound, Forbidden) as error:
        click.echo(str(error), err=True)
        return AT_FAULT
    except ClusterError as error:
        click.echo(f"the cluster or the store could not be reached: {error}", err=True)
        return UNREACHABLE
    except WavetankError as error:
        click.echo(str(error), err=True)
        return AT_FAULT


async def _awaited(step: Callable[[], Awaitable[int]]) -> int:
    return await step()
