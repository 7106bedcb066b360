"""Which tasks a Run takes, why it has none yet, and what a plan may be made of."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavetank.api.benchmark import Benchmark
from wavetank.api.execution import without_script
from wavetank.api.kinds import read
from wavetank.api.wire import TaskInfo
from wavetank.controller import planning
from wavetank.core.plan import Selection, rollout_seed, select
from wavetank.manifests.objects import RunOwner
from wavetank.testing.objects import a_benchmark

TASKS = ["close_a", "close_b", "open_a", "open_b", "audit"]
ids = st.lists(st.from_regex(r"[a-c_]{1,4}", fullmatch=True), unique=True, max_size=8)
globs = st.lists(st.sampled_from(["a*", "*b", "?", "[a-b]*", "*", "c_"]), max_size=3).map(tuple)
selections = st.builds(
    Selection,
    include=globs,
    exclude=globs,
    limit=st.none() | st.integers(1, 9),
    seed=st.none() | st.integers(0, 99),
)


@pytest.mark.parametrize(
    ("selection", "kept"),
    [
        (Selection(), TASKS),
        (Selection(include=("close_*",)), ["close_a", "close_b"]),
        (Selection(include=("*_b", "audit")), ["close_b", "open_b", "audit"]),
        (Selection(exclude=("*_a",)), ["close_b", "open_b", "audit"]),
        (Selection(include=("close_*",), exclude=("*_a",)), ["close_b"]),
        (Selection(limit=2), ["close_a", "close_b"]),
        (Selection(limit=99), TASKS),
        (Selection(include=("Close_*",)), []),
        (Selection(limit=2, seed=1), ["close_a", "open_b"]),
        (Selection(limit=2, seed=2), ["open_b", "audit"]),
    ],
)
def test_tasks_are_taken_in_the_benchmarks_order(selection: Selection, kept: list[str]) -> None:
    assert select(TASKS, selection) == kept


@given(ids, selections)
def test_a_selection_keeps_order_obeys_its_limit_and_is_the_same_each_time(
    tasks: list[str], selection: Selection
) -> None:
    kept = select(tasks, selection)

    assert kept == [task for task in tasks if task in kept]
    assert kept == select(tasks, selection)
    wanted = select(tasks, Selection(selection.include, selection.exclude))
    assert set(kept) <= set(wanted)
    assert len(kept) == min(len(wanted), selection.limit or len(wanted))


@given(ids, selections, st.randoms(use_true_random=False))
def test_which_tasks_are_drawn_does_not_depend_on_their_order(
    tasks: list[str], selection: Selection, chance: Random
) -> None:
    drawn = Selection(selection.include, selection.exclude, selection.limit, seed=7)
    shuffled = chance.sample(tasks, len(tasks))

    assert set(select(tasks, drawn)) == set(select(shuffled, drawn))


def test_a_rollouts_seed_is_its_own_and_the_same_in_every_run() -> None:
    seeds = [rollout_seed(task, k, seed) for task in TASKS for k in range(3) for seed in (0, 1)]

    assert len(set(seeds)) == len(seeds)
    assert rollout_seed("close_a", 0) == 1_828_974_434


def a_checked_benchmark(ready: str = "True", **status: Any) -> Benchmark:
    body = a_benchmark("crm")
    body["metadata"] |= {"namespace": "bench", "uid": "u", "generation": 2}
    condition = {
        "type": "Ready",
        "status": ready,
        "observedGeneration": 2,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "R",
        "message": "1 fault: tasks: is bad.",
    }
    body["status"] = {
        "conditions": [condition],
        "observedGeneration": 2,
        "checkResult": f"sha256:{'a' * 64}",
        **status,
    }
    return read(Benchmark, body)


@pytest.mark.parametrize(
    ("benchmark", "allow_faults", "words"),
    [
        (a_checked_benchmark(), False, None),
        (a_checked_benchmark("False"), True, None),
        (
            a_checked_benchmark("False"),
            False,
            "Benchmark crm is not Ready: 1 fault: tasks: is bad.",
        ),
        (a_checked_benchmark(observedGeneration=1), True, "1 fault: tasks: is bad."),
        (a_checked_benchmark("Unknown", checkResult=None), True, "1 fault: tasks: is bad."),
        (
            a_checked_benchmark(conditions=[], checkResult=None),
            False,
            "Benchmark crm is being checked.",
        ),
    ],
    ids=["ready", "faults allowed", "faults", "an older spec's", "not checked", "brand-new"],
)
def test_a_benchmark_that_cannot_be_run_yet_says_why(
    benchmark: Benchmark, allow_faults: bool, words: str | None
) -> None:
    waiting = planning._not_ready(benchmark, allow_faults=allow_faults)

    assert (waiting and waiting.message) == words


@pytest.mark.parametrize(
    ("agent", "without"),
    [
        ("nop", []),
        ("oracle", ["b", "c"]),
        ("scripted:half", ["a", "c"]),
        ("scripted:none", ["a", "b", "c"]),
    ],
)
def test_an_agent_that_replays_names_the_tasks_that_it_has_no_file_for(
    agent: str, without: list[str]
) -> None:
    tasks = [
        TaskInfo(id="a", verifiers=[], has_solution=True),
        TaskInfo(id="b", verifiers=[], scripts=["half"]),
        TaskInfo(id="c", verifiers=[]),
    ]

    assert without_script(agent, tasks) == without


def test_an_object_in_the_way_is_told_by_its_owner() -> None:
    run = RunOwner("crm", "bench", "mine")
    item: dict[str, Any] = {"kind": "ConfigMap", "metadata": {"name": "crm-plan"}}

    nobodys = planning.name_conflict(item, run)
    item["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Run", "name": "crm", "uid": "old", "controller": True}
    ]
    anothers = planning.name_conflict(item, run)
    item["metadata"]["ownerReferences"][0]["uid"] = "mine"

    end = "not to this Run: it goes with its owner, or delete it."
    assert nobodys is not None
    assert nobodys.message == f"ConfigMap crm-plan belongs to nobody, {end}"
    assert anothers is not None
    assert anothers.message == f"ConfigMap crm-plan belongs to Run crm with UID old, {end}"
    assert planning.name_conflict(item, run) is None
