"""What Prometheus sees."""

import pytest

from wavetank.controller.metrics import Metrics
from wavetank.controller.queue import Result


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("0.1.0")


def lines_of(metrics: Metrics, prefix: str) -> list[str]:
    """The samples that begin so, without histograms' buckets."""
    return [
        line
        for line in metrics.exposition().decode().splitlines()
        if line.startswith(prefix) and "_bucket" not in line
    ]


def test_rollouts_are_counted_by_outcome_and_cause(metrics: Metrics) -> None:
    metrics.rollout("crm", "oracle", "scored")
    metrics.rollout("crm", "oracle", "scored")
    metrics.rollout("crm", "oracle", "unscored", "RewardInvalid")

    assert lines_of(metrics, "wavetank_rollouts") == [
        'wavetank_rollouts_total{benchmark="crm",cause="",model="oracle",outcome="scored"} 2.0',
        'wavetank_rollouts_total{benchmark="crm",cause="RewardInvalid",model="oracle",outcome="unscored"} 1.0',
    ]


def test_rewards_have_a_sum_and_a_count(metrics: Metrics) -> None:
    metrics.reward("crm", "oracle", "ticket_closed", 1.0)
    metrics.reward("crm", "oracle", "ticket_closed", 0.25)

    labels = 'benchmark="crm",model="oracle",verifier="ticket_closed"'
    assert lines_of(metrics, "wavetank_reward") == [
        f"wavetank_reward_count{{{labels}}} 2.0",
        f"wavetank_reward_sum{{{labels}}} 1.25",
    ]


def test_stages_attempts_looks_and_requests_are_told(metrics: Metrics) -> None:
    metrics.stage("act", 12.0)
    metrics.attempt_failed("PodDeleted")
    metrics.waited(0.5)
    metrics.looked("Run", Result.RETRY, 0.25)
    metrics.requested("create", "pods", 201, 0.125)
    metrics.missed("runs")
    metrics.read_depth_from(lambda: 7)
    metrics.read_ages_from(lambda: {"pods": 3.0})

    shown = set(lines_of(metrics, "wavetank_"))
    assert {
        'wavetank_rollout_duration_seconds_sum{stage="act"} 12.0',
        'wavetank_attempts_failed_total{cause="PodDeleted"} 1.0',
        "wavetank_queue_latency_seconds_sum 0.5",
        'wavetank_reconcile_seconds_sum{kind="Run",result="retry"} 0.25',
        'wavetank_api_request_seconds_sum{code="201",resource="pods",verb="create"} 0.125',
        'wavetank_watch_missed_total{resource="runs"} 1.0',
        "wavetank_queue_depth 7.0",
        'wavetank_watch_age_seconds{resource="pods"} 3.0',
        'wavetank_build_info{version="0.1.0"} 1.0',
    } <= shown


def test_labels_that_people_name_are_bounded(metrics: Metrics) -> None:
    for number in range(1000):
        metrics.rollout(f"benchmark-{number}", "oracle", "scored")
    metrics.rollout("benchmark-0", "oracle", "scored")

    shown = lines_of(metrics, "wavetank_rollouts")
    assert len(shown) == 201
    assert [line for line in shown if "other" in line or '"benchmark-0"' in line] == [
        'wavetank_rollouts_total{benchmark="benchmark-0",cause="",model="oracle",outcome="scored"} 2.0',
        'wavetank_rollouts_total{benchmark="other",cause="",model="oracle",outcome="scored"} 800.0',
    ]


def test_no_label_is_named_after_a_run_a_task_or_a_pod(metrics: Metrics) -> None:
    names = {
        label
        for family in metrics.registry.collect()
        for sample in family.samples
        for label in sample.labels
    }

    assert not {name for name in names for word in ("run", "task", "pod") if word in name}
