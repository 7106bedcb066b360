"""The closed forms against numbers computed by hand, published tables and brute force."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavetank.core import statistics


def test_the_standard_error_by_hand():
    # m = (0 + 0.5 + 1) / 3 = 0.5; deviations^2 = 0.25 + 0 + 0.25 = 0.5
    # SE = sqrt(0.5 / (3 * 2)) = sqrt(1/12)
    assert statistics.standard_error([0.0, 0.5, 1.0]) == pytest.approx(math.sqrt(1 / 12), abs=1e-15)


@pytest.mark.parametrize("means", [[], [0.7]], ids=["no task", "one task"])
def test_the_standard_error_of_fewer_than_two_tasks_is_unknown_not_zero(means: list[float]):
    assert statistics.standard_error(means) is None


def test_means_that_differ_by_rounding_only_have_no_error():
    # The mean of three times 0.1 is not 0.1 in binary: without care the error would be 1e-17,
    # the effective sample size 1e32 and the interval a point.
    assert statistics.standard_error([0.1, 0.1, 0.1]) == 0.0


def _miller(rewards_by_task: list[list[float]]) -> float:
    """The clustered standard error as printed: sqrt of the sum over all pairs within a cluster."""
    # In fractions: nothing cancels to a small negative number.
    everything = [Fraction(x) for rewards in rewards_by_task for x in rewards]
    n, centre = len(everything), sum(everything) / len(everything)
    pairs = sum(
        (Fraction(a) - centre) * (Fraction(b) - centre)
        for rewards in rewards_by_task
        for a, b in itertools.product(rewards, rewards)
    )
    return math.sqrt(pairs) / n


@given(
    st.integers(1, 4).flatmap(
        lambda k: st.lists(
            st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=k, max_size=k),
            min_size=2,
            max_size=6,
        )
    )
)
def test_with_equal_counts_it_is_millers_clustered_error_corrected_for_few_tasks(
    rewards: list[list[float]],
):
    t = len(rewards)

    ours = statistics.standard_error([sum(task) / len(task) for task in rewards])

    assert ours == pytest.approx(_miller(rewards) * math.sqrt(t / (t - 1)), abs=1e-9)


def test_the_rerun_error_by_hand_with_unequal_counts():
    # task 1: rewards 0, 1: s^2 = 0.5, / 2 = 0.25
    # task 2: rewards 0, 0.5, 1: s^2 = (0.25 + 0 + 0.25) / 2 = 0.25, / 3 = 1/12
    # sqrt(0.25 + 1/12) / 2 = sqrt(1/3) / 2
    error = statistics.rerun_error([[0.0, 1.0], [0.0, 0.5, 1.0]])

    assert error == pytest.approx(math.sqrt(1 / 3) / 2, abs=1e-15)


@pytest.mark.parametrize(
    "rewards", [[], [[1.0]], [[1.0, 1.0], [0.0]]], ids=["no task", "k=1", "one task ran once"]
)
def test_the_rerun_error_is_unknown_where_a_tasks_spread_is(rewards: list[list[float]]):
    assert statistics.rerun_error(rewards) is None


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17:857, table I, method 3 (score, no correction)
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0000),
    ],
)
def test_wilsons_interval_is_the_published_one(successes: int, n: int, low: float, high: float):
    ends = statistics.wilson(successes / n, n)

    assert [round(end, 4) for end in ends] == [low, high]


def test_wilsons_interval_by_hand():
    # p = 1/2, n = 4, z = 2: scale = 1 + 4/4 = 2; centre = (1/2 + 4/8) / 2 = 1/2
    # half = 2/2 * sqrt(1/4 / 4 + 4 / 64) = sqrt(1/16 + 1/16) = sqrt(1/8)
    half = math.sqrt(1 / 8)

    assert statistics.wilson(0.5, 4, z=2) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-15)


def test_the_interval_rests_on_the_effective_number_of_tasks():
    # m = 0.5, SE^2 = 1/12, so n = 0.25 * 12 = 3: of binary tasks that is T - 1 = 3 - 1 plus
    # what the middle task adds.
    assert statistics.interval95([0.0, 0.5, 1.0]) == pytest.approx(statistics.wilson(0.5, 3))


def test_binary_tasks_count_as_one_less_than_there_are():
    # m = 1/4, SE^2 = (3 * 1/16 + 9/16) / (4 * 3) = 1/16, n = 3/16 * 16 = 3
    assert statistics.interval95([0, 0, 0, 1]) == pytest.approx(statistics.wilson(0.25, 3))


def test_tasks_that_all_agree_give_the_interval_of_that_many_tasks():
    assert statistics.interval95([1.0] * 5) == statistics.wilson(1.0, 5)
    assert statistics.interval95([0.1] * 3) == pytest.approx(statistics.wilson(0.1, 3))


@pytest.mark.parametrize("means", [[], [0.5]], ids=["no task", "one task"])
def test_the_interval_of_fewer_than_two_tasks_is_unknown(means: list[float]):
    assert statistics.interval95(means) is None


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8))
def test_the_interval_stays_in_range_and_holds_the_mean(means: list[float]):
    low, high = statistics.interval95(means) or (1.0, 0.0)

    assert 0 <= low <= high <= 1
    assert low - 1e-9 <= sum(means) / len(means) <= high + 1e-9


@pytest.mark.parametrize(
    ("estimate", "hit"),
    [(statistics.pass_at_k, any), (statistics.pass_hat_k, all)],
    ids=["pass@k", "pass^k"],
)
def test_pass_figures_are_the_share_of_all_draws_of_k(
    estimate: Callable[[int, int, int], float | None], hit: Callable[[tuple[bool, ...]], bool]
):
    for scored in range(1, 8):
        for passed, k in itertools.product(range(scored + 1), range(1, scored + 1)):
            results = [place < passed for place in range(scored)]
            draws = list(itertools.combinations(results, k))

            share = sum(map(hit, draws)) / len(draws)

            assert estimate(passed, scored, k) == pytest.approx(share, abs=1e-15)


def test_pass_figures_need_k_scored_rollouts():
    assert statistics.pass_at_k(2, 2, k=3) is None
    assert statistics.pass_hat_k(2, 2, k=3) is None


@pytest.mark.parametrize(
    "counts", [(3, 2, 1), (-1, 2, 1), (1, 2, 0)], ids=["more passed than scored", "negative", "k=0"]
)
def test_pass_figures_refuse_counts_that_cannot_be(counts: tuple[int, int, int]):
    for estimate in (statistics.pass_at_k, statistics.pass_hat_k):
        with pytest.raises(ValueError, match=r"passed|draw"):
            estimate(*counts)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_with_one_draw_both_are_the_pass_rate_also_of_many_rollouts(counts: tuple[int, int]):
    passed, scored = counts

    assert statistics.pass_at_k(passed, scored, 1) == passed / scored
    assert statistics.pass_hat_k(passed, scored, 1) == passed / scored
