"""Following what happens on a real cluster, as a witness of its own: never the operator's word."""

import asyncio
from collections.abc import Iterable

from wavetank.api.conditions import is_true
from wavetank.api.kinds import read
from wavetank.api.ledger import decode, ledger_of
from wavetank.api.run import Run
from wavetank.core.observed import Ledger
from wavetank.kube.client import Client
from wavetank.kube.objects import CONFIGMAPS, JOBS, PODS, RUNS, SECRETS, Manifest, Resource
from wavetank.kube.watch import Change, Watch
from wavetank.testing.cluster import until

RUN_UID = "wavetank.dev/run-uid"
COMPONENT = "app.kubernetes.io/component"


async def apply(client: Client, namespace: str, *objects: Manifest) -> None:
    """Create these objects of ours."""
    plurals = {"World": "worlds", "Benchmark": "benchmarks", "Run": "runs"}
    for item in objects:
        group, _, version = item["apiVersion"].partition("/")
        resource = Resource(group, version, plurals[item["kind"]], item["kind"])
        await client.create(resource, namespace, item)


async def run_of(client: Client, namespace: str, name: str) -> Run:
    """Return a Run as it is now."""
    return read(Run, await client.get(RUNS, namespace, name))


async def over(client: Client, namespace: str, name: str, seconds: float = 240.0) -> Run:
    """Return a Run when it is Complete or Failed."""

    async def look() -> Run | None:
        await asyncio.sleep(0.5)
        run = await run_of(client, namespace, name)
        conditions = run.status.conditions
        is_over = is_true(conditions, "Complete") or is_true(conditions, "Failed")
        current = run.status.observed_generation == run.metadata.generation
        return run if is_over and current else None

    return await until(look, seconds)


async def ledger_of_run(client: Client, run: Run) -> Ledger:
    """Return a Run's ledger from its ConfigMaps."""
    selector = f"{RUN_UID}={run.metadata.uid},{COMPONENT}=ledger"
    shards = await client.list(CONFIGMAPS, run.metadata.namespace, label_selector=selector)
    return ledger_of(
        decode(shard["metadata"]["name"], key, text)
        for shard in shards.items
        for key, text in (shard.get("data") or {}).items()
    )


async def objects_of_run(client: Client, namespace: str, uid: str) -> list[str]:
    """Return kind and name of everything that a Run made and that is still there."""
    found = []
    for resource in (PODS, JOBS, CONFIGMAPS, SECRETS):
        listing = await client.list(resource, namespace, label_selector=f"{RUN_UID}={uid}")
        found += [f"{resource.kind} {item['metadata']['name']}" for item in listing.items]
    return found


class Witness:
    """Sees every rollout Pod that comes into being in a namespace while it looks."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.pods: dict[str, Manifest] = {}
        """By UID, as last seen."""
        self._watch = Watch(client, PODS, self._see, namespace=namespace, label_selector=RUN_UID)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Witness":
        self._task = asyncio.create_task(self._watch.run())
        await self._watch.synced.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()

    def _see(self, change: Change, pod: Manifest) -> None:
        del change
        self.pods[pod["metadata"]["uid"]] = pod

    def rollouts(self) -> list[str]:
        """Return the names of the rollout Pods seen, sorted; one seen twice stands there twice."""
        return sorted(_names(self.pods.values(), "rollout"))

    def verifiers(self) -> list[str]:
        """Return the names of the verifier Pods seen, sorted."""
        return sorted(_names(self.pods.values(), "verifier"))


def _names(pods: Iterable[Manifest], component: str) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in pods
        if pod["metadata"].get("labels", {}).get(COMPONENT) == component
    ]
