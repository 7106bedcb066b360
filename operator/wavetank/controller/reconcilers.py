"""Which code looks at which kind, once the signing key and the store's address are known."""

import asyncio
from collections.abc import Mapping

from wavetank.controller.benchmarks import BenchmarkReconciler
from wavetank.controller.checks import Checker
from wavetank.controller.queue import Key, Reconciler
from wavetank.controller.runs import RunReconciler
from wavetank.controller.shell import Shell
from wavetank.controller.storage import open_storage
from wavetank.controller.worlds import WorldReconciler


def make_reconcilers(shell: Shell) -> Mapping[str, Reconciler]:
    """Return the reconcilers by kind; the storage is opened by a look of its own, or the first.

    Its own, since the store waits for the public key also where there is nothing to look at yet.
    """
    opening = _Opening(shell)

    async def open_early(_: Key) -> float | None:
        await opening.reconcilers()
        return None

    async def look(key: Key) -> float | None:
        reconciler = (await opening.reconcilers())[key.kind]
        return await reconciler(key)

    shell.enqueue(Key("Storage", shell.settings.namespace, shell.settings.store_service), 0.0)
    return {"Storage": open_early, "World": look, "Benchmark": look, "Run": look}


class _Opening:
    """Opens the storage once; a failure is the look's, which is repeated with back-off."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._lock = asyncio.Lock()
        self._made: Mapping[str, Reconciler] | None = None

    async def reconcilers(self) -> Mapping[str, Reconciler]:
        async with self._lock:
            if self._made is None:
                self._made = await self._open()
        return self._made

    async def _open(self) -> Mapping[str, Reconciler]:
        shell = self._shell
        settings = shell.settings
        storage = await open_storage(
            shell.client, settings.namespace, settings.store_service, shell.clock
        )
        checker = Checker(shell, storage)
        return {
            "World": WorldReconciler(shell, storage, checker),
            "Benchmark": BenchmarkReconciler(shell, storage, checker),
            "Run": RunReconciler(shell, storage),
        }
