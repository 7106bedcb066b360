"""A Run's status, whole, as a person reads it: waiting, running, blocked, complete, failed."""

import json
from typing import Any

from wavetank.api.conditions import Says, merged
from wavetank.api.fields import Condition, Digests
from wavetank.api.kinds import read
from wavetank.api.plan import Plan
from wavetank.api.results import figures_of
from wavetank.api.run import Run
from wavetank.api.run_status import (
    MAX_BYTES,
    TASKS_KEPT,
    CauseCount,
    Coverage,
    GroupFigures,
    Interval,
    LedgerCounts,
    PassAt,
    Resolved,
    ResolvedImages,
    RewardFigures,
    RolloutCounts,
    RunStatus,
    TaskFigures,
)
from wavetank.api.wire import TaskInfo
from wavetank.controller import reporting
from wavetank.core.actions import Decision
from wavetank.core.causes import Cause
from wavetank.core.identity import AttemptKey
from wavetank.core.lifecycle import Stage
from wavetank.core.observed import Ledger, Record
from wavetank.testing.created import a_large_plan, a_plan
from wavetank.testing.objects import a_run

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
IMAGES = ResolvedImages(
    world="world@sha256:1", agent="agent@sha256:2", verifier="verifier@sha256:3"
)
PLAN = a_plan().model_copy(
    update={
        "tasks": [
            TaskInfo(id="close", verifiers=["closed"], category="easy"),
            TaskInfo(id="refund", verifiers=["paid"], category="hard"),
        ]
    }
)
RESOLVED = Resolved(
    benchmark_generation=1,
    spec_digest="sha256:c0cf9a54e1a1a4c5be7bd3cf6f14a0eb6d3cdd9f3d5a9b2a0a1b2c3d4e5f6071",
    digests=Digests(
        agent=reporting.refs_digest(PLAN.bundles.agent),
        grader=reporting.refs_digest(PLAN.bundles.grader),
        solutions=reporting.refs_digest(PLAN.bundles.solutions),
    ),
    images=IMAGES,
    operator_version="1.0",
    store="wavetank-system/wavetank-store:8081",
)


def run_of(status: RunStatus | None = None, **spec: Any) -> Run:
    body = a_run("crm", **{"k": 2, **spec})
    body["metadata"] = {"name": "crm", "namespace": "bench", "uid": "u", "generation": 3}
    run = read(Run, body)
    return run if status is None else run.model_copy(update={"status": status})


def conditions(*says: Says, since: str = NOW) -> tuple[Condition, ...]:
    return merged((), says, 3, since)


GOES_ON = (Says("Complete", False, "Running"), Says("Failed", False, "Running"))
NOT_SUSPENDED = Says("Suspended", False, "NotSuspended")


def status_of(
    run: Run, decision: Decision, records: dict[int, Record], plan: Plan = PLAN, now: str = NOW
) -> RunStatus:
    ledger = Ledger(records=records)
    progress = reporting.Progress(
        plan=plan,
        decision=decision,
        figures=figures_of(plan, run.spec.k, ledger),
        shards=1 if records else 0,
        records=len(records),
        operator_version="1.0",
        store="wavetank-system/wavetank-store:8081",
        images=IMAGES,
    )
    return reporting.status_of(run, progress, now)


def a_record(ordinal: int, reward: float | None, cause: Cause | None = None) -> Record:
    return Record(AttemptKey(ordinal, 1), reward, cause)


def test_a_run_that_waits_says_for_what() -> None:
    words = "There is no Benchmark crm in this namespace yet."

    status = reporting.waiting_status(run_of(), "BenchmarkNotFound", words, NOW)

    assert status == RunStatus(
        conditions=conditions(
            Says("Complete", False, "BenchmarkNotFound"),
            Says("Failed", False, "BenchmarkNotFound"),
            NOT_SUSPENDED,
            Says("Progressing", True, "BenchmarkNotFound", words),
        ),
        observed_generation=3,
        last_problem=words,
    )


def test_what_a_run_had_stays_when_something_is_in_its_way() -> None:
    before = RunStatus(started_at=NOW, progress="1/4", ledger=LedgerCounts(shards=1, records=1))

    status = reporting.waiting_status(run_of(before), "NameConflict", "It is not ours.", LATER)

    assert (status.started_at, status.progress, status.ledger) == (NOW, "1/4", before.ledger)


