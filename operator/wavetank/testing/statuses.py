"""Statuses as the operator writes them, for tests: a usual one of each kind, and the largest."""

from wavetank.api.benchmark import BenchmarkStatus, VerifierEntry
from wavetank.api.conditions import Says, merged
from wavetank.api.fields import (
    Condition,
    ConditionStatus,
    Digests,
    FindingEntry,
    decimal_text,
)
from wavetank.api.run_status import (
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
from wavetank.api.world import Entity, WorldCounts, WorldStatus
from wavetank.core.causes import Cause
from wavetank.core.errors import Severity

NOW = "2026-01-01T00:00:00Z"
FIGURE = decimal_text(-2 / 3)
DIGEST = f"sha256:{'a' * 64}"
DIGESTS = Digests(agent=DIGEST, grader=DIGEST, solutions=DIGEST)


def a_world_status() -> WorldStatus:
    """Return the status of a World that is Ready."""
    return WorldStatus(
        conditions=merged((), [Says("Ready", True, "Checked", "All is well.")], 1, NOW),
        observed_generation=1,
        bundle=DIGEST,
        digests=DIGESTS,
        counts=WorldCounts(entities=3, rows=42, tools=6),
        entities=(Entity(name="crm_tickets", rows=42),),
        tools=("close_ticket",),
    )


def a_benchmark_status() -> BenchmarkStatus:
    """Return the status of a Benchmark with a fault."""
    return BenchmarkStatus(
        conditions=merged((), [Says("Ready", False, "FaultsFound", "1 fault: ...")], 1, NOW),
        observed_generation=1,
        kind="world",
        digests=DIGESTS,
        check_result=DIGEST,
        tasks=5,
        initial_mean="0.1000",
        verifiers=(
            VerifierEntry(name="ticket_closed", initial_score="0.0000"),
            VerifierEntry(name="slack/posted", cause=Cause.REWARD_MISSING),
        ),
        findings=(FindingEntry(severity=Severity.FAULT, path="a", message="is bad."),),
        findings_omitted=2,
    )


def a_run_status() -> RunStatus:
    """Return the status of a Run that is under way."""
    says = [
        Says("Complete", False, "Running"),
        Says("Failed", False, "Running"),
        Says("Suspended", False, "NotSuspended"),
        Says("Progressing", True, "Running", "12 of 15 rollouts are recorded."),
    ]
    return RunStatus(
        conditions=merged((), says, 1, NOW),
        progress="12/15",
        rollouts=RolloutCounts(planned=15, active=3, scored=11, unscored=1),
        reward=RewardFigures(mean="0.8182", interval95=Interval(low="0.5230", high="0.9486")),
        pass_rate="0.7500",  # noqa: S106 - a share
        last_problem="exceeded quota: small",
    )


def the_largest_status() -> RunStatus:
    """Return a Run's status with every list and text full."""
    conditions = tuple(
        Condition(
            type=kind,
            status=ConditionStatus.UNKNOWN,
            observed_generation=10**6,
            last_transition_time=NOW,
            reason="R" * 40,
            message="m" * 2000,
        )
        for kind in ("Complete", "Failed", "Suspended", "Progressing")
    )
    passes = tuple(
        PassAt(k=k, value=FIGURE, tasks_used=10**4, low=FIGURE, high=FIGURE) for k in range(91, 101)
    )
    return RunStatus(
        conditions=conditions,
        observed_generation=10**6,
        started_at=NOW,
        completed_at=NOW,
        resolved=Resolved(
            benchmark_generation=10**6,
            spec_digest=DIGEST,
            digests=DIGESTS,
            images=ResolvedImages(world="i" * 600, agent="i" * 600, verifier="i" * 600),
            operator_version="v" * 64,
        ),
        progress="1000000/1000000",
        rollouts=RolloutCounts(planned=10**6, scored=10**6, unscored=10**6),
        reward=RewardFigures(
            mean=FIGURE,
            standard_error=FIGURE,
            rerun_error=FIGURE,
            interval95=Interval(low="0.1000", high="0.9000"),
            lower_bound=FIGURE,
            upper_bound=FIGURE,
            tasks_scored=10**4,
        ),
        zero_filled_mean=FIGURE,
        pass_rate=FIGURE,
        coverage=Coverage(rollouts=FIGURE, tasks=FIGURE),
        pass_at_k=passes,
        pass_hat_k=passes,
        tasks=tuple(
            TaskFigures(id="t" * 200, category="c" * 200, mean=FIGURE, pass_rate=FIGURE, scored=100)
            for _ in range(TASKS_KEPT)
        ),
        groups=tuple(
            GroupFigures(
                by="difficulty", name="n" * 200, mean=FIGURE, pass_rate=FIGURE, scored=10**6
            )
            for _ in range(50)
        ),
        unscored_by_cause=tuple(CauseCount(cause=cause, count=10**6) for cause in Cause),
        ledger=LedgerCounts(shards=10**4, records=10**6),
        last_problem="p" * 2000,
    )
