"""The kinds as models: what they read, what they refuse, and how large a status can become."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from wavetank.api.benchmark import BenchmarkTask
from wavetank.api.fields import Condition, ConditionStatus, clip, decimal_text
from wavetank.api.kinds import Benchmark, Run, World, read
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
from wavetank.core.causes import Cause
from wavetank.core.errors import SpecError
from wavetank.testing.objects import GONE, a_benchmark, a_run, a_task, a_world

CRDS = Path(__file__).parents[2] / "crds"
NOW = "2026-01-01T00:00:00Z"
FIGURE = decimal_text(-2 / 3)


def _digests() -> dict[str, str]:
    return {part: f"sha256:{'a' * 64}" for part in ("agent", "grader", "solutions")}


def the_largest_status() -> RunStatus:
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
        resolved=Resolved.model_validate(
            {
                "benchmarkGeneration": 10**6,
                "specDigest": f"sha256:{'a' * 64}",
                "digests": _digests(),
                "images": ResolvedImages(world="i" * 600, agent="i" * 600, verifier="i" * 600),
                "operatorVersion": "v" * 64,
            }
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


def _validate(plural: str, instance: dict[str, Any]) -> None:
    crd = yaml.safe_load((CRDS / f"{plural}.yaml").read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    jsonschema.Draft202012Validator(schema).validate(instance)


def test_the_largest_status_of_a_run_stays_below_its_limit() -> None:
    assert len(json.dumps(the_largest_status().document())) < MAX_BYTES


def test_the_largest_status_is_what_the_crd_allows() -> None:
    _validate("runs", {"spec": a_run()["spec"], "status": the_largest_status().document()})


def test_a_status_comes_back_as_it_was_written() -> None:
    raw = {**a_run(), "status": json.loads(json.dumps(the_largest_status().document()))}

    assert read(Run, raw).status == the_largest_status()


def test_what_is_undefined_is_absent_and_never_zero() -> None:
    assert RewardFigures(mean=decimal_text(None)).document() == {"tasksScored": 0}


def test_a_field_of_a_newer_operator_is_passed_over_in_status_only() -> None:
    raw = a_run()

    assert read(Run, {**raw, "status": {"usage": {"costUSD": "1"}}}).status == RunStatus()
    with pytest.raises(SpecError, match=r"spec\.model: is not a field of this version's Run"):
        read(Run, a_run(model={"name": "x"}))


def test_every_fault_of_an_object_is_told_with_its_place() -> None:
    raw = a_run(benchmarkRef={}, agent__name="x", tasks={"include": ["ok", "a b"]}, k=0)

    with pytest.raises(SpecError) as refusal:
        read(Run, raw)

    assert [finding.path for finding in refusal.value.findings] == [
        "spec.benchmarkRef.name",
        "spec.agent.name",
        "spec.k",
        "spec.tasks.include[1]",
    ]


@pytest.mark.parametrize(
    "source", [{}, {"bundle": {"digest": f"sha256:{'a' * 64}"}, "configMap": {"name": "a"}}]
)
def test_a_source_is_exactly_one_also_without_an_api_server(source: object) -> None:
    with pytest.raises(SpecError, match=r"spec\.source: must have exactly one of inline"):
        read(World, a_world(source=source))


def test_what_is_not_given_has_the_documented_value() -> None:
    spec = read(Run, a_run(k=GONE)).spec

    assert (spec.k, spec.parallelism, spec.retries.max_attempts) == (1, 10, 3)
    assert (spec.timeouts.rollout_seconds, spec.timeouts.verifier_multiplier) == (900, "1")
    assert read(Benchmark, a_benchmark()).spec.scoring.pass_threshold == "1"


def test_a_task_goes_into_a_bundle_with_the_names_that_bundles_use() -> None:
    task = BenchmarkTask.model_validate(
        a_task(worlds=[{"alias": "slack", "verifiers": ["posted"]}], timeoutSeconds=60, maxSteps=9)
    )

    assert task.entry() == {
        "id": "close_ticket",
        "prompt": "Close it.",
        "verifiers": ["ticket_closed"],
        "worlds": {"slack": ["posted"]},
        "timeout_seconds": 60,
        "max_steps": 9,
    }


def test_a_text_is_cut_at_its_limit_and_not_before() -> None:
    assert (clip("abcd", 4), clip("abcde", 4)) == ("abcd", "abc…")


def test_metadata_that_wavetank_does_not_read_is_passed_over() -> None:
    raw = a_run()
    raw["metadata"] |= {"managedFields": [], "generation": 2, "uid": "u", "resourceVersion": "9"}

    meta = read(Run, raw).metadata

    assert (meta.generation, meta.uid, meta.resource_version) == (2, "u", "9")