def test_a_run_that_begins_has_counts_and_no_figures() -> None:
    decision = Decision(stages={0: Stage.STARTING, 1: Stage.ACTING, 2: Stage.ENDED})

    status = status_of(run_of(), decision, {})

    assert status.resolved is not None
    spec_digest = status.resolved.spec_digest
    assert status == RunStatus(
        conditions=conditions(
            *GOES_ON,
            NOT_SUSPENDED,
            Says("Progressing", True, "Running", "0 of 4 rollouts are recorded."),
        ),
        observed_generation=3,
        started_at=NOW,
        resolved=RESOLVED.model_copy(update={"spec_digest": spec_digest}),
        progress="0/4",
        rollouts=RolloutCounts(planned=4, active=2, grading=1),
        reward=RewardFigures(lower_bound="0.0000", upper_bound="1.0000"),
        zero_filled_mean=status.zero_filled_mean,
        coverage=Coverage(rollouts="0.0000", tasks="0.0000"),
        pass_at_k=tuple(PassAt(k=k, low="0.0000", high="1.0000") for k in (1, 2)),
        pass_hat_k=tuple(PassAt(k=k, low="0.0000", high="1.0000") for k in (1, 2)),
        ledger=LedgerCounts(),
    )


def test_a_run_that_is_in_trouble_says_so_in_kubernetes_words_and_goes_on() -> None:
    decision = Decision(problem="exceeded quota: pods")

    status = status_of(run_of(), decision, {0: a_record(0, 1.0)})

    assert status.conditions == conditions(
        *GOES_ON,
        NOT_SUSPENDED,
        Says("Progressing", True, "Blocked", "1 of 4 rollouts are recorded. exceeded quota: pods"),
    )
    assert status.last_problem == "exceeded quota: pods"


def test_a_run_that_is_suspended_does_not_progress_and_keeps_its_problem_apart() -> None:
    run = run_of(suspend=True)
    records = {0: a_record(0, 1.0), 1: a_record(1, None, Cause.EVICTED)}

    status = status_of(run, Decision(problem="exceeded quota: pods"), records)

    assert status.conditions == conditions(
        *GOES_ON,
        Says("Suspended", True, "Suspended"),
        Says(
            "Progressing", False, "Suspended", "2 of 4 rollouts are recorded, 1 of them unscored."
        ),
    )
    assert status.last_problem == "exceeded quota: pods"


def test_a_complete_run_has_all_figures_and_no_problem() -> None:
    records = {
        0: a_record(0, 1.0),
        1: a_record(1, 0.0),
        2: a_record(2, 1.0),
        3: a_record(3, None, Cause.REWARD_INVALID),
    }
    tally = "4 of 4 rollouts are recorded, 1 of them unscored."
    before = RunStatus(started_at=NOW)

    status = status_of(
        run_of(before, suspend=True), Decision(problem="old", complete=True), records, now=LATER
    )

    assert status.resolved is not None
    assert status == RunStatus(
        conditions=conditions(
            Says("Complete", True, "AllRecorded", f"Mean reward 0.5000: {tally}"),
            Says("Failed", False, "AllRecorded"),
            NOT_SUSPENDED,
            Says("Progressing", False, "AllRecorded", tally),
            since=LATER,
        ),
        observed_generation=3,
        started_at=NOW,
        completed_at=LATER,
        resolved=RESOLVED.model_copy(update={"spec_digest": status.resolved.spec_digest}),
        progress="4/4",
        rollouts=RolloutCounts(planned=4, scored=3, unscored=1),
        reward=RewardFigures(
            mean="0.5000",
            standard_error="0.5000",
            lower_bound="0.5000",
            upper_bound="0.7500",
            tasks_scored=2,
        ),
        zero_filled_mean="0.5000",
        pass_rate="0.5000",
        coverage=Coverage(rollouts="0.7500", tasks="1.0000"),
        pass_at_k=(
            PassAt(k=1, value="0.5000", tasks_used=2, low="0.5000", high="0.7500"),
            PassAt(k=2, value="1.0000", tasks_used=1, low="0.5000", high="1.0000"),
        ),
        pass_hat_k=(
            PassAt(k=1, value="0.5000", tasks_used=2, low="0.5000", high="0.7500"),
            PassAt(k=2, value="1.0000", tasks_used=1, low="0.5000", high="0.5000"),
        ),
        tasks=(
            TaskFigures(id="close", category="easy", mean="1.0000", pass_rate="1.0000", scored=2),
            TaskFigures(
                id="refund",
                category="hard",
                mean="0.0000",
                pass_rate="0.0000",
                scored=1,
                unscored=1,
            ),
        ),
        groups=(
            GroupFigures(by="category", name="easy", mean="1.0000", pass_rate="1.0000", scored=2),
            GroupFigures(
                by="category",
                name="hard",
                mean="0.0000",
                pass_rate="0.0000",
                scored=1,
                unscored=1,
            ),
        ),
        unscored_by_cause=(CauseCount(cause=Cause.REWARD_INVALID, count=1),),
        ledger=LedgerCounts(shards=1, records=4),
    )


