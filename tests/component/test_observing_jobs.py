"""What the operator reads of verifier Jobs: reports inline, from the store, damaged, out of range."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wavetank.api.wire import GradeRecord, GradeRecords
from wavetank.core.causes import Cause
from wavetank.core.identity import verifier_job_name
from wavetank.core.observed import Graded, JobSeen, ScoreSeen
from wavetank.manifests.verifier import verifier_job
from wavetank.testing.created import RUN, a_verifier_job, digest
from wavetank.testing.looks import (
    DONE,
    NOW,
    ONE,
    TWO,
    Bench,
    a_job,
    a_record,
    a_report,
    bench_of,
)
from wavetank.testing.store import running_store

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


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """A bench whose store does not answer."""
    async with bench_of(tmp_path) as made:
        yield made


@pytest.fixture
async def stored(tmp_path: Path) -> AsyncIterator[Bench]:
    """A bench with a store."""
    (tmp_path / "store").mkdir()
    with running_store(tmp_path / "store") as running:
        async with running.client() as store, bench_of(tmp_path, store) as made:
            yield made


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
