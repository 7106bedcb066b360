"""A Run's results: from its plan and ledger to figures, and to the document that programs read.

The controller (status, ConfigMap ``<run>-results``) and the command line both come here, so that
they cannot disagree.
"""

from dataclasses import dataclass

from pydantic import JsonValue

from wavetank.api.plan import Plan
from wavetank.api.wire import TaskInfo
from wavetank.core.aggregate import aggregate
from wavetank.core.figures import (
    Aggregate,
    Interval,
    PassFigure,
    PlannedTask,
    RewardFigures,
    Sample,
    Scoring,
    TaskRow,
)
from wavetank.core.identity import ordinal_of, rollout_and_place
from wavetank.core.observed import Ledger, Record

NO_MODEL = "none"
"""What stands for the model of an agent that needs none (oracle, nop, scripted)."""


@dataclass(frozen=True)
class RunFacts:
    """What a results document says of a Run beside its figures."""

    name: str
    agent: str
    k: int
    state: str
    """Complete, Failed, Suspended, Running or Waiting."""
    model: str = NO_MODEL


def figures_of(plan: Plan, k: int, ledger: Ledger) -> Aggregate:
    """Return the figures of what is recorded so far."""
    count = len(plan.tasks)
    total = count * k
    return aggregate(
        tasks=[_planned(task) for task in plan.tasks],
        k=k,
        samples=[
            _sample(plan, record, ledger)
            for ordinal, record in ledger.records.items()
            if ordinal < total
        ],
        scoring=Scoring(
            pass_threshold=plan.pass_threshold,
            range_min=plan.range_min,
            range_max=plan.range_max,
        ),
    )


def _planned(task: TaskInfo) -> PlannedTask:
    return PlannedTask(
        id=task.id, category=task.category, difficulty=task.difficulty, tags=tuple(task.tags)
    )


def _sample(plan: Plan, record: Record, ledger: Ledger) -> Sample:
    ordinal = record.key.ordinal
    rollout, place = rollout_and_place(ordinal, len(plan.tasks))
    return Sample(
        task=plan.tasks[place].id,
        rollout=rollout,
        reward=record.reward,
        cause=record.cause,
        scores=tuple((score.name, score.value) for score in record.scores),
        attempts=attempts_of(record, ledger),
    )


def attempts_of(record: Record, ledger: Ledger) -> int:
    """Return how many Pods a recorded rollout took, failed ones included."""
    failed = {failure.key.attempt for failure in ledger.failures.get(record.key.ordinal, ())}
    return len(failed | {record.key.attempt})


def document(facts: RunFacts, figures: Aggregate) -> dict[str, JsonValue]:
    """Return the results of one Run for programs: numbers are numbers, undefined is null."""
    counts = figures.rollouts
    return {
        "name": facts.name,
        "model": facts.model,
        "agent": facts.agent,
        "k": facts.k,
        "state": facts.state,
        "rolloutCounts": {
            "planned": counts.planned,
            "scored": counts.scored,
            "unscored": counts.unscored,
        },
        "reward": _reward(figures.reward),
        "zeroFilledMean": figures.zero_filled_mean,
        "passRate": figures.pass_rate,
        "coverage": {"rollouts": figures.coverage.rollouts, "tasks": figures.coverage.tasks},
        "passAtK": [_pass(figure) for figure in figures.pass_at_k],
        "passHatK": [_pass(figure) for figure in figures.pass_hat_k],
        "tasks": [_task(row) for row in figures.tasks],
        "groups": [
            {
                "by": row.by,
                "name": row.name,
                "mean": row.mean,
                "passRate": row.pass_rate,
                "samples": row.scored,
                "unscored": row.unscored,
            }
            for row in figures.groups
        ],
        "unscoredByCause": [
            {"cause": row.cause.value, "count": row.count} for row in figures.unscored_by_cause
        ],
    }


def rollout_rows(plan: Plan, k: int, ledger: Ledger) -> list[JsonValue]:
    """Return one row for each recorded rollout, in the plan's order by task, then rollout."""
    rows: list[JsonValue] = []
    for place, task in enumerate(plan.tasks):
        for rollout in range(k):
            record = ledger.records.get(ordinal_of(rollout, place, len(plan.tasks)))
            if record is not None:
                rows.append(_rollout(task, rollout, record, ledger))
    return rows


def _rollout(task: TaskInfo, rollout: int, record: Record, ledger: Ledger) -> JsonValue:
    return {
        "task": task.id,
        "rollout": rollout,
        "reward": record.reward,
        "rewards": {score.name: score.value for score in record.scores},
        "cause": None if record.cause is None else record.cause.value,
        "agentCause": None if record.agent_cause is None else record.agent_cause.value,
        "message": record.message or _first_message(record),
        "attempts": attempts_of(record, ledger),
        "attempt": record.key.attempt,
        "ordinal": record.key.ordinal,
        "seconds": record.stages.act,
    }


def _first_message(record: Record) -> str:
    return next((s.message for s in record.scores if s.value is None and s.message), "")


def _reward(figures: RewardFigures) -> JsonValue:
    return {
        "mean": figures.mean,
        "standardError": figures.standard_error,
        "rerunError": figures.rerun_error,
        "interval95": _interval(figures.interval95),
        "lowerBound": figures.lower_bound,
        "upperBound": figures.upper_bound,
        "tasksScored": figures.tasks_scored,
    }


def _interval(interval: Interval | None) -> JsonValue:
    return None if interval is None else {"low": interval.low, "high": interval.high}


def _pass(figure: PassFigure) -> JsonValue:
    return {
        "k": figure.k,
        "value": figure.value,
        "tasksUsed": figure.tasks_used,
        "low": figure.low,
        "high": figure.high,
    }


def _task(row: TaskRow) -> JsonValue:
    return {
        "id": row.id,
        "category": row.category,
        "difficulty": row.difficulty,
        "mean": row.mean,
        "passRate": row.pass_rate,
        "samples": row.scored,
        "unscored": row.unscored,
        "byVerifier": {verifier.name: verifier.mean for verifier in row.by_verifier},
    }
