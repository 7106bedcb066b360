"""What Prometheus is told. No label is named after a Run, a task or a Pod.

Numbers are kept as things happen and never computed at a scrape. Benchmarks, models and verifiers
are named by people, so each of these labels takes at most 200 values; the rest counts as
``other``. Means over time come from the sums: ``rate(wavetank_reward_sum[1h]) /
rate(wavetank_reward_count[1h])``, meaningful while rewards are not negative.
"""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    Summary,
    disable_created_metrics,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from wavetank.controller.queue import Result

_MOST_VALUES = 200
"""Of one label that people name: 200 x 200 series are what a small Prometheus takes in its stride."""

_STAGE_SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
"""A rollout's stages take from a second (an oracle) to hours (a coding task)."""

_LOOK_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class _Bounded:
    """Lets the first values of a label through, and calls the rest ``other``."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, value: str) -> str:
        if value in self._seen:
            return value
        if len(self._seen) >= _MOST_VALUES:
            return "other"
        self._seen.add(value)
        return value


class Metrics:
    """All of the operator's metrics, in a registry of their own."""

    def __init__(self, version: str) -> None:
        # Each would be a second series per labelled series, and nothing reads them.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        Info("wavetank_build", "The operator's release.", registry=self.registry).info(
            {"version": version}
        )
        self._benchmark, self._model, self._verifier = _Bounded(), _Bounded(), _Bounded()
        self._about_runs()
        self._about_the_operator()

    def _about_runs(self) -> None:
        self._runs = Gauge(
            "wavetank_runs",
            "Runs by state: waiting, running, suspended, complete, failed.",
            ["state"],
            registry=self.registry,
        )
        self._rollouts = Counter(
            "wavetank_rollouts",
            "Rollouts recorded, by outcome (scored, unscored) and cause (empty when scored).",
            ["benchmark", "model", "outcome", "cause"],
            registry=self.registry,
        )
        self._stages = Histogram(
            "wavetank_rollout_duration_seconds",
            "How long a rollout's stage took: queue, start, act, grade.",
            ["stage"],
            buckets=_STAGE_SECONDS,
            registry=self.registry,
        )
        self._rewards = Summary(
            "wavetank_reward",
            "Rewards given by a verifier (verifier 'reward': the rollout's own). Unscored rollouts are not in it.",
            ["benchmark", "model", "verifier"],
            registry=self.registry,
        )
        self._attempts = Counter(
            "wavetank_attempts_failed",
            "Attempts that ended without a gradable end state, by cause.",
            ["cause"],
            registry=self.registry,
        )

    def _about_the_operator(self) -> None:
        self._looks = Histogram(
            "wavetank_reconcile_seconds",
            "How long one look at an object took; result is done, retry or error.",
            ["kind", "result"],
            buckets=_LOOK_SECONDS,
            registry=self.registry,
        )
        self._waits = Histogram(
            "wavetank_queue_latency_seconds",
            "How long an object that was due waited for a worker.",
            buckets=_LOOK_SECONDS,
            registry=self.registry,
        )
        self._depth = Gauge(
            "wavetank_queue_depth",
            "Objects that are due and wait for a worker.",
            registry=self.registry,
        )
        self._requests = Histogram(
            "wavetank_api_request_seconds",
            "Requests to the API server; code 0 means no answer. A watch counts until it is open.",
            ["verb", "resource", "code"],
            buckets=_LOOK_SECONDS,
            registry=self.registry,
        )
        self._held_back = Histogram(
            "wavetank_api_held_back_seconds",
            "How long a write to the API server waited for its turn under the write rate.",
            buckets=_LOOK_SECONDS,
            registry=self.registry,
        )
        self._missed = Counter(
            "wavetank_watch_missed",
            "Changes that a resync found and no watch told of.",
            ["resource"],
            registry=self.registry,
        )

    def runs(self, by_state: Mapping[str, int]) -> None:
        """Set how many Runs there are in each state."""
        for state, count in by_state.items():
            self._runs.labels(state).set(count)

    def rollout(self, benchmark: str, model: str, outcome: str, cause: str = "") -> None:
        """Count a rollout whose record is in the ledger."""
        self._rollouts.labels(self._benchmark(benchmark), self._model(model), outcome, cause).inc()

    def stage(self, stage: str, seconds: float) -> None:
        """Tell how long a stage of a rollout took: queue, start, act or grade."""
        self._stages.labels(stage).observe(max(0.0, seconds))

    def reward(self, benchmark: str, model: str, verifier: str, value: float) -> None:
        """Add a number that a verifier gave; call it only for numbers, never for null."""
        self._rewards.labels(
            self._benchmark(benchmark), self._model(model), self._verifier(verifier)
        ).observe(value)

    def attempt_failed(self, cause: str) -> None:
        """Count an attempt that ended without a gradable end state."""
        self._attempts.labels(cause).inc()

    def waited(self, seconds: float) -> None:
        """Tell how long a key that was due waited for a worker."""
        self._waits.observe(max(0.0, seconds))

    def looked(self, kind: str, result: Result, seconds: float) -> None:
        """Tell how one look at an object ended."""
        self._looks.labels(kind, result.value).observe(seconds)

    def requested(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Tell of a request to the API server."""
        self._requests.labels(verb, resource, str(code)).observe(seconds)

    def held_back(self, seconds: float) -> None:
        """Tell how long a write waited for its turn."""
        self._held_back.observe(seconds)

    def missed(self, resource: str) -> None:
        """Count a change that no watch told of."""
        self._missed.labels(resource).inc()

    def read_depth_from(self, depth: Callable[[], int]) -> None:
        """Ask the queue for its depth at each scrape."""
        self._depth.set_function(depth)

    def read_ages_from(self, ages: Callable[[], Mapping[str, float]]) -> None:
        """Ask the watches at each scrape for how long they heard nothing."""
        self.registry.register(_WatchAges(ages))

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class _WatchAges(Collector):
    """The age of each watch, by resource."""

    def __init__(self, ages: Callable[[], Mapping[str, float]]) -> None:
        self._ages = ages

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(
            "wavetank_watch_age_seconds",
            "Seconds since a watch heard anything: an event, a bookmark or a list.",
            labels=["resource"],
        )
        for resource, seconds in self._ages().items():
            family.add_metric([resource], seconds)
        yield family
