"""The table of results that a Run leaves: every rollout in it, or as much as a ConfigMap holds."""

import json

import pytest

from wavetank.api.kinds import read
from wavetank.api.plan import Plan
from wavetank.api.results import figures_of
from wavetank.api.run import Run
from wavetank.controller import reporting
from wavetank.core.causes import Cause
from wavetank.core.identity import AttemptKey
from wavetank.core.observed import Ledger, Record, ScoreSeen, Stages
from wavetank.testing.created import a_large_plan
from wavetank.testing.objects import a_run


def results(plan: Plan, k: int, ledger: Ledger) -> str:
    body = a_run("crm", k=k)
    body["metadata"] |= {"namespace": "bench", "uid": "u"}
    run = read(Run, body)
    return reporting.results_text(run, plan, ledger, figures_of(plan, k, ledger), "Complete")


def test_results_hold_every_rollout_where_they_fit() -> None:
    plan = a_large_plan(2)
    record = Record(
        AttemptKey(1, 2),
        None,
        Cause.REWARD_MISSING,
        Cause.AGENT_FAILED,
        (ScoreSeen("paid", None, Cause.REWARD_MISSING, "no row"),),
        stages=Stages(act=3.5),
    )

    document = json.loads(results(plan, 2, Ledger(records={1: record})))

    assert document["rollouts"] == [
        {
            "task": plan.tasks[1].id,
            "rollout": 0,
            "reward": None,
            "rewards": {"paid": None},
            "cause": "RewardMissing",
            "agentCause": "AgentFailed",
            "message": "no row",
            "attempts": 1,
            "attempt": 2,
            "ordinal": 1,
            "seconds": 3.5,
        }
    ]


@pytest.mark.parametrize(
    ("tasks", "k", "has_rollouts", "has_tasks"),
    [(20, 20, True, True), (1_000, 10, False, True), (10_000, 1, False, False)],
    ids=["all fits", "without rollouts", "figures only"],
)
def test_results_fit_into_a_config_map_however_large_the_run(
    tasks: int, k: int, has_rollouts: bool, has_tasks: bool
) -> None:
    plan = a_large_plan(tasks)
    score = ScoreSeen("v", 0.5)
    records = {n: Record(AttemptKey(n, 1), 0.5, scores=(score,)) for n in range(tasks * k)}

    text = results(plan, k, Ledger(records=records))

    document = json.loads(text)
    assert len(text.encode()) <= reporting.RESULTS_BYTES
    assert ("rollouts" in document, bool(document["tasks"])) == (has_rollouts, has_tasks)
    assert document["reward"]["mean"] == 0.5
