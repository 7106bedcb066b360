"""What the operator sees beyond its watches: what it made, what vanished, what was reported."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from wavetank.api.execution import seal_seen
from wavetank.api.kinds import read
from wavetank.api.ledger import encode
from wavetank.api.run import Run
from wavetank.api.wire import (
    GradeRecord,
    GradeRecords,
    GradeReport,
    Score,
    Seal,
    SessionEnd,
)
from wavetank.controller.ledger import RunLedger
from wavetank.controller.memory import Created, RunMemory
from wavetank.controller.observing import Children, Sources, observe
from wavetank.core.causes import Cause
from wavetank.core.errors import ClusterError
from wavetank.core.identity import (
    AttemptKey,
    ledger_name,
    rollout_pod_name,
    verifier_job_name,
)
from wavetank.core.observed import Failure, Graded, JobSeen, Record, RunSeen, ScoreSeen
from wavetank.kube.client import Client, open_client
from wavetank.kube.connection import Kubeconfig
from wavetank.kube.objects import Manifest
from wavetank.manifests.objects import ledger_config_map
from wavetank.manifests.rollout import rollout_pod
from wavetank.manifests.verifier import verifier_job
from wavetank.store.client import StoreClient
from wavetank.testing.api_server import Answer, gives, refuses, scripted_api_server
from wavetank.testing.created import RUN, a_plan, a_rollout, a_verifier_job, digest
from wavetank.testing.objects import a_run
from wavetank.testing.store import running_store

NOW = 1_800_000_000.0
ONE, TWO = AttemptKey(12, 1), AttemptKey(13, 1)
SEAL = Seal(
    run=RUN.uid,
    ordinal=12,
    attempt=1,
    task="close_ticket",
    end=SessionEnd.CLOSED,
    reason="completed",
    exit_code=0,
    snapshot=digest("e"),
    snapshot_bytes=1,
    calls=0,
    started_at="2027-01-15T08:00:00Z",
    ended_at="2027-01-15T08:00:05Z",
)
A_RUN = read(
    Run,
    {**a_run(RUN.name, k=20), "metadata": {"name": RUN.name, "namespace": "bench", "uid": RUN.uid}},
)


@dataclass
class Api:
    """An API server that has these objects, by path, and counts what it was asked."""

    objects: dict[str, Manifest] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def answer(self, request: web.Request) -> Answer:
        self.asked.append(request.path)
        found = self.objects.get(request.path)
        return refuses(404, "NotFound") if found is None else gives(found)


@dataclass
class Bench:
    """One operator's memory of the Run, its API server and its store."""

    api: Api
    memory: RunMemory
    sources: Sources

    async def look(
        self,
        *pods: Manifest,
        jobs: tuple[tuple[Manifest, tuple[Manifest, ...]], ...] = (),
        at: float = NOW,
    ) -> RunSeen:
        return await observe(A_RUN, self.memory, Children(pods, jobs), self.sources, at)

    async def grading(self, job: Manifest, *pods: Manifest) -> JobSeen | None:
        seen = await self.look(jobs=((job, pods),))
        return next(iter(seen.jobs), None)

    def has_shard(self, *entries: Record | Failure) -> None:
        data = {
            str(e.key.ordinal)
            if isinstance(e, Record)
            else f"{e.key.ordinal}.a{e.key.attempt}": encode(e, ["close_ticket"], NOW)
            for e in entries
        }
        shard = ledger_config_map(RUN, 0, 0, data)
        shard["metadata"]["resourceVersion"] = "7"
        self.api.objects[f"/api/v1/namespaces/bench/configmaps/{ledger_name(RUN.name, 0, 0)}"] = (
            shard
        )


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[tuple[Client, Api]]:
    api = Api()
    async with scripted_api_server() as server:
        server.otherwise = api.answer
        async with open_client(Kubeconfig(server.kubeconfig(tmp_path))) as opened:
            yield opened, api


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[StoreClient]:
    (tmp_path / "store").mkdir()
    with running_store(tmp_path / "store") as running:
        async with running.client() as opened:
            yield opened


def bench_of(client: tuple[Client, Api], store: StoreClient) -> Bench:
    opened, api = client
    ledger = RunLedger(opened, RUN, 0, ["close_ticket"])
    memory = RunMemory(uid=RUN.uid, plan=a_plan(), ledger=ledger)
    return Bench(api, memory, Sources(opened, store))


@pytest.fixture
def stored(client: tuple[Client, Api], store: StoreClient) -> Bench:
    """A bench with a store."""
    return bench_of(client, store)


@pytest.fixture
def bench(client: tuple[Client, Api]) -> Bench:
    """A bench whose store does not answer."""
    return bench_of(client, StoreClient("http://127.0.0.1:1", "token"))


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
    return f"/api/v1/namespaces/bench/pods/{rollout_pod_name(RUN.name, RUN.uid, key)}"


