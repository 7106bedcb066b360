"""What the API server takes as a Run, and as an edit of one, and what it says to everything else.

Each refusal has to name the field and what would be right, since for most people it is the only
documentation that they read.
"""

import re

import pytest

from wavetank.kube.client import Client
from wavetank.kube.errors import Invalid
from wavetank.kube.objects import RUNS, Manifest
from wavetank.kube.transport import Call
from wavetank.testing.objects import GONE, a_run, dry_create

pytestmark = pytest.mark.usefixtures("crds")

DIGEST = f"sha256:{'a' * 64}"

GOOD = {
    "a run": a_run(),
    "a run with what it needs only": a_run(k=GONE),
    "a scripted run": a_run(agent__name="scripted:half-way"),
    "a run with all there is": a_run(
        agent__image="ghcr.io/acme/agent@" + DIGEST,
        tasks={"include": ["close_*", "[ab]?"], "exclude": ["x"], "limit": 20, "seed": 0},
        parallelism=1000,
        timeouts={
            "rolloutSeconds": 60,
            "verifierSeconds": 60,
            "startSeconds": 60,
            "rolloutMultiplier": "1.5",
            "verifierMultiplier": "0.25",
        },
        retries={"maxAttempts": 1},
        allowFaults=True,
        suspend=True,
        podOverrides={
            "nodeSelector": {"kubernetes.io/arch": "amd64"},
            "tolerations": [
                {"operator": "Exists"},
                {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5},
            ],
            "runtimeClassName": "gvisor",
            "priorityClassName": "low",
            "imagePullSecrets": [{"name": "registry"}],
            "labels": {"kueue.x-k8s.io/queue-name": "bench", "team": ""},
            "resources": {"requests": {"cpu": "100m"}},
        },
    ),
    "as many patterns and labels as fit": a_run(
        tasks={"include": ["x" * 128] * 100, "exclude": ["y" * 128] * 100},
        podOverrides={
            "nodeSelector": {f"{'d' * 200}.io/{'n' * 60}{n}": "v" * 63 for n in range(20)},
            "labels": {f"{'d' * 200}.io/{'n' * 60}{n}": "v" * 63 for n in range(20)},
        },
    ),
    "the longest name": a_run("r" * 200),
}

