"""Two Runs compared: from their plans and ledgers to the document that programs read. Pure."""

from dataclasses import asdict

from pydantic import JsonValue

from wavetank.api.plan import Plan
from wavetank.api.results import figures_of
from wavetank.api.wire import TaskInfo
from wavetank.core.compare import Comparison, Difference, TaskMean
from wavetank.core.observed import Ledger


def task_means(plan: Plan, k: int, ledger: Ledger) -> list[TaskMean]:
    """Return the tasks of a Run with the means of their scored rollouts, in the plan's order."""
    rows = {row.id: row.mean for row in figures_of(plan, k, ledger).tasks}
    return [TaskMean(task.id, rows[task.id], _groups(task)) for task in plan.tasks]


def _groups(task: TaskInfo) -> tuple[tuple[str, str], ...]:
    named = [("category", task.category), ("difficulty", task.difficulty)]
    named += [("tag", tag) for tag in task.tags]
    return tuple((by, name) for by, name in named if name is not None)


def is_same_benchmark(a: Plan, b: Plan) -> bool:
    """Tell whether two Runs had the same world and were graded by the same verifiers."""
    return (a.bundles.agent, a.bundles.grader) == (b.bundles.agent, b.bundles.grader)


def document(comparison: Comparison) -> dict[str, JsonValue]:
    """Return a comparison for programs: numbers are numbers, undefined is null."""
    left_out = asdict(comparison.left_out)
    return {
        "difference": _difference(comparison.overall),
        "tasks": [
            {"id": task.id, "a": task.a, "b": task.b, "difference": task.difference}
            for task in comparison.tasks
        ],
        "groups": [
            {"by": group.by, "name": group.name, **_difference(group.difference)}
            for group in comparison.groups
        ],
        "leftOut": {
            "onlyInA": left_out["only_in_a"],
            "onlyInB": left_out["only_in_b"],
            "unscoredInA": left_out["unscored_in_a"],
            "unscoredInB": left_out["unscored_in_b"],
        },
    }


def _difference(found: Difference) -> dict[str, JsonValue]:
    interval: JsonValue = None
    if found.low is not None and found.high is not None:
        interval = {"low": found.low, "high": found.high}
    return {
        "n": found.n,
        "mean": found.mean,
        "standardError": found.standard_error,
        "interval95": interval,
        "better": found.better,
        "worse": found.worse,
    }
