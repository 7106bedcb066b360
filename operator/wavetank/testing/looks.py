"""Looks at one Run by ``observe``: what it may find beyond the watches' copies."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wavetank.api.kinds import read
from wavetank.api.ledger import encode, key_of
from wavetank.api.run import Run
from wavetank.api.wire import GradeRecord, GradeRecords, GradeReport, Score
from wavetank.controller.ledger import RunLedger
from wavetank.controller.memory import RunMemory
from wavetank.controller.observing import Children, Sources, observe
from wavetank.core.identity import AttemptKey, ledger_name, rollout_pod_name
from wavetank.core.observed import Failure, JobSeen, Record, RunSeen
from wavetank.kube.client import open_client
from wavetank.kube.connection import Kubeconfig
from wavetank.kube.objects import Manifest
from wavetank.manifests.objects import ledger_config_map
from wavetank.manifests.rollout import rollout_pod
from wavetank.manifests.verifier import verifier_job
from wavetank.store.client import StoreClient
from wavetank.testing.api_server import scripted_api_server
from wavetank.testing.created import RUN, a_plan, a_rollout, a_verifier_job, digest
from wavetank.testing.objects import a_run
from wavetank.testing.small_api import SmallApi

NOW = 1_800_000_000.0
"""When things were created, in seconds; looks come then or later."""
ONE, TWO = AttemptKey(12, 1), AttemptKey(13, 1)
"""The members of the verifier Job."""
NO_STORE = "http://127.0.0.1:1"
SHARD_PATH = f"/api/v1/namespaces/bench/configmaps/{ledger_name(RUN.name, 0, 0)}"

A_RUN = read(
    Run,
    {**a_run(RUN.name, k=20), "metadata": {"name": RUN.name, "namespace": "bench", "uid": RUN.uid}},
)


@dataclass
class Bench:
    """One operator's memory of the Run, its API server and its store."""

    api: SmallApi
    memory: RunMemory
    sources: Sources

    async def look(
        self,
        *pods: Manifest,
        jobs: tuple[tuple[Manifest, tuple[Manifest, ...]], ...] = (),
        at: float = NOW,
    ) -> RunSeen:
        """Look once, with these objects in the watches' copies."""
        return await observe(A_RUN, self.memory, Children(pods, jobs), self.sources, at)

    async def grading(self, job: Manifest, *pods: Manifest) -> JobSeen | None:
        """Look at one Job with its Pods; None when it is not held for a verifier's."""
        seen = await self.look(jobs=((job, pods),))
        return next(iter(seen.jobs), None)

    def has_shard(self, *entries: Record | Failure) -> None:
        """Let another operator have written these entries."""
        data = {key_of(entry): encode(entry, ["close_ticket"], NOW) for entry in entries}
        self.api.put(SHARD_PATH, ledger_config_map(RUN, 0, 0, data))


@asynccontextmanager
async def bench_of(folder: Path, store: StoreClient | None = None) -> AsyncIterator[Bench]:
    """Give a bench with an empty memory.

    Args:
        folder: For the kubeconfig.
        store: None for one that does not answer.
    """
    api = SmallApi()
    async with scripted_api_server() as server:
        server.otherwise = api.answer
        async with open_client(Kubeconfig(server.kubeconfig(folder))) as client:
            ledger = RunLedger(client, RUN, 0, ["close_ticket"])
            memory = RunMemory(uid=RUN.uid, plan=a_plan(), ledger=ledger)
            yield Bench(api, memory, Sources(client, store or StoreClient(NO_STORE, "token")))


def a_pod(key: AttemptKey = ONE, uid: str = "pod-uid", **status: Any) -> Manifest:
    """A rollout Pod as the API server has it."""
    session = a_rollout().session
    pod = rollout_pod(
        a_rollout(
            session=session.model_copy(update={"ordinal": key.ordinal, "attempt": key.attempt})
        )
    )
    pod["metadata"] |= {"uid": uid, "creationTimestamp": "2027-01-15T08:00:00Z"}
    return {**pod, "status": status}


def path_of(key: AttemptKey) -> str:
    """Return where the API server has the Pod of an attempt."""
    return f"/api/v1/namespaces/bench/pods/{rollout_pod_name(RUN.name, RUN.uid, key)}"


def a_job(uid: str = "job-uid", **status: Any) -> Manifest:
    """Return the verifier Job of ONE and TWO with this status."""
    job = verifier_job(a_verifier_job())
    job["metadata"] |= {"uid": uid, "creationTimestamp": "2027-01-15T08:00:00Z"}
    return {**job, "status": status}


DONE: dict[str, Any] = {"conditions": [{"type": "Complete", "status": "True"}]}
"""Status of a Job that is finished."""


def a_record(ordinal: int = 12, **changes: Any) -> GradeRecord:
    """Return what a judge says of a rollout's first attempt, with changes."""
    record = GradeRecord(
        ordinal=ordinal,
        attempt=1,
        task="close_ticket",
        seal=digest("d"),
        grader=digest("b"),
        reward=0.5,
        scores=[Score(name="ticket_closed", value=0.5)],
    )
    return record.model_copy(update=changes)


def a_report(*records: GradeRecord, **changes: Any) -> Manifest:
    """The Pod of a Job whose judge reported these records."""
    document = GradeRecords(records=list(records or [a_record()]))
    report = GradeReport(
        sha256=document.digest(), n=len(document.records), records=document.records
    ).model_copy(update=changes)
    terminated = {
        "exitCode": 0,
        "startedAt": "2027-01-15T08:00:01Z",
        "message": report.canonical().decode(),
    }
    return {
        "metadata": {
            "name": "pod",
            "namespace": "bench",
            "uid": "pod",
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": "job",
                    "uid": "job-uid",
                    "controller": True,
                }
            ],
        },
        "status": {"containerStatuses": [{"name": "judge", "state": {"terminated": terminated}}]},
    }
