"""What the operator sees of Pods beyond its watch: those it made, those that vanished or are forged."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from wavetank.api.execution import seal_seen
from wavetank.api.wire import Seal, SessionEnd
from wavetank.controller.memory import Created
from wavetank.core.causes import Cause
from wavetank.core.errors import ClusterError
from wavetank.core.observed import Failure, Record
from wavetank.kube.objects import Manifest
from wavetank.testing.created import RUN, digest
from wavetank.testing.looks import (
    NOW,
    ONE,
    SHARD_PATH,
    TWO,
    Bench,
    a_job,
    a_pod,
    a_report,
    bench_of,
    path_of,
)
from wavetank.testing.store import running_store

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
    assert bench.api.asked == [f"GET {path_of(ONE)}"]


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
    assert stored.api.asked == [f"GET {SHARD_PATH}"]


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
