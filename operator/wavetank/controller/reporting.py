"""A Run's status and results from what was decided and recorded. Pure."""

import json
from collections import Counter
from dataclasses import dataclass

from wavetank.api.conditions import Says, merged
from wavetank.api.fields import Digests, clip, decimal_text
from wavetank.api.plan import Plan
from wavetank.api.results import RunFacts, document, rollout_rows
from wavetank.api.run import Run
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
from wavetank.api.wire import BundleRef, digest_of
from wavetank.core.actions import Decision
from wavetank.core.figures import Aggregate, PassFigure
from wavetank.core.figures import Coverage as CoverageFigure
from wavetank.core.figures import RewardFigures as RewardNumbers
from wavetank.core.lifecycle import Stage
from wavetank.core.observed import Ledger


@dataclass(frozen=True)
class Progress:
    """What there is to report of a Run that has a plan."""

    plan: Plan
    decision: Decision
    figures: Aggregate
    shards: int
    records: int
    operator_version: str
    store: str
    """The store's Service."""
    images: ResolvedImages


def waiting_status(run: Run, reason: str, message: str, now: str) -> RunStatus:
    """Return the status of a Run that has no plan yet, or that somebody's object is in the way of."""
    says = [
        Says("Complete", False, reason),
        Says("Failed", False, reason),
        Says("Suspended", run.spec.suspend, "Suspended" if run.spec.suspend else "NotSuspended"),
        # It does: the Benchmark's own check goes on, and this Run will start by itself.
        Says("Progressing", True, reason, message),
    ]
    return run.status.model_copy(
        update={
            "conditions": merged(run.status.conditions, says, run.metadata.generation, now),
            "observed_generation": run.metadata.generation,
            "last_problem": clip(message),
        }
    )


def failed_status(run: Run, reason: str, message: str, now: str) -> RunStatus:
    """Return the status of a Run that cannot go on: all it had, and why."""
    says = [
        Says("Complete", False, reason),
        Says("Failed", True, reason, message),
        Says("Suspended", run.spec.suspend, "Suspended" if run.spec.suspend else "NotSuspended"),
        Says("Progressing", False, reason, message),
    ]
    changes = {
        "conditions": merged(run.status.conditions, says, run.metadata.generation, now),
        "observed_generation": run.metadata.generation,
        "completed_at": run.status.completed_at or now,
        "last_problem": clip(message),
    }
    return run.status.model_copy(update=changes)


def status_of(run: Run, progress: Progress, now: str) -> RunStatus:
    """Return the status of a planned Run."""
    figures, decision = progress.figures, progress.decision
    stages = Counter(decision.stages.values())
    counts = figures.rollouts
    recorded = counts.scored + counts.unscored
    done = decision.complete
    return RunStatus(
        conditions=merged(
            run.status.conditions, _says(run, progress), run.metadata.generation, now
        ),
        observed_generation=run.metadata.generation,
        started_at=run.status.started_at or now,
        completed_at=(run.status.completed_at or now) if done else None,
        resolved=_resolved(run, progress),
        progress=f"{recorded}/{counts.planned}",
        rollouts=RolloutCounts(
            planned=counts.planned,
            active=stages[Stage.STARTING] + stages[Stage.ACTING],
            grading=stages[Stage.ENDED] + stages[Stage.GRADING],
            scored=counts.scored,
            unscored=counts.unscored,
        ),
        reward=_reward(figures.reward),
        zero_filled_mean=decimal_text(figures.zero_filled_mean),
        pass_rate=decimal_text(figures.pass_rate),
        coverage=_coverage(figures.coverage),
        pass_at_k=tuple(_pass(figure) for figure in figures.pass_at_k),
        pass_hat_k=tuple(_pass(figure) for figure in figures.pass_hat_k),
        tasks=_tasks(figures) if done else (),
        groups=_groups(figures) if done else (),
        unscored_by_cause=tuple(
            CauseCount(cause=row.cause, count=row.count) for row in figures.unscored_by_cause
        ),
        ledger=LedgerCounts(shards=progress.shards, records=progress.records),
        last_problem=clip(decision.problem) if decision.problem and not done else None,
    )


