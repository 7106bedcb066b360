"""Conditions: a moment is that of the last change of the status, and of nothing else."""

from wavetank.api.conditions import Says, is_true, merged
from wavetank.api.fields import MESSAGE_LENGTH, Condition, ConditionStatus

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def a_condition(
    status: ConditionStatus, since: str, reason: str = "R", message: str = "", generation: int = 2
) -> Condition:
    return Condition(
        type="Ready",
        status=status,
        observed_generation=generation,
        last_transition_time=since,
        reason=reason,
        message=message,
    )


def test_a_new_condition_begins_now() -> None:
    assert merged((), [Says("Ready", None, "Checking", "Wait.")], 1, EARLY) == (
        a_condition(ConditionStatus.UNKNOWN, EARLY, "Checking", "Wait.", generation=1),
    )


def test_other_words_of_the_same_status_keep_its_moment() -> None:
    old = (a_condition(ConditionStatus.FALSE, EARLY, "Old", "Old words.", generation=1),)

    assert merged(old, [Says("Ready", False, "New", "New words.")], 2, LATE) == (
        a_condition(ConditionStatus.FALSE, EARLY, "New", "New words."),
    )


def test_another_status_begins_now() -> None:
    old = (a_condition(ConditionStatus.UNKNOWN, EARLY),)

    assert merged(old, [Says("Ready", True, "R")], 2, LATE) == (
        a_condition(ConditionStatus.TRUE, LATE),
    )


def test_a_condition_that_is_not_said_any_more_goes() -> None:
    old = (a_condition(ConditionStatus.TRUE, EARLY),)

    assert merged(old, [], 2, LATE) == ()


def test_a_message_is_cut_to_what_the_crd_takes() -> None:
    (condition,) = merged((), [Says("Ready", True, "R", "w" * 5_000)], 1, EARLY)

    assert len(condition.message) == MESSAGE_LENGTH


def test_only_true_is_true() -> None:
    conditions = (a_condition(ConditionStatus.UNKNOWN, EARLY),)

    assert not is_true(conditions, "Ready")
    assert is_true((a_condition(ConditionStatus.TRUE, EARLY),), "Ready")
    assert not is_true((a_condition(ConditionStatus.TRUE, EARLY),), "Complete")
