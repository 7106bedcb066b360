"""What the API server takes as a World or a Benchmark, and what it says to everything else.

Each refusal has to name the field and what would be right, since for most people it is the only
documentation that they read.
"""

import pytest

from wavetank.kube.client import Client
from wavetank.kube.errors import Invalid
from wavetank.kube.objects import Manifest
from wavetank.testing.objects import A_TASK, GONE, a_benchmark, a_task, a_world, dry_create

pytestmark = pytest.mark.usefixtures("crds")

DIGEST = f"sha256:{'a' * 64}"
MAX_INLINE = 200_000


def _files(*paths: str) -> list[Manifest]:
    return [{"path": path, "content": "x"} for path in paths]


GOOD = {
    "a world with its files inline": a_world(),
    "as many bytes inline as fit": a_world(
        source__inline=[
            {"path": "a", "content": "x" * (MAX_INLINE // 2)},
            {"path": "b", "content": "ä" * (MAX_INLINE // 4)},
        ]
    ),
    "a hundred files": a_world(source__inline=_files(*(f"data/{n}.json" for n in range(100)))),
    "a world in a ConfigMap": a_world(
        source={"configMap": {"name": "crm", "items": [{"key": "w", "path": "schema/w.json"}]}}
    ),
    "a world pushed as an archive": a_world(source={"configMap": {"name": "crm"}}),
    "a world in the store": a_world(source={"bundle": {"digest": DIGEST}}),
    "a world with all there is": a_world(
        dependencies=[{"alias": "slack", "worldRef": {"name": "slack"}}],
        resources={"limits": {"cpu": 2, "memory": "1Gi", "ephemeral-storage": "1.5Gi"}},
        runtimeClassName="gvisor",
    ),
    "a benchmark": a_benchmark(),
    "a benchmark from its world's files": a_benchmark(world={"worldRef": {"name": "crm"}}),
    "a task graded in a linked world only": a_benchmark(
        world__tasks=[a_task(verifiers=GONE, worlds=[{"alias": "slack", "verifiers": ["posted"]}])]
    ),
    "a task with all there is": a_benchmark(
        world__tasks=[
            a_task(
                category="support",
                difficulty="easy",
                tags=["a", "b"],
                timeoutSeconds=60,
                maxSteps=9,
            )
        ]
    ),
    "as many tasks as fit": a_benchmark(
        world__tasks=[
            a_task(
                id=f"task_{n}",
                prompt="p" * 500,
                verifiers=[f"v{m}" for m in range(50)],
                worlds=[{"alias": f"w{m}", "verifiers": ["a"]} for m in range(16)],
            )
            for n in range(500)
        ],
        world__verifiers=[{"name": f"v{n}", "sql": "SELECT 1"} for n in range(200)],
    ),
    "rewards below zero": a_benchmark(
        scoring={"passThreshold": "0", "range": {"min": "-1", "max": "0.5"}}
    ),
    "a threshold without a range": a_benchmark(scoring={"passThreshold": "0.75"}),
}

DECIMAL = "must be a decimal number as a string"
REFUSED: dict[str, tuple[Manifest, str, str]] = {
    "no spec": (
        {key: value for key, value in a_world().items() if key != "spec"},
        "spec",
        "Required value",
    ),
    "no source": (a_world(source=GONE), "spec.source", "Required value"),
    "an empty source": (
        a_world(source={}),
        "spec.source",
        "must have exactly one of inline, configMap and bundle",
    ),
    "two sources": (
        a_world(source__bundle={"digest": DIGEST}),
        "spec.source",
        "must have exactly one of inline, configMap and bundle",
    ),
    "no files": (a_world(source__inline=[]), "spec.source.inline", "at least 1 items"),
    "too many files": (
        a_world(source__inline=_files(*map(str, range(101)))),
        "spec.source.inline",
        "must have at most 100 items",
    ),
    "too many bytes inline": (
        a_world(source__inline=[{"path": p, "content": "ä" * 50_001} for p in "ab"]),
        "spec.source",
        "inline may hold 200000 bytes of content in all files together: use configMap",
    ),
    "one file too long": (
        a_world(source__inline=[{"path": "a", "content": "x" * (MAX_INLINE + 1)}]),
        "spec.source.inline[0].content",
        "may not be more than 200000",
    ),
    "a path out of the bundle": (
        a_world(source__inline=_files("../etc/passwd")),
        "spec.source.inline[0].path",
        "must be a path inside the bundle, like tools/handlers.py: relative, no '..'",
    ),
    "dots inside a path": (
        a_world(source__inline=_files("tools/../../x")),
        "spec.source.inline[0].path",
        "no '..'",
    ),
    "an absolute path": (
        a_world(source__inline=_files("/etc/passwd")),
        "spec.source.inline[0].path",
        "relative",
    ),
    "a backslash in a path": (
        a_world(source__inline=_files("tools\\x.py")),
        "spec.source.inline[0].path",
        "only letters, digits",
    ),
    "a hidden file": (
        a_world(source__inline=_files(".git/config")),
        "spec.source.inline[0].path",
        "no part that starts with '.'",
    ),
    "a path twice": (
        a_world(source__inline=_files("a", "a")),
        "spec.source.inline[1]",
        "Duplicate value",
    ),
    "a file without content": (
        a_world(source__inline=[{"path": "a"}]),
        "spec.source.inline[0].content",
        "Required value",
    ),
    "a path out of the bundle by ConfigMap": (
        a_world(source={"configMap": {"name": "c", "items": [{"key": "k", "path": "a/../b"}]}}),
        "spec.source.configMap.items[0].path",
        "no '..'",
    ),
    "a ConfigMap in another namespace": (
        a_world(source={"configMap": {"name": "other/c"}}),
        "spec.source.configMap.name",
        "must be the name of an object in this namespace",
    ),
    "a digest that is none": (
        a_world(source={"bundle": {"digest": "latest"}}),
        "spec.source.bundle.digest",
        "must be 'sha256:' and 64 hexadecimal digits, as `wavetank benchmarks push` prints",
    ),
    "an alias that no tool can be named after": (
        a_world(dependencies=[{"alias": "my slack", "worldRef": {"name": "slack"}}]),
        "spec.dependencies[0].alias",
        "must start with a letter",
    ),
    "an alias twice": (
        a_world(dependencies=[{"alias": "s", "worldRef": {"name": name}} for name in "ab"]),
        "spec.dependencies[1]",
        "Duplicate value",
    ),
    "a reference with a namespace": (
        a_world(dependencies=[{"alias": "s", "worldRef": {"name": "a", "namespace": "b"}}]),
        "spec.dependencies[0].worldRef.namespace",
        "unknown field",
    ),
    "a quantity that is none": (
        a_world(resources={"limits": {"memory": "lots"}}),
        "spec.resources.limits.memory",
        "should match '^[0-9]+",
    ),
    "a resource that is not offered": (
        a_world(resources={"limits": {"nvidia.com/gpu": 1}}),
        "spec.resources.limits.nvidia.com/gpu",
        "unknown field",
    ),
    "no kind of benchmark": (a_benchmark(world=GONE), "spec.world", "Required value"),
    "no world": (a_benchmark(world__worldRef=GONE), "spec.world.worldRef", "Required value"),
    "no tasks in the list of tasks": (
        a_benchmark(world__tasks=[]),
        "spec.world.tasks",
        "at least 1 items",
    ),
    "a task without a verifier": (
        a_benchmark(world__tasks=[a_task(verifiers=[])]),
        "spec.world.tasks[0]",
        "must name at least one verifier, in verifiers or in worlds",
    ),
    "a task without a prompt": (
        a_benchmark(world__tasks=[a_task(prompt=GONE)]),
        "spec.world.tasks[0].prompt",
        "Required value",
    ),
    "a task's id that starts with a digit": (
        a_benchmark(world__tasks=[a_task(id="1st")]),
        "spec.world.tasks[0].id",
        "must start with a letter or '_'",
    ),
    "a task's id twice": (
        a_benchmark(world__tasks=[A_TASK, A_TASK]),
        "spec.world.tasks[1]",
        "Duplicate value",
    ),
    "a verifier's name with a slash": (
        a_benchmark(world__tasks=[a_task(verifiers=["slack/posted"])]),
        "spec.world.tasks[0].verifiers[0]",
        "should match '^[A-Za-z_][A-Za-z0-9_-]*$'",
    ),
    "a verifier twice in a task": (
        a_benchmark(world__tasks=[a_task(verifiers=["a", "a"])]),
        "spec.world.tasks[0].verifiers[1]",
        "Duplicate value",
    ),
    "no time for a task": (
        a_benchmark(world__tasks=[a_task(timeoutSeconds=0)]),
        "spec.world.tasks[0].timeoutSeconds",
        "greater than or equal to 1",
    ),
    "a verifier without a statement": (
        a_benchmark(world__verifiers=[{"name": "a", "sql": ""}]),
        "spec.world.verifiers[0].sql",
        "at least 1 chars long",
    ),
    "a threshold as a number": (
        a_benchmark(scoring={"passThreshold": 0.5}),
        "spec.scoring.passThreshold",
        "must be of type string",
    ),
    "a threshold in words": (
        a_benchmark(scoring={"passThreshold": "half"}),
        "spec.scoring.passThreshold",
        DECIMAL,
    ),
    "a threshold above the range": (
        a_benchmark(scoring={"passThreshold": "1.5"}),
        "spec.scoring",
        "passThreshold must lie in range, which is 0 to 1 unless range says otherwise",
    ),
    "a range that ends before it starts": (
        a_benchmark(scoring={"passThreshold": "1", "range": {"min": "1", "max": "1"}}),
        "spec.scoring.range",
        "min must be less than max",
    ),
    "a range that lacks the usual threshold": (
        a_benchmark(scoring={"range": {"min": "0", "max": "0.5"}}),
        "spec.scoring",
        "a range without 1 in it needs a passThreshold",
    ),
}


@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD.keys())
async def test_it_is_taken(client: Client, namespace: str, body: Manifest) -> None:
    taken = await dry_create(client, namespace, body)

    assert taken["metadata"]["name"] == body["metadata"]["name"]


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
async def test_it_is_refused_with_field_and_remedy(
    client: Client, namespace: str, case: tuple[Manifest, str, str]
) -> None:
    body, field, remedy = case

    with pytest.raises(Invalid) as refusal:
        await dry_create(client, namespace, body)

    message = refusal.value.failure.message
    assert field in message
    assert remedy in message
