"""The operator with reconcilers that only tell of their looks: run by test_shell.py as a process."""

import asyncio
import sys
from collections.abc import Mapping

from wavetank.controller import clock, logs, settings
from wavetank.controller.queue import Key, Reconciler
from wavetank.controller.shell import Shell, run_operator
from wavetank.kube.objects import OWN_KINDS

SLOW = "slow"
"""A look at an object of this name takes some seconds."""


def make_reconcilers(shell: Shell) -> Mapping[str, Reconciler]:
    kinds = {resource.kind: resource for resource in OWN_KINDS}

    async def look(key: Key) -> None:
        seen = await shell.client.find(kinds[key.kind], key.namespace, key.name)
        if seen is not None:
            await shell.events.post(seen, "Looked", "Somebody looked.")
        if key.name == SLOW:
            print(f"begins {key}", flush=True)
            await asyncio.sleep(3)
        print(f"looked {key} {'there' if seen else 'gone'}", flush=True)

    return dict.fromkeys(kinds, look)


if __name__ == "__main__":
    told = settings.from_environment()
    logs.set_up(told.log_format, told.log_level)
    asyncio.run(run_operator(told, make_reconcilers, clock.now))
    sys.exit(0)