REFUSED: dict[str, tuple[Manifest, str, str]] = {
    "no benchmark": (a_run(benchmarkRef=GONE), "spec.benchmarkRef", "Required value"),
    "no agent": (a_run(agent=GONE), "spec.agent", "Required value"),
    "an agent that is not there yet": (
        a_run(agent__name="claude-code"),
        "spec.agent.name",
        "must be oracle (replays solutions), nop (does nothing) or scripted:<name>",
    ),
    "a script out of its folder": (
        a_run(agent__name="scripted:../x"),
        "spec.agent.name",
        "scripted:<name> (replays scripts/<name>)",
    ),
    "an image with a space": (
        a_run(agent__image="my agent"),
        "spec.agent.image",
        "must be an image reference without spaces, like ghcr.io/acme/agent:1.2",
    ),
    "no rollouts": (a_run(k=0), "spec.k", "greater than or equal to 1"),
    "a billion rollouts": (a_run(k=10**9), "spec.k", "less than or equal to 100"),
    "half a rollout": (a_run(k=1.5), "spec.k", "must be of type integer"),
    "no parallelism": (a_run(parallelism=0), "spec.parallelism", "greater than or equal to 1"),
    "a pattern with a space": (
        a_run(tasks={"include": ["close ticket"]}),
        "spec.tasks.include[0]",
        "must be a task id or a pattern with *, ? or [...], like close_*",
    ),
    "no tasks": (a_run(tasks={"limit": 0}), "spec.tasks.limit", "greater than or equal to 1"),
    "a seed below zero": (
        a_run(tasks={"seed": -1}),
        "spec.tasks.seed",
        "greater than or equal to 0",
    ),
    "no time": (
        a_run(timeouts={"rolloutSeconds": 0}),
        "spec.timeouts.rolloutSeconds",
        "greater than or equal to 1",
    ),
    "more than a day": (
        a_run(timeouts={"startSeconds": 86_401}),
        "spec.timeouts.startSeconds",
        "less than or equal to 86400",
    ),
    "a multiplier of nothing": (
        a_run(timeouts={"rolloutMultiplier": "0"}),
        "spec.timeouts.rolloutMultiplier",
        "must be a decimal number above 0 and below 100 as a string",
    ),
    "a multiplier as a number": (
        a_run(timeouts={"verifierMultiplier": 2}),
        "spec.timeouts.verifierMultiplier",
        "must be of type string",
    ),
    "no attempt": (
        a_run(retries={"maxAttempts": 0}),
        "spec.retries.maxAttempts",
        "greater than or equal to 1",
    ),
    "a label of Wavetank's": (
        a_run(podOverrides__labels={"wavetank.dev/run-uid": "x"}),
        "spec.podOverrides.labels",
        "must not set labels that start with wavetank.dev/",
    ),
    "a label of Argo CD's": (
        a_run(podOverrides__labels={"app.kubernetes.io/instance": "x"}),
        "spec.podOverrides.labels",
        "Argo CD would prune Pods that bear an app's",
    ),
    "a label that is none": (
        a_run(podOverrides__labels={"a b": "x"}),
        "spec.podOverrides.labels",
        "must have label keys",
    ),
    "a label's value that is none": (
        a_run(podOverrides__labels={"a": "-x"}),
        "spec.podOverrides.labels",
        "must have label values",
    ),
    "a node selector that is none": (
        a_run(podOverrides__nodeSelector={"a": "b c"}),
        "spec.podOverrides.nodeSelector",
        "must have label values",
    ),
    "a toleration of nothing": (
        a_run(podOverrides__tolerations=[{"value": "x"}]),
        "spec.podOverrides.tolerations[0]",
        "a toleration without key needs operator Exists",
    ),
    "a toleration of any value and of one": (
        a_run(podOverrides__tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
        "spec.podOverrides.tolerations[0]",
        "has no value: leave it out, or use Equal",
    ),
    "a toleration for a time of what does not evict": (
        a_run(
            podOverrides__tolerations=[{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3}]
        ),
        "spec.podOverrides.tolerations[0]",
        "tolerationSeconds needs effect NoExecute",
    ),
    "an effect that is none": (
        a_run(podOverrides__tolerations=[{"key": "a", "effect": "Never"}]),
        "spec.podOverrides.tolerations[0].effect",
        'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ),
    "a Pod field that is not offered": (
        a_run(podOverrides={"hostNetwork": True}),
        "spec.podOverrides.hostNetwork",
        "unknown field",
    ),
    "a field that nothing implements yet": (
        a_run(model={"name": "x"}),
        "spec.model",
        "unknown field",
    ),
    "a name too long for its ledger's": (
        a_run("r" * 201),
        "metadata.name",
        "metadata.name of a Run may have at most 200 characters, since its ledger is named "
        "after it: choose a shorter name",
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


async def test_defaults_are_few_and_never_in_lists(client: Client, namespace: str) -> None:
    body = a_run(k=GONE, timeouts={}, podOverrides={"tolerations": [{"operator": "Exists"}]})

    taken = await dry_create(client, namespace, body)

    assert taken["spec"] == {
        **body["spec"],
        "k": 1,
        "parallelism": 10,
        "allowFaults": False,
        "suspend": False,
    }


EDITS: dict[str, Manifest] = {
    "another benchmark": {"benchmarkRef": {"name": "other"}},
    "another agent": {"agent": {"name": "nop"}},
    "an image added": {"agent": {"image": "x"}},
    "an image taken away": {"agent": {"image": None}},
    "tasks changed within": {"tasks": {"limit": 2}},
    "a pattern added to a list": {"tasks": {"include": ["a", "b"]}},
    "a list taken away": {"tasks": {"include": None}},
    "tasks taken away": {"tasks": None},
    "a block added": {"timeouts": {"rolloutSeconds": 1}},
    "an empty block added": {"retries": {}},
    "faults allowed": {"allowFaults": True},
    "a label added": {"podOverrides": {"labels": {"c": "d"}}},
    "a label changed": {"podOverrides": {"labels": {"a": "c"}}},
    "a quantity changed": {"podOverrides": {"resources": {"limits": {"cpu": 2}}}},
    "a quantity written otherwise": {"podOverrides": {"resources": {"limits": {"cpu": "1000m"}}}},
    "overrides taken away": {"podOverrides": None},
}


@pytest.fixture
async def stored(client: Client, namespace: str) -> Manifest:
    """A suspended Run that is really there, so that edits of it can be tried."""
    body = a_run(
        "stored",
        suspend=True,
        agent__image="a",
        tasks={"include": ["a"], "limit": 1},
        podOverrides={
            "labels": {"a": "b"},
            "tolerations": [{"key": "a"}],
            "resources": {"limits": {"cpu": 1}},
        },
    )
    found = await client.find(RUNS, namespace, "stored")
    return found or await client.create(RUNS, namespace, body)


async def edit(client: Client, run: Manifest, spec: Manifest) -> Manifest:
    """Let the API server decide on an edit without keeping it."""
    meta = run["metadata"]
    call = Call(
        "patch",
        RUNS,
        meta["namespace"],
        meta["name"],
        query={"dryRun": "All", "fieldValidation": "Strict"},
        body={"spec": spec},
        content_type="application/merge-patch+json",
    )
    return await client.transport.json(call)


@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS.keys())
async def test_a_run_cannot_be_edited(client: Client, stored: Manifest, change: Manifest) -> None:
    with pytest.raises(Invalid) as refusal:
        await edit(client, stored, change)

    assert re.search(
        r"spec: Invalid value: .*spec of a Run is fixed, but for suspend, parallelism, and k "
        r"upwards: delete the Run, or create another under a new name",
        refusal.value.failure.message,
        re.DOTALL,
    )


@pytest.mark.parametrize("change", [{"k": 2}, {"k": None}], ids=["lowered", "taken away"])
async def test_k_cannot_be_lowered(client: Client, stored: Manifest, change: Manifest) -> None:
    with pytest.raises(
        Invalid, match="k of a Run may only be raised: create another Run"
    ) as refusal:
        await edit(client, stored, change)

    assert "spec.k: " in refusal.value.failure.message


async def test_a_spec_cannot_be_taken_away(client: Client, stored: Manifest) -> None:
    with pytest.raises(Invalid, match="spec: Required value"):
        await edit(client, stored, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"k": 4},
        {"suspend": False},
        {"suspend": None},
        {"parallelism": 1},
        {"parallelism": None},
        {"k": 100, "suspend": False, "parallelism": 2},
    ],
    ids=str,
)
async def test_what_may_change_may(client: Client, stored: Manifest, change: Manifest) -> None:
    changed = await edit(client, stored, change)

    assert changed["metadata"]["name"] == "stored"


async def test_the_largest_run_can_still_be_suspended(client: Client, namespace: str) -> None:
    largest = {**GOOD["as many patterns and labels as fit"], "metadata": {"name": "largest"}}
    run = await client.create(RUNS, namespace, largest)

    changed = await edit(client, run, {"suspend": True})

    assert changed["spec"] == {**run["spec"], "suspend": True}


async def test_a_run_is_scaled_by_its_parallelism(client: Client, stored: Manifest) -> None:
    meta = stored["metadata"]

    call = Call("get", RUNS, meta["namespace"], meta["name"], "scale")
    scale = await client.transport.json(call)

    assert scale["spec"] == {"replicas": 10}


async def test_runs_are_found_by_their_benchmark(client: Client, namespace: str) -> None:
    for name, benchmark in [("found", "sought"), ("passed-over", "other")]:
        await client.create(RUNS, namespace, a_run(name, benchmarkRef={"name": benchmark}))

    found = await client.list(RUNS, namespace, field_selector="spec.benchmarkRef.name=sought")

    assert [item["metadata"]["name"] for item in found.items] == ["found"]