def test_a_run_without_any_reward_is_complete_and_has_no_mean() -> None:
    records = {n: a_record(n, None, Cause.EVICTED) for n in range(4)}

    status = status_of(run_of(), Decision(complete=True), records)

    assert status.conditions[0].message == (
        "No reward: 4 of 4 rollouts are recorded, 4 of them unscored."
    )
    assert status.reward == RewardFigures(lower_bound="0.0000", upper_bound="1.0000")


def test_a_run_that_failed_keeps_what_it_had() -> None:
    before = status_of(run_of(), Decision(), {0: a_record(0, 1.0)})

    status = reporting.failed_status(run_of(before), "LedgerDamaged", "A shard is gone.", LATER)

    assert status == before.model_copy(
        update={
            "conditions": merged(
                before.conditions,
                [
                    Says("Complete", False, "LedgerDamaged"),
                    Says("Failed", True, "LedgerDamaged", "A shard is gone."),
                    Says("Suspended", False, "NotSuspended"),
                    Says("Progressing", False, "LedgerDamaged", "A shard is gone."),
                ],
                3,
                LATER,
            ),
            "completed_at": LATER,
            "last_problem": "A shard is gone.",
        }
    )
    again = reporting.failed_status(run_of(status), "LedgerDamaged", "A shard is gone.", "2027")
    assert again == status


def test_a_status_said_again_is_the_same_however_late() -> None:
    first = status_of(run_of(), Decision(), {0: a_record(0, 1.0)})

    assert status_of(run_of(first), Decision(), {0: a_record(0, 1.0)}, now=LATER) == first


def test_the_operator_that_planned_a_run_stays_named_after_an_upgrade() -> None:
    first = RunStatus(resolved=Resolved(operator_version="0.9"))

    status = status_of(run_of(first), Decision(), {})

    assert status.resolved is not None
    assert status.resolved.operator_version == "0.9"


def test_what_may_change_does_not_change_the_specs_digest() -> None:
    digests = {
        status.resolved.spec_digest
        for spec in ({}, {"k": 9}, {"parallelism": 1}, {"suspend": True})
        if (status := status_of(run_of(**spec), Decision(), {})).resolved
    }
    other = status_of(run_of(tasks__limit=1), Decision(), {})

    assert len(digests) == 1
    assert other.resolved is not None
    assert other.resolved.spec_digest not in digests


def test_the_status_of_a_thousand_tasks_and_a_hundred_rollouts_each_is_bounded() -> None:
    plan = a_large_plan(1_000)
    causes = list(Cause)
    records = {n: a_record(n, None, causes[n % len(causes)]) for n in range(0, 100_000, 7)}
    records |= {n: a_record(n, 2 / 3) for n in range(1, 100_000, 7)}
    decision = Decision(problem="\u00e9" * 5_000, complete=True)

    status = status_of(run_of(k=100), decision, records, plan)

    assert len(status.tasks) == TASKS_KEPT
    assert len(json.dumps(status.document()).encode()) <= MAX_BYTES


def test_the_interval_is_there_from_a_coverage_of_four_fifths() -> None:
    records = {n: a_record(n, 0.5) for n in range(4)}

    status = status_of(run_of(), Decision(complete=True), records)

    assert status.reward is not None
    assert isinstance(status.reward.interval95, Interval)
