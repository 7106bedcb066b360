import pytest

from wavetank.core.causes import Cause
from wavetank.core.reward import task_reward


def test_a_reward_is_the_mean_of_its_scores():
    # (1 + 0.5 + 0) / 3 = 0.5
    assert task_reward([(1.0, None), (0.5, None), (0.0, None)]) == (0.5, None)


def test_one_missing_score_makes_the_reward_missing_with_the_first_cause():
    scores = [(1.0, None), (None, Cause.REWARD_INVALID), (None, Cause.VERIFIER_FAILED)]

    assert task_reward(scores) == (None, Cause.REWARD_INVALID)


def test_a_zero_is_a_reward_and_not_missing():
    assert task_reward([(0.0, None)]) == (0.0, None)


@pytest.mark.parametrize("scores", [[], [(None, None)]], ids=["none", "no cause"])
def test_scores_that_cannot_be_are_refused(scores: list[tuple[None, None]]):
    with pytest.raises(ValueError, match=r"verifier|cause"):
        task_reward(scores)


def test_ten_times_a_tenth_is_a_tenth():
    assert task_reward([(0.1, None)] * 10) == (0.1, None)
