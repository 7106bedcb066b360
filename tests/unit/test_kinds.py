"""The kinds as models: what they read, what they refuse, and how large a status can become."""

import contextlib
import copy
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from wavetank.api.benchmark import BenchmarkTask
from wavetank.api.fields import clip, decimal_text
from wavetank.api.kinds import Benchmark, Run, World, read
from wavetank.api.run_status import MAX_BYTES, RewardFigures, RunStatus
from wavetank.core.errors import SpecError
from wavetank.testing.objects import GONE, a_benchmark, a_run, a_task, a_world
from wavetank.testing.statuses import (
    a_benchmark_status,
    a_run_status,
    a_world_status,
    the_largest_status,
)

CRDS = Path(__file__).parents[2] / "crds"


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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=8,
)


def _places(value: object, way: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the ways to everything within JSON data."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [way, *(found for key, part in inner for found in _places(part, (*way, key)))]


@given(data=st.data())
@pytest.mark.parametrize(
    ("reader", "good"),
    [
        (partial(read, World), {**a_world(), "status": a_world_status().document()}),
        (partial(read, Benchmark), {**a_benchmark(), "status": a_benchmark_status().document()}),
        (partial(read, Run), {**a_run(), "status": a_run_status().document()}),
    ],
    ids=["World", "Benchmark", "Run"],
)
def test_whatever_is_stored_is_read_or_refused_and_nothing_else(
    reader: Callable[[dict[str, Any]], object], good: dict[str, Any], data: st.DataObject
) -> None:
    raw = copy.deepcopy(good)
    *way, last = data.draw(st.sampled_from(_places(raw)[1:]))
    place: Any = raw
    for step in way:
        place = place[step]
    place[last] = data.draw(JSON)

    with contextlib.suppress(SpecError):
        reader(raw)
