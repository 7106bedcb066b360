"""Statuses on the real API server: they are taken, stay small, and `kubectl get` is worth reading.

Nothing is kept (dry runs): an operator that is running may write a status of its own at any moment.
"""

import json
from collections.abc import Callable

import pytest

from wavetank.api.conditions import Says, merged
from wavetank.api.run_status import MAX_BYTES, RunStatus
from wavetank.kube.client import Client
from wavetank.kube.objects import OWN_KINDS, RUNS, Manifest, Resource
from wavetank.kube.transport import Call
from wavetank.testing.objects import a_benchmark, a_run, a_world
from wavetank.testing.statuses import (
    NOW,
    a_benchmark_status,
    a_run_status,
    a_world_status,
    the_largest_status,
)

Kubectl = Callable[..., str]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
"""What kubectl asks for, so these are the cells that it prints."""

pytestmark = pytest.mark.usefixtures("crds")


async def _ensure(client: Client, namespace: str, body: Manifest) -> Resource:
    (resource,) = (kind for kind in OWN_KINDS if kind.kind == body["kind"])
    if await client.find(resource, namespace, body["metadata"]["name"]) is None:
        await client.create(resource, namespace, body)
    return resource


async def _writing(client: Client, namespace: str, body: Manifest, status: Manifest) -> Call:
    """Return the request that writes a status to an object, which is created if need be."""
    resource = await _ensure(client, namespace, body)
    name = body["metadata"]["name"]
    return Call(
        "apply",
        resource,
        namespace,
        name,
        "status",
        query={
            "dryRun": "All",
            "fieldManager": "wavetank",
            "force": "true",
            "fieldValidation": "Strict",
        },
        body={
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "namespace": namespace},
            "status": status,
        },
        content_type="application/apply-patch+yaml",
    )


async def written(client: Client, namespace: str, body: Manifest, status: Manifest) -> Manifest:
    """Return the object with this status as it would be stored."""
    return await client.transport.json(await _writing(client, namespace, body, status))


async def cells(
    client: Client, namespace: str, body: Manifest, status: Manifest
) -> dict[str, object]:
    """Return what `kubectl get` prints of the object, by the column's name, without its age."""
    call = await _writing(client, namespace, body, status)
    connection = client.transport.connection
    answer = await connection.session().patch(
        connection.server + call.target,
        data=json.dumps(call.body),
        headers={
            "Accept": TABLE,
            "Content-Type": call.content_type,
            **await connection.headers(),
        },
    )
    async with answer:
        table = await answer.json()
    assert table["kind"] == "Table", table
    columns = [column["name"] for column in table["columnDefinitions"] if not column["priority"]]
    wide = [column["priority"] > 0 for column in table["columnDefinitions"]]
    (row,) = table["rows"]
    shown = [cell for cell, hidden in zip(row["cells"], wide, strict=True) if not hidden]
    return {name: cell for name, cell in zip(columns, shown, strict=True) if name != "Age"}


async def test_a_world_tells_what_it_holds(client: Client, namespace: str) -> None:
    assert await cells(client, namespace, a_world(), a_world_status().document()) == {
        "Name": "crm",
        "Ready": "True",
        "Reason": "Checked",
        "Entities": 3,
        "Rows": 42,
        "Tools": 6,
    }


async def test_a_benchmark_tells_what_doing_nothing_is_worth(
    client: Client, namespace: str
) -> None:
    assert await cells(client, namespace, a_benchmark(), a_benchmark_status().document()) == {
        "Name": "crm",
        "Ready": "False",
        "Reason": "FaultsFound",
        "Kind": "world",
        "Tasks": 5,
        "InitialMean": "0.1000",
    }


async def test_a_run_tells_its_state_from_the_condition_that_holds(
    client: Client, namespace: str
) -> None:
    assert await cells(client, namespace, a_run(), a_run_status().document()) == {
        "Name": "crm",
        "State": "Progressing",
        "Reason": "Running",
        "Benchmark": "crm",
        "Agent": "oracle",
        "Progress": "12/15",
        "Unscored": 1,
        "Reward": "0.8182",
        "PassRate": "0.7500",
    }


async def test_a_run_that_waits_says_for_what(client: Client, namespace: str) -> None:
    says = [Says("Progressing", False, "BenchmarkNotFound", "There is no Benchmark crm yet.")]
    status = RunStatus(conditions=merged((), says, 1, NOW)).document()

    row = await cells(client, namespace, a_run("new"), status)

    assert {name: cell for name, cell in row.items() if cell is not None} == {
        "Name": "new",
        "Reason": "BenchmarkNotFound",
        "Benchmark": "crm",
        "Agent": "oracle",
    }


@pytest.mark.parametrize("names", ["wavetank", "wld,bmk,wrun", "worlds,benchmarks,runs"])
async def test_all_kinds_are_listed_by_category_and_short_name(
    client: Client, kubectl: Kubectl, namespace: str, names: str
) -> None:
    for body in (a_world("listed"), a_benchmark("listed"), a_run("listed")):
        await _ensure(client, namespace, body)

    listed = kubectl("get", names, "--namespace", namespace, "-o", "name").split()

    assert sorted(name for name in listed if name.endswith("/listed")) == [
        "benchmark.wavetank.dev/listed",
        "run.wavetank.dev/listed",
        "world.wavetank.dev/listed",
    ]


async def test_the_largest_status_is_taken_and_its_bookkeeping_stays_small(
    client: Client, namespace: str
) -> None:
    status = the_largest_status().document()

    run = await written(client, namespace, a_run("large"), status)

    assert run["status"] == status
    assert len(json.dumps(run["status"])) < MAX_BYTES
    assert len(json.dumps(run["metadata"]["managedFields"])) < 4096


async def test_a_status_write_cannot_touch_the_spec(client: Client, namespace: str) -> None:
    await _ensure(client, namespace, a_run("kept"))

    after = await client.merge_patch(
        RUNS, namespace, "kept", {"spec": {"agent": {"name": "nop"}}}, subresource="status"
    )

    assert after["spec"]["agent"] == {"name": "oracle"}


async def test_a_cause_that_only_a_newer_operator_knows_is_taken(
    client: Client, namespace: str
) -> None:
    status = {"unscoredByCause": [{"cause": "RateLimited", "count": 1}]}

    run = await written(client, namespace, a_run("cause"), status)

    assert run["status"] == status