def _says(run: Run, progress: Progress) -> list[Says]:
    counts = progress.figures.rollouts
    recorded = counts.scored + counts.unscored
    done = progress.decision.complete
    mean = decimal_text(progress.figures.reward.mean)
    tally = f"{recorded} of {counts.planned} rollouts are recorded"
    unscored = f", {counts.unscored} of them unscored" if counts.unscored else ""
    if done:
        result = (
            f"Mean reward {mean}: {tally}{unscored}." if mean else f"No reward: {tally}{unscored}."
        )
        return [
            Says("Complete", True, "AllRecorded", result),
            Says("Failed", False, "AllRecorded"),
            Says("Suspended", False, "NotSuspended"),
            Says("Progressing", False, "AllRecorded", f"{tally}{unscored}."),
        ]
    suspended = run.spec.suspend
    blocked = bool(progress.decision.problem)
    reason = "Suspended" if suspended else "Blocked" if blocked else "Running"
    words = progress.decision.problem if reason == "Blocked" else ""
    return [
        Says("Complete", False, "Running"),
        Says("Failed", False, "Running"),
        Says("Suspended", suspended, "Suspended" if suspended else "NotSuspended"),
        Says("Progressing", not suspended, reason, f"{tally}{unscored}. {words}".strip()),
    ]


def _resolved(run: Run, progress: Progress) -> Resolved:
    bundles = progress.plan.bundles
    before = run.status.resolved
    return Resolved(
        benchmark_generation=progress.plan.benchmark_generation,
        spec_digest=digest_of(
            run.spec.model_dump_json(
                by_alias=True, exclude={"suspend", "parallelism", "k"}
            ).encode()
        ),
        digests=Digests(
            agent=refs_digest(bundles.agent),
            grader=refs_digest(bundles.grader),
            solutions=refs_digest(bundles.solutions),
        ),
        images=progress.images,
        # The operator that planned it, also after an upgrade in mid-run.
        operator_version=(before.operator_version if before else None) or progress.operator_version,
        store=progress.store,
    )


def refs_digest(refs: list[BundleRef]) -> str:
    """Return one digest for an ordered list of bundles."""
    return digest_of(json.dumps([[ref.alias, ref.digest] for ref in refs]).encode())


def _reward(numbers: RewardNumbers) -> RewardFigures:
    interval = numbers.interval95
    return RewardFigures(
        mean=decimal_text(numbers.mean),
        standard_error=decimal_text(numbers.standard_error),
        rerun_error=decimal_text(numbers.rerun_error),
        interval95=None
        if interval is None
        else Interval(low=_text(interval.low), high=_text(interval.high)),
        lower_bound=decimal_text(numbers.lower_bound),
        upper_bound=decimal_text(numbers.upper_bound),
        tasks_scored=numbers.tasks_scored,
    )


def _text(value: float) -> str:
    return decimal_text(value) or ""


def _coverage(coverage: CoverageFigure) -> Coverage:
    return Coverage(rollouts=decimal_text(coverage.rollouts), tasks=decimal_text(coverage.tasks))


def _pass(figure: PassFigure) -> PassAt:
    return PassAt(
        k=figure.k,
        value=decimal_text(figure.value),
        tasks_used=figure.tasks_used,
        low=decimal_text(figure.low),
        high=decimal_text(figure.high),
    )


def _tasks(figures: Aggregate) -> tuple[TaskFigures, ...]:
    return tuple(
        TaskFigures(
            id=row.id,
            category=row.category,
            mean=decimal_text(row.mean),
            pass_rate=decimal_text(row.pass_rate),
            scored=row.scored,
            unscored=row.unscored,
        )
        for row in figures.tasks[:TASKS_KEPT]
    )


def _groups(figures: Aggregate) -> tuple[GroupFigures, ...]:
    return tuple(
        GroupFigures(
            by=row.by,
            name=row.name,
            mean=decimal_text(row.mean),
            pass_rate=decimal_text(row.pass_rate),
            scored=row.scored,
            unscored=row.unscored,
        )
        for row in figures.groups[:50]
    )


RESULTS_BYTES = 1_000_000
"""One ConfigMap holds 1 MiB, metadata included."""


def results_text(run: Run, plan: Plan, ledger: Ledger, figures: Aggregate, state: str) -> str:
    """Return the full table for the ConfigMap ``<run>-results`` as JSON, as far as it fits.

    Beyond some 2,000 rollouts their rows stay in the ledger only, beyond some 2,500 tasks theirs
    do too: what is computed from them is in it all the same.
    """
    facts = RunFacts(name=run.metadata.name, agent=run.spec.agent.name, k=run.spec.k, state=state)
    table = document(facts, figures)
    full = {**table, "rollouts": rollout_rows(plan, run.spec.k, ledger)}
    texts = (
        json.dumps(some, separators=(",", ":"))
        for some in (full, table, {**table, "tasks": []}, {**table, "tasks": [], "groups": []})
    )
    readable = json.dumps(full, indent=1)
    return next((t for t in (readable, *texts) if len(t) <= RESULTS_BYTES), "{}")
