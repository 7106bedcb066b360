"""What a resync finds that no event told of."""

import asyncio
from dataclasses import dataclass, field

from wavetank.controller.metrics import Metrics
from wavetank.controller.queue import Key
from wavetank.controller.resync import Resync
from wavetank.core.errors import ClusterError
from wavetank.kube.client import Listing
from wavetank.kube.objects import BENCHMARKS, RUNS, Manifest, Resource
from wavetank.testing.virtual_time import run_in_virtual_time

RUN_A = Key("Run", "bench", "a")


def a_run(version: int) -> Manifest:
    metadata = {"namespace": "bench", "name": "a", "resourceVersion": str(version)}
    return {"kind": "Run", "metadata": metadata}


@dataclass
class Cluster:
    """What lists show."""

    runs: list[Manifest] = field(default_factory=list)
    is_away: bool = False

    async def list(
        self, resource: Resource, namespace: str | None = None, *, metadata_only: bool = False
    ) -> Listing:
        if self.is_away:
            raise ClusterError("away")
        return Listing(self.runs if resource is RUNS else [], "1")


class Bench:
    """A resync every 100 s, what it enqueued and when."""

    def __init__(self, cluster: Cluster) -> None:
        self.metrics = Metrics("test")
        self.enqueued: list[tuple[float, Key, float]] = []
        self.resync = Resync(cluster, None, self._enqueue, self.metrics)
        self.task = asyncio.create_task(self.resync.run(interval_seconds=100))

    def _enqueue(self, key: Key, delay: float) -> None:
        self.enqueued.append((asyncio.get_running_loop().time(), key, delay))

    def value(self, sample: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(sample, labels)


def test_every_object_is_looked_at_at_once_at_the_start_and_spread_out_later() -> None:
    async def main() -> None:
        bench = Bench(Cluster([a_run(1)]))
        await asyncio.sleep(350)

        assert [(at, key) for at, key, _ in bench.enqueued] == [
            (at, RUN_A) for at in (0.0, 100.0, 200.0, 300.0)
        ]
        delays = [delay for _, _, delay in bench.enqueued]
        assert delays[0] == 0.0
        assert all(0 < delay <= 50 for delay in delays[1:])

    run_in_virtual_time(main())


def test_a_changed_object_is_looked_at_at_once() -> None:
    async def main() -> None:
        cluster = Cluster([a_run(1)])
        bench = Bench(cluster)
        await asyncio.sleep(50)
        cluster.runs = [a_run(2)]
        await asyncio.sleep(100)

        assert bench.enqueued[-1] == (100.0, RUN_A, 0.0)

    run_in_virtual_time(main())


def test_an_object_that_vanished_gets_a_last_look() -> None:
    async def main() -> None:
        cluster = Cluster([a_run(1)])
        bench = Bench(cluster)
        await asyncio.sleep(50)
        cluster.runs = []
        await asyncio.sleep(200)

        assert bench.enqueued == [(0.0, RUN_A, 0.0), (100.0, RUN_A, 0.0)]

    run_in_virtual_time(main())


def test_a_change_that_no_event_tells_of_is_a_complaint_until_one_does() -> None:
    async def main() -> None:
        cluster = Cluster([a_run(1)])
        bench = Bench(cluster)
        bench.resync.tell(RUNS, None, a_run(1))
        await asyncio.sleep(50)
        cluster.runs = [a_run(2)]
        await asyncio.sleep(100)
        assert not bench.resync.complaints()  # the event may be on its way
        await asyncio.sleep(100)
        assert bench.resync.complaints() == ["no watch told of a change of Run bench/a"]
        assert bench.value("wavetank_watch_missed_total", resource="runs") == 1

        bench.resync.tell(RUNS, "MODIFIED", a_run(2))
        await asyncio.sleep(100)
        assert not bench.resync.complaints()

    run_in_virtual_time(main())


def test_an_object_that_changes_all_the_time_is_no_complaint_while_events_come() -> None:
    async def main() -> None:
        cluster = Cluster()
        bench = Bench(cluster)
        for version in range(1, 1000):
            # The list is always one change ahead of the event.
            cluster.runs = [a_run(version + 1)]
            bench.resync.tell(RUNS, "MODIFIED", a_run(version))
            await asyncio.sleep(1.5)
            assert not bench.resync.complaints()

    run_in_virtual_time(main())


def test_a_deleted_object_is_no_complaint() -> None:
    async def main() -> None:
        cluster = Cluster([a_run(1)])
        bench = Bench(cluster)
        await asyncio.sleep(250)
        assert bench.resync.complaints()  # no watch at all
        cluster.runs = []
        await asyncio.sleep(100)
        assert not bench.resync.complaints()

    run_in_virtual_time(main())


def test_lists_that_fail_make_their_kind_grow_old() -> None:
    async def main() -> None:
        cluster = Cluster()
        bench = Bench(cluster)
        await asyncio.sleep(50)
        cluster.is_away = True
        await asyncio.sleep(400)
        assert bench.resync.ages() == {"worlds": 450.0, "benchmarks": 450.0, "runs": 450.0}
        cluster.is_away = False
        await asyncio.sleep(55)
        assert bench.resync.ages()["runs"] == 5.0

    run_in_virtual_time(main())


def test_each_kind_is_told_apart() -> None:
    async def main() -> None:
        bench = Bench(Cluster())
        bench.resync.tell(BENCHMARKS, "ADDED", a_run(1))
        assert bench.enqueued == [(0.0, Key("Benchmark", "bench", "a"), 0.0)]

    run_in_virtual_time(main())
