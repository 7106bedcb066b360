"""Small good objects of the three kinds, and the API server's word on objects."""

import copy
from typing import Any

from wavetank.kube.client import Client
from wavetank.kube.objects import BENCHMARKS, OWN_KINDS, RUNS, WORLDS, Manifest, Resource
from wavetank.kube.transport import Call

GONE = object()
"""In place of a value: the field is left out."""

A_TASK: Manifest = {
    "id": "close_ticket",
    "prompt": "Close it.",
    "verifiers": ["ticket_closed"],
}
_SPECS: dict[Resource, Manifest] = {
    WORLDS: {"source": {"inline": [{"path": "schema/world.json", "content": "{}"}]}},
    BENCHMARKS: {
        "world": {
            "worldRef": {"name": "crm"},
            "tasks": [A_TASK],
            "verifiers": [{"name": "ticket_closed", "sql": "SELECT 1"}],
        }
    },
    RUNS: {"benchmarkRef": {"name": "crm"}, "agent": {"name": "oracle"}, "k": 3},
}


def a_world(name: str = "crm", /, **changes: object) -> Manifest:
    """Return a good World with changes to its spec; ``__`` in a name stands for a dot."""
    return _changed(WORLDS, name, changes)


def a_benchmark(name: str = "crm", /, **changes: object) -> Manifest:
    """Return a good Benchmark with changes to its spec, as ``a_world`` takes them."""
    return _changed(BENCHMARKS, name, changes)


def a_run(name: str = "crm", /, **changes: object) -> Manifest:
    """Return a good Run with changes to its spec, as ``a_world`` takes them."""
    return _changed(RUNS, name, changes)


def a_task(**changes: object) -> Manifest:
    """Return a task of a Benchmark with changes."""
    return {name: value for name, value in {**A_TASK, **changes}.items() if value is not GONE}


async def dry_create(client: Client, namespace: str, body: Manifest) -> Manifest:
    """Return an object of ours as the API server would store it, strictly read and not kept.

    Raises:
        Invalid: If it refuses the object.
    """
    (resource,) = (kind for kind in OWN_KINDS if kind.kind == body["kind"])
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    return await client.transport.json(Call("create", resource, namespace, query=query, body=body))


def _changed(resource: Resource, name: str, changes: dict[str, object]) -> Manifest:
    spec = copy.deepcopy(_SPECS[resource])
    for path, value in changes.items():
        *way, last = path.split("__")
        place: dict[str, Any] = spec
        for step in way:
            place = place.setdefault(step, {})
        if value is GONE:
            del place[last]
        else:
            place[last] = value
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        "spec": spec,
    }
