"""When the queue looks at a key: in virtual time, so every moment is exact."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wavetank.controller.queue import Key, QueueSettings, Result, WorkQueue
from wavetank.core.errors import BugError, ClusterError
from wavetank.kube.rate import Backoff
from wavetank.testing.virtual_time import run_in_virtual_time

A = Key("Run", "bench", "a")
B = Key("Run", "bench", "b")
C = Key("World", "bench", "c")

Outcome = float | None | BaseException


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Bench:
    """A queue whose looks take as long, and end, as a test says."""

    seconds: float = 0.0
    """How long each look takes."""
    outcomes: dict[Key, list[Outcome]] = field(default_factory=dict)
    """What the next looks at a key return or raise; None when used up."""
    looks: list[tuple[float, Key]] = field(default_factory=list)
    """When each look began."""
    ended: list[tuple[str, Result, float]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    running: int = 0
    most_running: int = 0

    async def reconcile(self, key: Key) -> float | None:
        self.looks.append((round(now(), 6), key))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.running -= 1
        outcome = self.outcomes.get(key, []).pop(0) if self.outcomes.get(key) else None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def waited(self, seconds: float) -> None:
        self.waits.append(seconds)

    def looked(self, kind: str, result: Result, seconds: float) -> None:
        self.ended.append((kind, result, seconds))


def drive(
    bench: Bench,
    script: Callable[[WorkQueue], Awaitable[None]],
    *,
    workers: int = 4,
    look_seconds: float = 60.0,
) -> Bench:
    """Run a script beside the queue and give back what was seen."""
    settings = QueueSettings(
        workers=workers,
        min_interval_seconds=0.5,
        look_seconds=look_seconds,
        backoff=Backoff(first_seconds=1, most_seconds=60),
    )

    async def main() -> None:
        # Draws of 1: back-off takes its full length.
        queue = WorkQueue(bench.reconcile, bench, settings, draw=lambda: 1.0)
        running = asyncio.create_task(queue.run())
        await script(queue)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run_in_virtual_time(main())
    return bench


def test_a_key_is_looked_at_at_once_and_then_left_alone() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        await asyncio.sleep(1000)

    assert drive(Bench(), script).looks == [(0.0, A)]


def test_a_burst_of_events_costs_one_look_more_after_the_interval() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        await asyncio.sleep(0.1)
        for _ in range(100):
            queue.add(A)
        await asyncio.sleep(10)

    assert drive(Bench(), script).looks == [(0.0, A), (0.5, A)]


def test_a_key_is_never_looked_at_twice_at_once() -> None:
    async def script(queue: WorkQueue) -> None:
        for _ in range(50):
            queue.add(A)
            await asyncio.sleep(0.2)
        await asyncio.sleep(100)

    bench = drive(Bench(seconds=3.0), script)

    assert bench.most_running == 1
    assert [at for at, _ in bench.looks] == [0.0, 3.0, 6.0, 9.0, 12.0]


def test_an_event_during_a_look_brings_one_look_after_it() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        await asyncio.sleep(1)
        queue.add(A)
        queue.add(A)
        await asyncio.sleep(100)

    assert drive(Bench(seconds=5.0), script).looks == [(0.0, A), (5.0, A)]


def test_a_reconciler_says_when_to_look_again() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        await asyncio.sleep(1000)

    bench = drive(Bench(outcomes={A: [30.0, 45.0, None]}), script)

    assert bench.looks == [(0.0, A), (30.0, A), (75.0, A)]


def test_the_earliest_wish_counts() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add_after(A, 60)
        queue.add_after(A, 20)
        queue.add_after(A, 40)
        await asyncio.sleep(1000)

    assert drive(Bench(), script).looks == [(20.0, A)]


def test_an_event_overtakes_the_reconcilers_own_wish() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        await asyncio.sleep(10)
        queue.add(A)
        await asyncio.sleep(1000)

    bench = drive(Bench(outcomes={A: [60.0]}), script)

    assert bench.looks == [(0.0, A), (10.0, A)]


def test_an_event_during_a_look_is_not_lost_when_the_reconciler_wishes_a_later_look() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        await asyncio.sleep(1)
        queue.add(A)
        await asyncio.sleep(20)

    bench = drive(Bench(seconds=2.0, outcomes={A: [60.0, None]}), script)

    assert bench.looks == [(0.0, A), (2.0, A)]


@pytest.mark.parametrize(
    "error",
    [
        ClusterError("away"),
        BugError("ours"),
        ValueError("unforeseen"),
        TimeoutError(),
        asyncio.CancelledError(),
    ],
    ids=["cluster", "bug", "unforeseen", "timeout", "cancelled within"],
)
def test_after_a_failed_look_it_waits_longer_each_time(error: BaseException) -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        await asyncio.sleep(1000)

    bench = drive(Bench(outcomes={A: [error] * 8 + [None]}), script)

    assert [at for at, _ in bench.looks] == [0, 1, 3, 7, 15, 31, 63, 123, 183]


def test_a_success_makes_the_next_failure_the_first_again() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        await asyncio.sleep(30)
        queue.add(A)
        await asyncio.sleep(30)

    away = ClusterError("away")
    bench = drive(Bench(outcomes={A: [away, away, None, away, None]}), script)

    assert [at for at, _ in bench.looks] == [0, 1, 3, 30, 31]


def test_events_do_not_break_into_the_wait_after_a_failure() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        for _ in range(200):
            await asyncio.sleep(0.1)
            queue.add(A)

    bench = drive(Bench(outcomes={A: [ClusterError("away")] * 4}), script)

    assert [at for at, _ in bench.looks][:5] == [0, 1, 3, 7, 15]


def test_the_api_servers_own_wish_for_a_longer_wait_is_kept() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        await asyncio.sleep(100)

    bench = drive(Bench(outcomes={A: [ClusterError("slow down", retry_after_seconds=17)]}), script)

    assert [at for at, _ in bench.looks] == [0, 17]


def test_a_look_that_never_ends_is_cancelled_and_tried_again() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        await asyncio.sleep(99)
        assert queue.longest_look() < 10

    bench = drive(Bench(seconds=1e9), script, look_seconds=10)

    assert [at for at, _ in bench.looks][:3] == [0, 11, 23]
    assert bench.ended[0] == ("Run", Result.ERROR, 10.0)


def test_one_keys_failures_do_not_hold_up_another() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        queue.add(B)
        await asyncio.sleep(0.2)

    bench = drive(Bench(outcomes={A: [ValueError("bug")]}), script, workers=1)

    assert bench.looks == [(0.0, A), (0.0, B)]
    assert bench.ended == [("Run", Result.ERROR, 0.0), ("Run", Result.DONE, 0.0)]


def test_no_more_looks_run_at_once_than_there_are_workers() -> None:
    keys = [Key("Run", "bench", str(number)) for number in range(20)]

    async def script(queue: WorkQueue) -> None:
        for key in keys:
            queue.add(key)
        await asyncio.sleep(0.5)
        assert queue.depth == 17
        await asyncio.sleep(100)
        assert queue.depth == 0

    bench = drive(Bench(seconds=1.0), script, workers=3)

    assert bench.most_running == 3
    assert len(bench.looks) == 20
    assert max(bench.waits) == pytest.approx(6.0)


def test_keys_of_other_kinds_are_told_apart_in_what_is_observed() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        queue.add(C)
        await asyncio.sleep(1)

    bench = drive(Bench(outcomes={C: [ClusterError("away")]}), script)

    assert bench.ended[:2] == [("Run", Result.DONE, 0.0), ("World", Result.RETRY, 0.0)]


def test_draining_lets_running_looks_end_and_starts_none() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        queue.add_after(B, 2)
        await asyncio.sleep(1)
        assert await queue.drain(30)
        assert now() == pytest.approx(5.0, abs=0.1)
        queue.add(C)
        await asyncio.sleep(100)

    assert drive(Bench(seconds=5.0), script).looks == [(0.0, A)]


def test_draining_gives_up_on_a_look_that_goes_on() -> None:
    async def script(queue: WorkQueue) -> None:
        queue.add(A)
        await asyncio.sleep(1)
        assert not await queue.drain(10)
        assert now() == pytest.approx(11.0, abs=0.1)

    drive(Bench(seconds=50.0), script)


def test_a_key_that_nobody_asks_for_is_forgotten() -> None:
    async def script(queue: WorkQueue) -> None:
        for number in range(1000):
            queue.add(Key("Run", "bench", str(number)))
        await asyncio.sleep(10)
        assert not queue._entries

    drive(Bench(), script)


@dataclass
class Plan:
    """A made-up stretch of events and looks."""

    adds: list[tuple[float, int, float]]
    """Pause before, which key, wished delay."""
    looks: list[tuple[float, str]]
    """How long each look takes, and how it ends."""


PLANS = st.builds(
    Plan,
    adds=st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.1, 0.3, 0.7, 2.0, 20.0]),
            st.integers(0, 3),
            st.sampled_from([0.0, 0.0, 0.2, 5.0]),
        ),
        min_size=1,
        max_size=40,
    ),
    looks=st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.05, 0.6, 3.0]),
            st.sampled_from(["none", "again", "away", "bug"]),
        ),
        max_size=40,
    ),
)


# Two workers once waited for less than the clock's grain, and the loop never came to an end.
@example(
    Plan(
        adds=[
            (2.0, 0, 5.0),
            (0.3, 0, 0.0),
            (2.0, 2, 0.0),
            (0.1, 2, 0.0),
            (0.3, 2, 0.0),
            (0.1, 0, 0.0),
        ],
        looks=[(0.6, "again")],
    )
)
@given(plan=PLANS)
def test_whatever_happens_every_wish_is_met_and_no_key_is_looked_at_twice_at_once(
    plan: Plan,
) -> None:
    keys = [Key("Run", "bench", str(number)) for number in range(4)]
    spans: dict[Key, list[tuple[float, float]]] = {key: [] for key in keys}
    added: dict[Key, float] = {}
    script = list(plan.looks)

    async def reconcile(key: Key) -> float | None:
        begun = now()
        seconds, end = script.pop() if script else (0.0, "none")
        await asyncio.sleep(seconds)
        spans[key].append((begun, now()))
        if end == "away":
            raise ClusterError("away")
        if end == "bug":
            raise ValueError("bug")
        return 4.0 if end == "again" else None

    async def main() -> None:
        settings = QueueSettings(workers=2, min_interval_seconds=0.5)
        queue = WorkQueue(reconcile, Bench(), settings)
        running = asyncio.create_task(queue.run())
        for pause, number, delay in plan.adds:
            await asyncio.sleep(pause)
            queue.add_after(keys[number], delay)
            added[keys[number]] = now()
        await asyncio.sleep(10_000)
        assert queue.depth == 0
        assert not queue._entries
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run_in_virtual_time(main())

    for key, moment in added.items():
        assert spans[key][-1][0] >= moment
    for looks in spans.values():
        for (begun, ended), (next_begun, _) in pairwise(looks):
            assert next_begun >= ended
            assert next_begun >= begun + 0.5 - 1e-9
