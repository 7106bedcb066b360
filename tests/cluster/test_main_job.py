"""The main job, as users meet it: objects applied on a real cluster, rewards in a Run's status."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from wavetank.api.conditions import is_true
from wavetank.api.run import Run
from wavetank.core.causes import Cause
from wavetank.kube.client import Client
from wavetank.kube.objects import CONFIGMAPS, EVENTS, PODS, RUNS, uid_of
from wavetank.testing import tally
from wavetank.testing.cluster import until
from wavetank.testing.following import (
    Witness,
    apply,
    ledger_of_run,
    objects_of_run,
    over,
    run_of,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600), pytest.mark.usefixtures("operator")]

EXAMPLE = Path(__file__).parents[2] / "examples" / "01-crm"
Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def bench(namespace: str, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A namespace with the World and Benchmark ``tally``, checked."""
    file = tmp_path_factory.mktemp("tally") / "tally.json"
    items = [tally.world(), tally.benchmark()]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    kubectl("-n", namespace, "apply", "-f", file)
    ready = "--for=condition=Ready"
    kubectl("-n", namespace, "wait", ready, "benchmark.wavetank.dev/tally", "--timeout=180s")
    return namespace


def means(run: Run) -> dict[str, str | None]:
    return {task.id: task.mean for task in run.status.tasks}


async def test_the_example_gives_what_it_promises(
    namespace: str, kubectl: Kubectl, client: Client
) -> None:
    kubectl("-n", namespace, "apply", "-f", EXAMPLE / "all-in-one.yaml")
    kubectl("-n", namespace, "apply", "-f", EXAMPLE / "run-scripted.yaml")

    ended = [await over(client, namespace, f"crm-{name}") for name in ("oracle", "nop", "scripted")]

    expected = json.loads((EXAMPLE / "expected-results.json").read_text())
    for wanted, run in zip(expected.values(), ended, strict=True):
        item = await client.get(CONFIGMAPS, namespace, f"{run.metadata.name}-results")
        results = json.loads(item["data"]["results.json"])
        assert wanted["name"] == run.metadata.name
        assert {key: results[key] for key in wanted} == wanted
    oracle, nop, _ = ended
    assert oracle.status.reward is not None
    assert nop.status.reward is not None
    assert (oracle.status.reward.mean, oracle.status.progress) == ("1.0000", "15/15")
    initial = kubectl(
        "-n", namespace, "get", "benchmark.wavetank.dev/crm", "-o", "jsonpath={.status.initialMean}"
    )
    assert nop.status.reward.mean == initial


async def test_what_kubectl_shows_is_worth_reading(
    bench: str, kubectl: Kubectl, client: Client
) -> None:
    await apply(client, bench, tally.run("shown", tasks={"include": ["ten", "half"]}))
    run = await over(client, bench, "shown")

    line = kubectl("-n", bench, "get", "runs.wavetank.dev", "shown", "--no-headers").split()
    described = kubectl("-n", bench, "describe", "run.wavetank.dev", "shown")
    worlds = kubectl("-n", bench, "get", "worlds.wavetank.dev", "tally", "--no-headers").split()

    assert line[:-1] == [
        "shown",
        "Complete",
        "AllRecorded",
        "tally",
        "oracle",
        "2/2",
        "0",
        "0.7500",
        "0.5000",
    ]
    assert worlds[:-1] == ["tally", "True", "Checked", "1", "1", "2"]
    assert "Mean reward 0.7500: 2 of 2 rollouts are recorded." in described
    assert means(run) == {"ten": "1.0000", "half": "0.5000"}
    events = await client.list(EVENTS, bench)
    about = [e["reason"] for e in events.items if e["regarding"].get("uid") == run.metadata.uid]
    assert sorted(about) == ["RunCompleted", "RunStarted"]


async def test_deleting_a_run_leaves_nothing_of_it(bench: str, client: Client) -> None:
    await apply(client, bench, tally.run("goes", tasks={"include": ["slow"]}, k=2))
    uid = uid_of(await client.get(RUNS, bench, "goes"))
    acting = await until(lambda: _acting(client, bench, "goes"), 120)

    await client.delete(RUNS, bench, "goes", uid=uid)

    async def look() -> bool:
        await asyncio.sleep(1)
        return not await objects_of_run(client, bench, uid)

    assert acting
    assert await until(look, 150)