async def test_a_pod_made_a_moment_ago_is_there_before_any_watch_tells_of_it(bench: Bench) -> None:
    bench.memory.created[ONE] = Created(a_pod(), NOW)

    seen = await bench.look(at=NOW + 59)

    assert [pod.key for pod in seen.pods] == [ONE]
    assert (seen.vanished, bench.api.asked) == (frozenset(), [])


async def test_a_pod_that_no_watch_tells_of_is_asked_for_and_taken_as_it_is(bench: Bench) -> None:
    bench.memory.created[ONE] = Created(a_pod(), NOW)
    bench.api.objects[path_of(ONE)] = a_pod(reason="Evicted", message="low on memory")

    seen = await bench.look(at=NOW + 61)
    again = await bench.look(at=NOW + 120)

    assert [(pod.key, pod.reason) for pod in seen.pods] == [(ONE, "Evicted")]
    assert again == seen
    assert bench.api.asked == [path_of(ONE)]


@pytest.mark.parametrize("other", [None, a_pod(uid="a later one")], ids=["none", "a later one"])
async def test_a_pod_that_came_and_went_unseen_has_vanished(
    stored: Bench, other: Manifest | None
) -> None:
    stored.memory.created[ONE] = Created(a_pod(), NOW)
    if other is not None:
        stored.api.objects[path_of(ONE)] = other

    seen = await stored.look(at=NOW + 61)

    assert (seen.pods, seen.vanished) == ((), frozenset({ONE}))
    assert list(seen.last_seen) == [ONE]


async def test_a_pod_that_is_gone_is_remembered_as_it_was_and_the_store_asked_once(
    stored: Bench,
) -> None:
    await stored.look(a_pod(reason="Evicted"))

    first = await stored.look()
    again = await stored.look()

    assert (first.vanished, first.seals) == (frozenset({ONE}), {})
    assert first.last_seen[ONE].reason == "Evicted"
    assert again == first
    shard = f"/api/v1/namespaces/bench/configmaps/{ledger_name(RUN.name, 0, 0)}"
    assert stored.api.asked == [shard]


async def test_a_pod_that_is_gone_after_its_seal_is_found_in_the_store(stored: Bench) -> None:
    await stored.sources.store.put(f"/v1/runs/{RUN.uid}/12/1/seal", SEAL.canonical())
    await stored.look(a_pod())

    seen = await stored.look(at=NOW + 5)

    assert seen.seals == {ONE: seal_seen(SEAL, ONE, RUN.uid)}
    assert seen.ended_seen == {ONE: NOW + 5}


async def test_a_seal_in_another_attempts_place_is_none(stored: Bench) -> None:
    await stored.sources.store.put(f"/v1/runs/{RUN.uid}/13/1/seal", SEAL.canonical())
    await stored.look(a_pod(TWO))

    seen = await stored.look()

    assert (seen.vanished, seen.seals) == (frozenset({TWO}), {})


@pytest.mark.parametrize(
    "entry",
    [Record(ONE, 0.5), Failure(ONE, Cause.EVICTED, "", NOW)],
    ids=["a record", "a failure"],
)
async def test_what_another_operator_wrote_of_a_pod_and_deleted_it_has_not_vanished(
    bench: Bench, entry: Record | Failure
) -> None:
    await bench.look(a_pod())
    bench.has_shard(entry)

    seen = await bench.look()

    assert seen.vanished == frozenset()
    assert seen.ledger.is_over(ONE)


async def test_while_the_store_is_away_nothing_is_said_of_a_pod_that_is_gone(
    bench: Bench,
) -> None:
    await bench.look(a_pod())

    with pytest.raises(ClusterError, match="/12/1/seal"):
        await bench.look()


async def test_what_is_over_is_forgotten(bench: Bench) -> None:
    job = a_job()
    await bench.look(a_pod(), a_pod(TWO), jobs=((job, (a_report(),)),))
    bench.memory.refused[ONE] = "no"
    bench.has_shard(Record(ONE, 0.5), Failure(TWO, Cause.EVICTED, "", NOW))

    await bench.look()
    await bench.look()

    memory = bench.memory
    assert (memory.seen, memory.asked, memory.seals, memory.ended_seen) == ({}, set(), {}, {})
    assert (memory.refused, memory.reports) == ({}, {})


@pytest.mark.parametrize("change", ["name", "annotation"])
async def test_a_pod_in_the_place_of_a_rollout_is_none(bench: Bench, change: str) -> None:
    pod = a_pod()
    if change == "name":
        pod["metadata"]["name"] += "-x"
    else:
        pod["metadata"]["annotations"]["wavetank.dev/ordinal"] = "-5"

    assert (await bench.look(pod)).pods == ()


def a_job(uid: str = "job-uid", **status: Any) -> Manifest:
    job = verifier_job(a_verifier_job())
    job["metadata"] |= {"uid": uid, "creationTimestamp": "2027-01-15T08:00:00Z"}
    return {**job, "status": status}


DONE: dict[str, Any] = {"conditions": [{"type": "Complete", "status": "True"}]}


def a_record(ordinal: int = 12, **changes: Any) -> GradeRecord:
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


