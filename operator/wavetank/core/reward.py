"""From scores to a rollout's reward.

Called by the graders in a verifier Job. What many rewards say together is in ``aggregate``.
"""

import math
from collections.abc import Sequence

from wavetank.core.causes import Cause


def task_reward(
    values: Sequence[tuple[float | None, Cause | None]],
) -> tuple[float | None, Cause | None]:
    """Return the reward of a rollout: the mean of its scores, or None with the first cause.

    A score that is missing makes the reward missing: a mean of the others would answer another
    question, and a 0 in its place would blame the agent for the verifier.

    Args:
        values: (score, cause) of each verifier in the task's order; cause is set exactly when the
            score is None.

    Raises:
        ValueError: If there is no score at all, or a missing one has no cause.

    >>> task_reward([(1.0, None), (0.5, None)])
    (0.75, None)
    >>> task_reward([(1.0, None), (None, Cause.REWARD_MISSING)])
    (None, <Cause.REWARD_MISSING: 'RewardMissing'>)
    """
    if not values:
        raise ValueError("a task without a verifier has no reward")
    scores = []
    for score, cause in values:
        if score is None:
            if cause is None:
                raise ValueError("a score is missing and no cause is given for it")
            return None, cause
        scores.append(score)
    return math.fsum(scores) / len(scores), None
