"""A Run's figures against numbers computed by hand, and what must hold of any ledger."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavetank.core import statistics
from wavetank.core.aggregate import aggregate, ks_of, passes
from wavetank.core.causes import Cause
from wavetank.core.figures import (
    Aggregate,
    CauseCount,
    Counts,
    Coverage,
    GroupRow,
    Interval,
    PassFigure,
    PlannedTask,
    RewardFigures,
    Sample,
    Scoring,
    TaskRow,
    VerifierMean,
)


def samples(task: str, *rewards: float | Cause) -> list[Sample]:
    """Rollouts 0, 1, ... of a task: a reward each, or why there is none."""
    return [
        Sample(task, rollout, None, reward)
        if isinstance(reward, Cause)
        else Sample(task, rollout, reward)
        for rollout, reward in enumerate(rewards)
    ]


def plan(*names: str) -> list[PlannedTask]:
    return [PlannedTask(name) for name in names]


def close_to(expected: float) -> float:
    return pytest.approx(expected, abs=1e-12)  # type: ignore[no-any-return]


def test_every_figure_of_a_run_by_hand():
    tasks = [
        PlannedTask("close", "tickets", "easy"),
        PlannedTask("merge", "tickets", "hard"),
        PlannedTask("ask", None, "easy"),
    ]
    recorded = [
        Sample("close", 0, 1.0, scores=(("closed", 1.0), ("reason", 1.0))),
        Sample("close", 1, 0.5, scores=(("closed", 1.0), ("reason", 0.0)), attempts=2),
        Sample("close", 2, None, Cause.REWARD_INVALID, scores=(("closed", 1.0), ("reason", None))),
        Sample("merge", 0, 0.0, scores=(("merged", 0.0),)),
        Sample("merge", 1, 0.0, scores=(("merged", 0.0),)),
        Sample("merge", 2, 1.0, scores=(("merged", 1.0),)),
        Sample("ask", 0, 1.0, scores=(("answered", 1.0),)),
        Sample("ask", 1, 1.0, scores=(("answered", 1.0),)),
        Sample("ask", 2, 1.0, scores=(("answered", 1.0),)),
    ]

    # Means: close (1 + 0.5) / 2 = 3/4, merge 1/3, ask 1; m = (3/4 + 1/3 + 1) / 3 = 25/36.
    # Deviations in 36ths: 27 - 25 = 2, 12 - 25 = -13, 36 - 25 = 11; squares 4 + 169 + 121 = 294.
    # SE = sqrt(294/1296 / (3 * 2)) = sqrt(49/1296) = 7/36.
    # n = 25/36 * 11/36 / (49/1296) = 275/49.
    low, high = statistics.wilson(25 / 36, 275 / 49)
    # Within tasks: close s^2 = 1/8, / 2 = 1/16; merge s^2 = 1/3, / 3 = 1/9; ask 0.
    # Rerun error = sqrt(1/16 + 1/9) / 3 = 5/12 / 3 = 5/36.
    # Bounds: close (1.5 + 0) / 3 = 1/2 or (1.5 + 1) / 3 = 5/6, so (1/2 + 1/3 + 1) / 3 = 11/18
    # and (5/6 + 1/3 + 1) / 3 = 13/18. Zero-filled: the same as the lower bound here.
    # Passed: close 1 of 2, merge 1 of 3, ask 3 of 3; rate (1/2 + 1/3 + 1) / 3 = 11/18.
    assert aggregate(tasks, 3, recorded) == Aggregate(
        rollouts=Counts(planned=9, scored=8, unscored=1, attempts=10),
        reward=RewardFigures(
            mean=close_to(25 / 36),
            standard_error=close_to(7 / 36),
            rerun_error=close_to(5 / 36),
            interval95=Interval(close_to(low), close_to(high)),
            lower_bound=close_to(11 / 18),
            upper_bound=close_to(13 / 18),
            tasks_scored=3,
        ),
        zero_filled_mean=close_to(11 / 18),
        pass_rate=close_to(11 / 18),
        coverage=Coverage(rollouts=8 / 9, tasks=1.0),
        pass_at_k=(
            # k=1: low (1/3 + 1/3 + 1) / 3 = 5/9, high (2/3 + 1/3 + 1) / 3 = 2/3.
            PassFigure(1, close_to(11 / 18), 3, close_to(5 / 9), close_to(2 / 3)),
            # k=2: close 1 - C(1,2)/C(2,2) = 1, merge 1 - C(2,2)/C(3,2) = 2/3, ask 1; mean 8/9.
            # low: close 1 of 3: 2/3, so (2/3 + 2/3 + 1) / 3 = 7/9; high: 2 of 3: 1, so 8/9.
            PassFigure(2, close_to(8 / 9), 3, close_to(7 / 9), close_to(8 / 9)),
            # k=3: close has 2 scored and is not used; merge and ask passed at least once.
            PassFigure(3, 1.0, 2, 1.0, 1.0),
        ),
        pass_hat_k=(
            PassFigure(1, close_to(11 / 18), 3, close_to(5 / 9), close_to(2 / 3)),
            # k=2: close C(1,2) = 0, merge 0, ask 1; mean 1/3.
            # high: close C(2,2)/C(3,2) = 1/3, so (1/3 + 0 + 1) / 3 = 4/9.
            PassFigure(2, close_to(1 / 3), 3, close_to(1 / 3), close_to(4 / 9)),
            # k=3: merge 0, ask 1; mean 1/2 of two tasks; over all three 1/3 either way.
            PassFigure(3, 0.5, 2, close_to(1 / 3), close_to(1 / 3)),
        ),
        tasks=(
            TaskRow(
                id="close",
                category="tickets",
                difficulty="easy",
                mean=0.75,
                pass_rate=0.5,
                scored=2,
                unscored=1,
                by_verifier=(VerifierMean("closed", 1.0, 3), VerifierMean("reason", 0.5, 2)),
            ),
            TaskRow(
                id="merge",
                category="tickets",
                difficulty="hard",
                mean=close_to(1 / 3),
                pass_rate=close_to(1 / 3),
                scored=3,
                unscored=0,
                by_verifier=(VerifierMean("merged", close_to(1 / 3), 3),),
            ),
            TaskRow(
                id="ask",
                category=None,
                difficulty="easy",
                mean=1.0,
                pass_rate=1.0,
                scored=3,
                unscored=0,
                by_verifier=(VerifierMean("answered", 1.0, 3),),
            ),
        ),
        groups=(
            # (3/4 + 1/3) / 2 = 13/24 and (1/2 + 1/3) / 2 = 5/12
            GroupRow("category", "tickets", close_to(13 / 24), close_to(5 / 12), 5, 1),
            # (3/4 + 1) / 2 = 7/8 and (1/2 + 1) / 2 = 3/4
            GroupRow("difficulty", "easy", 0.875, 0.75, 5, 1),
            GroupRow("difficulty", "hard", close_to(1 / 3), close_to(1 / 3), 3, 0),
        ),
        unscored_by_cause=(CauseCount(Cause.REWARD_INVALID, 1),),
    )


def test_a_run_without_records_has_a_plan_and_no_figures():
    run = aggregate(plan("a", "b"), 2, [])

    assert run.rollouts == Counts(planned=4, scored=0, unscored=0, attempts=0)
    assert run.reward == RewardFigures(
        mean=None,
        standard_error=None,
        rerun_error=None,
        interval95=None,
        lower_bound=0.0,
        upper_bound=1.0,
        tasks_scored=0,
    )
    assert (run.pass_rate, run.zero_filled_mean) == (None, None)
    assert run.coverage == Coverage(rollouts=0.0, tasks=0.0)
    assert run.pass_at_k[1] == PassFigure(2, None, 0, 0.0, 1.0)


def test_an_empty_plan_has_no_figures_at_all():
    run = aggregate([], 3, [])

    assert run.coverage == Coverage(rollouts=None, tasks=None)
    assert (run.reward.lower_bound, run.reward.upper_bound) == (None, None)
    assert run.pass_at_k[0] == PassFigure(1, None, 0, None, None)


def test_a_run_with_nothing_but_unscored_rollouts_has_no_mean():
    run = aggregate(plan("a"), 2, samples("a", Cause.EVICTED, Cause.WORLD_FAILED))

    assert (run.reward.mean, run.pass_rate, run.tasks[0].mean) == (None, None, None)
    assert (run.reward.lower_bound, run.reward.upper_bound) == (0.0, 1.0)
    assert run.zero_filled_mean == 0.0
    assert run.unscored_by_cause == (
        CauseCount(Cause.EVICTED, 1),
        CauseCount(Cause.WORLD_FAILED, 1),
    )


def test_one_task_has_a_mean_and_no_error_over_tasks():
    run = aggregate(plan("a"), 2, samples("a", 0.0, 1.0))

    # s^2 = 1/2, / 2 = 1/4, sqrt = 1/2: between reruns it is known, between tasks it is not.
    assert run.reward == RewardFigures(
        mean=0.5,
        standard_error=None,
        rerun_error=0.5,
        interval95=None,
        lower_bound=0.5,
        upper_bound=0.5,
        tasks_scored=1,
    )


def test_all_the_same_gives_an_error_of_zero_and_a_true_interval():
    run = aggregate(plan("a", "b"), 2, [*samples("a", 1.0, 1.0), *samples("b", 1.0, 1.0)])

    # Wilson at p = 1: n / (n + z^2) = 2 / (2 + 3.8415) = 0.3424
    assert run.reward == RewardFigures(
        mean=1.0,
        standard_error=0.0,
        rerun_error=0.0,
        interval95=Interval(close_to(2 / (2 + statistics.Z95**2)), 1.0),
        lower_bound=1.0,
        upper_bound=1.0,
        tasks_scored=2,
    )


def test_a_task_that_lost_rollouts_weighs_as_much_as_the_others():
    lost = Cause.EVICTED
    run = aggregate(plan("a", "b"), 3, [*samples("a", 1.0, lost, lost), *samples("b", 0, 0, 0)])

    # Pooled it would be 1/4.
    assert run.reward.mean == 0.5


@pytest.mark.parametrize(
    ("scored", "given"), [(16, True), (15, False)], ids=["at the floor", "below"]
)
def test_below_the_floor_of_coverage_there_is_no_interval(scored: int, given: bool):
    pairs = [(task, rollout) for rollout in range(5) for task in "abcd"]
    recorded = [
        *(Sample(*pair, reward=1.0) for pair in pairs[:scored]),
        *(Sample(*pair, reward=None, cause=Cause.EVICTED) for pair in pairs[scored:]),
    ]

    run = aggregate(plan(*"abcd"), 5, recorded)

    assert run.coverage == Coverage(rollouts=scored / 20, tasks=1.0)
    assert (run.reward.interval95 is not None) is given


def test_the_floor_holds_for_tasks_too():
    # 3 of 4 tasks have a reward: 0.75.
    recorded = [s for name in "abc" for s in samples(name, 1.0)]

    assert aggregate(plan(*"abcd"), 1, recorded).reward.interval95 is None


def test_a_task_counts_in_the_group_of_each_of_its_tags():
    tasks = [PlannedTask("a", tags=("slow", "linked")), PlannedTask("b", tags=("slow",))]

    run = aggregate(tasks, 1, [*samples("a", 1.0), *samples("b", 0.5)])

    assert run.groups == (
        GroupRow("tag", "linked", 1.0, 1.0, 1, 0),
        GroupRow("tag", "slow", 0.75, 0.5, 2, 0),
    )


def test_bounds_and_interval_follow_the_benchmarks_range():
    scoring = Scoring(pass_threshold=0.0, range_min=-1.0, range_max=1.0)
    recorded = [*samples("a", -1.0), *samples("b", 1.0), *samples("c", 1.0), *samples("d", 1.0)]

    run = aggregate(plan(*"abcde"), 1, recorded, scoring)

    # (2 - 1) / 5 and (2 + 1) / 5 for the missing task
    assert (run.reward.lower_bound, run.reward.upper_bound) == (0.2, 0.6)
    # In 0..1 the means are 0 1 1 1: m = 3/4, SE^2 = 1/16, n = 3.
    low, high = statistics.wilson(0.75, 3)
    assert run.reward.interval95 == Interval(close_to(2 * low - 1), close_to(2 * high - 1))
    assert run.pass_rate == 0.75


def test_rounding_does_not_cost_a_pass():
    assert passes(0.1 + 0.7, 0.8)
    assert not passes(0.8 - 2e-9, 0.8)


def test_the_k_of_pass_figures_stay_few():
    assert ks_of(1) == (1,)
    assert ks_of(100) == (1, 2, 4, 8, 16, 32, 64, 100)


@pytest.mark.parametrize(
    ("sample", "fault"),
    [
        (Sample("z", 0, 1.0), "not in the plan"),
        (Sample("a", 2, 1.0), "not in the plan"),
        (Sample("a", 0, 1.0), "given 2 times"),
        (Sample("a", 1, None), "either a reward or a cause"),
        (Sample("a", 1, 1.0, Cause.EVICTED), "either a reward or a cause"),
        (Sample("a", 1, 1.5), "outside"),
        (Sample("a", 1, math.nan), "outside"),
    ],
    ids=["other task", "beyond k", "twice", "neither", "both", "out of range", "NaN"],
)
def test_records_that_cannot_be_are_refused(sample: Sample, fault: str):
    with pytest.raises(ValueError, match=fault):
        aggregate(plan("a"), 2, [Sample("a", 0, 1.0), sample])


K = 3
OUTCOMES = st.one_of(st.none(), st.sampled_from([0.0, 1 / 3, 0.5, 1.0]), st.sampled_from([*Cause]))


@st.composite
def ledgers(draw: st.DrawFn) -> tuple[list[PlannedTask], list[Sample]]:
    """A plan and any part of its records."""
    categories = st.sampled_from([None, "x", "y"])
    tasks = [PlannedTask(f"t{i}", draw(categories)) for i in range(draw(st.integers(1, 5)))]
    recorded = []
    for task in tasks:
        for rollout in range(K):
            outcome = draw(OUTCOMES)
            if isinstance(outcome, Cause):
                recorded.append(Sample(task.id, rollout, None, outcome))
            elif outcome is not None:
                recorded.append(Sample(task.id, rollout, outcome, scores=(("v", outcome),)))
    return tasks, recorded


@given(ledgers(), st.randoms(use_true_random=False))
def test_the_order_of_records_never_matters(ledger: tuple[list[PlannedTask], list[Sample]], random):
    tasks, recorded = ledger
    shuffled = random.sample(recorded, len(recorded))

    assert aggregate(tasks, K, shuffled) == aggregate(tasks, K, recorded)


@given(ledgers())
def test_bounds_enclose_the_mean(ledger: tuple[list[PlannedTask], list[Sample]]):
    reward = aggregate(ledger[0], K, ledger[1]).reward

    assert reward.lower_bound is not None
    assert reward.upper_bound is not None
    mean = reward.lower_bound if reward.mean is None else reward.mean
    assert 0 <= reward.lower_bound <= mean + 1e-12
    assert mean - 1e-12 <= reward.upper_bound <= 1


@given(ledgers(), st.sampled_from([*Cause]))
def test_an_unscored_record_never_changes_the_mean(
    ledger: tuple[list[PlannedTask], list[Sample]], cause: Cause
):
    tasks, recorded = ledger
    seen = {(sample.task, sample.rollout) for sample in recorded}
    pending = [(task.id, i) for task in tasks for i in range(K) if (task.id, i) not in seen]
    lost = [Sample(task, rollout, None, cause) for task, rollout in pending]

    before, after = aggregate(tasks, K, recorded), aggregate(tasks, K, [*recorded, *lost])

    # The figures of a running Run already count what is pending as missing.
    assert (after.reward, after.pass_rate, after.coverage) == (
        before.reward,
        before.pass_rate,
        before.coverage,
    )
    assert after.rollouts.unscored == before.rollouts.unscored + len(lost)


@given(ledgers())
def test_all_of_k_is_rarer_than_one_and_any_of_k_is_more_frequent(
    ledger: tuple[list[PlannedTask], list[Sample]],
):
    tasks, recorded = ledger
    scored = [row.id for row in aggregate(tasks, K, recorded).tasks if row.scored == K]
    full = aggregate(
        [task for task in tasks if task.id in scored], K, [s for s in recorded if s.task in scored]
    )

    for any_of, all_of in zip(full.pass_at_k, full.pass_hat_k, strict=True):
        if any_of.value is not None and all_of.value is not None and full.pass_rate is not None:
            assert all_of.value <= full.pass_rate + 1e-12
            assert full.pass_rate <= any_of.value + 1e-12


@given(ledgers())
def test_whatever_the_missing_would_have_been_the_bounds_hold_it(
    ledger: tuple[list[PlannedTask], list[Sample]],
):
    tasks, recorded = ledger
    known = {(s.task, s.rollout): s.reward for s in recorded if s.reward is not None}
    before = aggregate(tasks, K, recorded)

    for missing in (0.0, 0.5, 1.0):
        full = aggregate(
            tasks,
            K,
            [
                Sample(task.id, i, known.get((task.id, i), missing))
                for task in tasks
                for i in range(K)
            ],
        )
        assert before.reward.lower_bound - 1e-12 <= full.reward.mean  # type: ignore[operator]
        assert full.reward.mean <= before.reward.upper_bound + 1e-12  # type: ignore[operator]
        for partial, final in zip(before.pass_at_k, full.pass_at_k, strict=True):
            assert partial.low - 1e-12 <= final.value <= partial.high + 1e-12  # type: ignore[operator]


@given(ledgers())
def test_counts_add_up(ledger: tuple[list[PlannedTask], list[Sample]]):
    tasks, recorded = ledger

    run = aggregate(tasks, K, recorded)

    assert run.rollouts.planned == K * len(tasks)
    assert run.rollouts.scored + run.rollouts.unscored == len(recorded)
    assert sum(cause.count for cause in run.unscored_by_cause) == run.rollouts.unscored
    assert sum(row.scored for row in run.tasks) == run.rollouts.scored
