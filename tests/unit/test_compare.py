"""Two Runs compared: every number here is worked out by hand or from a printed table."""

import math

import pytest

from wavetank.core.compare import (
    Comparison,
    Difference,
    GroupDifference,
    LeftOut,
    TaskDifference,
    TaskMean,
    compare,
    t_quantile95,
)


@pytest.mark.parametrize(
    ("freedom", "printed"),
    # Student's t, two-sided 95 %: https://www.itl.nist.gov/div898/handbook/eda/section3/eda3672.htm
    [
        *((1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (10, 2.228)),
        *((29, 2.045), (30, 2.042), (99, 1.984), (100, 1.984)),
    ],
)
def test_the_quantile_is_that_of_the_printed_tables(freedom: int, printed: float):
    assert round(t_quantile95(freedom), 3) == printed


def test_the_quantile_of_many_degrees_is_that_of_the_normal_distribution():
    assert t_quantile95(20_000) == pytest.approx(1.959964, abs=2e-4)


def test_two_degrees_have_a_closed_form_of_their_own():
    # P(|T| < t) = t / sqrt(2 + t^2) = 0.95, so t = 0.95 sqrt(2 / (1 - 0.95^2)).
    assert t_quantile95(2) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)), rel=1e-12)


def test_no_degrees_of_freedom_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        t_quantile95(0)


def test_the_difference_is_over_tasks_and_its_interval_by_t():
    a = [TaskMean("one", 0.0), TaskMean("two", 0.5), TaskMean("three", 1.0)]
    b = [TaskMean("one", 0.5), TaskMean("two", 0.5), TaskMean("three", 0.75)]

    found = compare(a, b)

    # d = 0.5, 0, -0.25: mean 1/12, squared deviations 25/144 + 1/144 + 16/144 = 42/144,
    # sd^2 = 21/144, standard error sqrt(21/144/3) = sqrt(7)/12; t(2) = 4.302653.
    assert found.tasks == (
        TaskDifference("one", 0.0, 0.5),
        TaskDifference("two", 0.5, 0.5),
        TaskDifference("three", 1.0, 0.75),
    )
    overall = found.overall
    assert (overall.n, overall.better, overall.worse) == (3, 1, 1)
    assert overall.mean == pytest.approx(1 / 12)
    assert overall.standard_error == pytest.approx(math.sqrt(7) / 12)
    assert overall.low == pytest.approx(1 / 12 - 4.3026527 * math.sqrt(7) / 12)
    assert overall.high == pytest.approx(1 / 12 + 4.3026527 * math.sqrt(7) / 12)


def test_runs_whose_intervals_overlap_may_differ_for_sure():
    # Hard and easy tasks spread both Runs widely, but b is 0.1 better in each but one.
    a = [TaskMean(f"t{n}", n / 10) for n in range(9)]
    b = [TaskMean(f"t{n}", n / 10 + (0.1 if n else 0.08)) for n in range(9)]

    overall = compare(a, b).overall

    assert overall.low is not None
    assert overall.low > 0.09


def test_what_cannot_be_paired_is_named():
    a = [TaskMean("both", 0.5), TaskMean("gone", 1.0), TaskMean("lost", None), TaskMean("no", None)]
    b = [TaskMean("new", 1.0), TaskMean("no", None), TaskMean("lost", 1.0), TaskMean("both", 1.0)]

    found = compare(a, b)

    assert found == Comparison(
        overall=Difference(1, 0.5, None, None, None, better=1, worse=0),
        tasks=(TaskDifference("both", 0.5, 1.0),),
        groups=(),
        left_out=LeftOut(
            only_in_a=("gone",),
            only_in_b=("new",),
            unscored_in_a=("lost", "no"),
            unscored_in_b=("no",),
        ),
    )


def test_runs_without_a_common_task_have_no_difference():
    assert compare([TaskMean("a", 1.0)], [TaskMean("b", 1.0)]).overall == Difference(
        0, None, None, None, None, better=0, worse=0
    )


def test_a_group_is_compared_over_its_own_tasks():
    mail, shop = (("category", "mail"),), (("category", "shop"), ("tag", "slow"))
    a = [TaskMean("m1", 0.0, mail), TaskMean("s1", 0.0, shop), TaskMean("m2", 0.5, mail)]
    b = [TaskMean("m1", 1.0), TaskMean("s1", 0.25), TaskMean("m2", 0.5)]

    groups = compare(a, b).groups

    # mail: d = 1, 0: mean 1/2, sd^2 = 1/2, standard error 1/2; t(1) = 12.7062.
    assert [(each.by, each.name) for each in groups] == [
        ("category", "mail"),
        ("category", "shop"),
        ("tag", "slow"),
    ]
    of_mail = groups[0].difference
    assert (of_mail.n, of_mail.mean, of_mail.standard_error) == (2, 0.5, 0.5)
    assert of_mail.high == pytest.approx(0.5 + 12.7062047 / 2)
    one = Difference(1, 0.25, None, None, None, better=1, worse=0)
    assert groups[1:] == (
        GroupDifference("category", "shop", one),
        GroupDifference("tag", "slow", one),
    )


def test_what_differs_by_rounding_only_does_not_differ():
    a = [TaskMean("x", 0.1 + 0.2), TaskMean("y", 1.0)]
    b = [TaskMean("x", 0.3), TaskMean("y", 1.0)]

    assert compare(a, b).overall == Difference(2, 0.0, 0.0, 0.0, 0.0, better=0, worse=0)