GRADED = Graded(ONE, digest("d"), digest("b"), 0.5, None, (ScoreSeen("ticket_closed", 0.5),))
REPORTED = JobSeen(
    name=verifier_job(a_verifier_job())["metadata"]["name"],
    uid="job-uid",
    members=(ONE, TWO),
    try_number=1,
    created_at=NOW,
    started_at=NOW + 1,
    finished=True,
    graded=(GRADED,),
)


async def test_a_report_is_read_whole(bench: Bench) -> None:
    assert await bench.grading(a_job(), a_report()) == REPORTED


@pytest.mark.parametrize(
    ("record", "reward", "cause"),
    [
        (a_record(reward=1.5), None, Cause.REWARD_INVALID),
        (a_record(reward=-0.1), None, Cause.REWARD_INVALID),
        (a_record(reward=None), None, Cause.REWARD_MISSING),
        (a_record(reward=None, cause=Cause.VERIFIER_FAILED), None, Cause.VERIFIER_FAILED),
        (a_record(reward=0.0), 0.0, None),
    ],
    ids=["above the range", "below it", "none", "none with a cause", "zero"],
)
async def test_a_reward_that_is_none_is_null_with_a_cause(
    bench: Bench, record: GradeRecord, reward: float | None, cause: Cause | None
) -> None:
    seen = await bench.grading(a_job(), a_report(record))

    assert seen is not None
    assert [(g.reward, g.cause) for g in seen.graded] == [(reward, cause)]


async def test_records_of_others_and_second_ones_are_left_out(bench: Bench) -> None:
    pod = a_report(a_record(), a_record(99), a_record(13, attempt=2), a_record(reward=1.0))

    assert await bench.grading(a_job(), pod) == REPORTED


@pytest.mark.parametrize(
    "report",
    [{"sha256": digest("f")}, {"records": [], "n": 0}],
    ids=["another digest", "no records"],
)
async def test_records_that_are_not_those_of_the_digest_are_none(
    bench: Bench, report: dict[str, Any]
) -> None:
    seen = await bench.grading(a_job(), a_report(**report))

    assert seen == replace(REPORTED, graded=())


async def test_records_in_the_store_are_read_once_it_answers(stored: Bench, bench: Bench) -> None:
    document = GradeRecords(records=[a_record()])
    path = f"/v1/runs/{RUN.uid}/grades/{document.digest()}"
    await stored.sources.store.put(path, document.canonical())
    pod = a_report(records=None)

    away = await bench.grading(a_job(), pod)
    there = await replace(stored, memory=bench.memory).grading(a_job(), pod)
    away_again = await bench.grading(a_job(), pod)

    assert away is not None
    assert (away.pending, away.finished, away.graded) == (True, True, ())
    assert away.problem.startswith(f"the records of verifier Job {REPORTED.name}: ")
    assert there == away_again == REPORTED


async def test_records_that_the_store_does_not_have_are_none(stored: Bench) -> None:
    seen = await stored.grading(a_job(), a_report(records=None))

    assert seen == replace(REPORTED, graded=())


async def test_a_judge_that_could_not_reach_the_store_says_so(bench: Bench) -> None:
    pod = a_report(cause=Cause.STORE_UNAVAILABLE, records=[], message="no route to host")

    seen = await bench.grading(a_job(), pod)

    assert seen is not None
    assert (seen.store_away, seen.problem) == (True, "no route to host")


async def test_a_job_that_is_done_before_its_pod_is_seen_so_is_asked_for_its_pod(
    bench: Bench,
) -> None:
    listing = {"metadata": {"resourceVersion": "1"}, "items": [a_report()]}
    bench.api.objects["/api/v1/namespaces/bench/pods"] = listing
    running = json.loads(json.dumps(a_report()))
    running["status"]["containerStatuses"][0]["state"] = {"running": {}}

    assert await bench.grading(a_job(**DONE), running) == REPORTED


async def test_a_job_that_is_done_and_whose_pod_is_gone_has_no_report(bench: Bench) -> None:
    bench.api.objects["/api/v1/namespaces/bench/pods"] = {"metadata": {}, "items": []}

    seen = await bench.grading(a_job(**DONE))

    assert seen == replace(REPORTED, started_at=None, graded=())


@pytest.mark.parametrize(
    ("note", "text"),
    [("members", "12.1"), ("members", "-12.1"), ("try", "2"), ("try", "\u00b2")],
)
async def test_a_job_in_the_place_of_a_verifiers_is_none(
    bench: Bench, note: str, text: str
) -> None:
    job = a_job()
    job["metadata"]["annotations"][f"wavetank.dev/{note}"] = text

    assert await bench.grading(job, a_report()) is None


async def test_a_job_of_another_generation_is_none_of_this_one(bench: Bench) -> None:
    job = a_job()
    job["metadata"]["name"] = verifier_job_name(RUN.name, RUN.uid, (ONE, TWO), 1, 1)

    assert await bench.grading(job, a_report()) is None