async def _acting(client: Client, namespace: str, name: str) -> list[str] | None:
    """Return the names of the Pods of a Run whose agent runs; None while there is none."""
    await asyncio.sleep(0.3)
    uid = (await client.get(RUNS, namespace, name))["metadata"]["uid"]
    listing = await client.list(PODS, namespace, label_selector=f"wavetank.dev/run-uid={uid}")
    acting = [
        pod["metadata"]["name"]
        for pod in listing.items
        for status in pod.get("status", {}).get("containerStatuses", ())
        if status["name"] == "agent" and "running" in status["state"]
    ]
    return acting or None


async def test_a_pod_deleted_by_hand_while_acting_costs_an_attempt_and_no_rollout(
    bench: str, client: Client
) -> None:
    await apply(client, bench, tally.run("deleted", tasks={"include": ["slow"]}))
    (name,) = await until(lambda: _acting(client, bench, "deleted"), 120)
    pod = await client.get(PODS, bench, name)

    await client.delete(PODS, bench, name, uid=uid_of(pod))
    run = await over(client, bench, "deleted")

    ledger = await ledger_of_run(client, run)
    (failure,) = ledger.failures[0]
    assert (failure.key.attempt, failure.cause) == (1, Cause.POD_DELETED)
    record = ledger.records[0]
    assert (record.key.attempt, record.reward, record.cause) == (2, 1.0, None)
    assert run.status.rollouts is not None
    assert (run.status.rollouts.scored, run.status.rollouts.unscored) == (1, 0)


async def test_a_verifier_that_returns_text_leaves_rollouts_unscored_and_never_0(
    bench: str, client: Client, kubectl: Kubectl
) -> None:
    task = {"id": "ten", "prompt": "Make the tally 10.", "verifiers": ["reached", "says"]}
    says = {"name": "says", "sql": "SELECT 'well done'"}
    await apply(
        client,
        bench,
        tally.benchmark("texts", tasks=[task], verifiers=[says]),
        tally.run("texts", benchmark_name="texts", k=2, allowFaults=True),
    )

    run = await over(client, bench, "texts")

    status = run.status
    assert status.rollouts is not None
    assert status.reward is not None
    assert (status.rollouts.scored, status.rollouts.unscored) == (0, 2)
    assert (status.reward.mean, status.reward.lower_bound, status.reward.upper_bound) == (
        None,
        "0.0000",
        "1.0000",
    )
    assert [(row.cause, row.count) for row in status.unscored_by_cause] == [("RewardInvalid", 2)]
    assert is_true(status.conditions, "Complete")
    ready = kubectl(
        "-n", bench, "get", "benchmark.wavetank.dev/texts", "-o", "jsonpath={.status.conditions[0]}"
    )
    assert "says" in ready
    assert "FaultsFound" in ready


async def test_a_run_before_its_benchmark_waits_and_says_for_what(
    bench: str, client: Client
) -> None:
    await apply(client, bench, tally.run("early", benchmark_name="later", tasks={"limit": 1}))

    async def waits() -> Run | None:
        run = await run_of(client, bench, "early")
        return run if run.status.last_problem else None

    waiting = await until(waits)
    await apply(client, bench, tally.benchmark("later"))
    run = await over(client, bench, "early")

    assert waiting.status.last_problem == "There is no Benchmark later in this namespace yet."
    assert means(run) == {"ten": "1.0000"}


async def test_a_suspended_run_drains_and_goes_on_and_a_raised_k_adds_rollouts(
    bench: str, client: Client
) -> None:
    tasks = {"include": ["ten", "half"]}
    await apply(client, bench, tally.run("changes", tasks=tasks, k=1, suspend=True))

    async def suspended() -> Run | None:
        run = await run_of(client, bench, "changes")
        return run if is_true(run.status.conditions, "Suspended") and run.status.rollouts else None

    async with Witness(client, bench) as witness:
        waiting = await until(suspended)
        assert waiting.status.rollouts is not None
        assert (waiting.status.rollouts.planned, waiting.status.rollouts.active) == (2, 0)
        await client.merge_patch(RUNS, bench, "changes", {"spec": {"suspend": False}})
        first = await over(client, bench, "changes")
        await client.merge_patch(RUNS, bench, "changes", {"spec": {"k": 3}})
        second = await over(client, bench, "changes")
        names = [name for name in witness.rollouts() if name.startswith("changes-")]

    assert (first.status.progress, second.status.progress) == ("2/2", "6/6")
    assert len(names) == 6
    assert means(second) == {"ten": "1.0000", "half": "0.5000"}
