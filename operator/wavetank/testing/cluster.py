"""What tests on a real cluster need: somebody without rights, and patience with a limit."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import yaml

T = TypeVar("T")


async def until(look: Callable[[], Awaitable[T | None]], seconds: float = 30.0) -> T:
    """Look again and again until there is something to see, and return it.

    Args:
        look: Returns what is waited for; None or False while it is not there.
        seconds: After so long a TimeoutError is raised.
    """
    async with asyncio.timeout(seconds):
        while True:
            seen = await look()
            if seen:
                return seen
            await asyncio.sleep(0.05)


def kubeconfig_of_a_service_account(
    kubeconfig: Path, namespace: str, name: str | None, folder: Path
) -> Path:
    """Make a service account without any role, and a kubeconfig with a token of it.

    Args:
        kubeconfig: An administrator's.
        namespace: Where the account is to be.
        name: Its name; None gives a token that is none.
        folder: Where the new kubeconfig goes.
    """
    token = "none"  # noqa: S105 - which is the point
    if name is not None:
        kubectl = ["kubectl", "--kubeconfig", str(kubeconfig), "--namespace", namespace]
        subprocess.run([*kubectl, "create", "serviceaccount", name], check=True)  # noqa: S603
        asked = subprocess.run(  # noqa: S603
            [*kubectl, "create", "token", name], check=True, capture_output=True, text=True
        )
        token = asked.stdout.strip()
    known = yaml.safe_load(kubeconfig.read_text())
    context = {"cluster": known["clusters"][0]["name"], "user": "account"}
    known["users"] = [{"name": "account", "user": {"token": token}}]
    known["contexts"] = [{"name": "account", "context": context}]
    known["current-context"] = "account"
    path = folder / f"kubeconfig-{name}"
    path.write_text(yaml.safe_dump(known))
    return path
