"""The command line on a real cluster: from a folder to evidence, and what it refuses."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from wavetank.bundles import pack
from wavetank.kube.objects import Manifest
from wavetank.testing import tally
from wavetank.testing.bundles import CONFIG, DESK, LINKED_CONFIG, write_bundle, write_linked
from wavetank.testing.cluster import kubeconfig_of_a_service_account
from wavetank.testing.command import Ended, on_a_terminal, plain, start, wavetank

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600), pytest.mark.usefixtures("operator")]

Kubectl = Callable[..., str]
Call = Callable[..., Ended]

TELLING = """
[[tasks]]
id = "tell"
prompt = "Close ticket T-7."
verifiers = ["told"]
"""
"""A task whose verifier gives no row at first, and a text in the end."""

FILES: Mapping[str, object] = {
    "gateway-env.toml": LINKED_CONFIG.replace("\n[dependencies", f"{TELLING}\n[dependencies"),
    "verifiers/told.sql": "SELECT 'yes' FROM crm_tickets WHERE id = 'T-7' AND status = 'closed'",
    "solutions/tell.json": DESK["solutions/close_ticket.json"],
}


@pytest.fixture(scope="module")
def call(namespace: str, kubeconfig: Path) -> Call:
    """Call ``wavetank`` with these words in the module's namespace."""

    def called(*words: str | Path) -> Ended:
        return asyncio.run(wavetank(*words, "-n", namespace, KUBECONFIG=str(kubeconfig)))

    return called


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle ``crm`` of two tasks, linked to another folder."""
    return write_linked(tmp_path_factory.mktemp("bundles"), FILES)


@pytest.fixture(scope="module")
def pushed(call: Call, desk: Path) -> Ended:
    return call("benchmarks", "push", desk)


@pytest.fixture(scope="module")
def ran(call: Call, pushed: Ended) -> Ended:
    """One Run of all tasks, waited for."""
    assert pushed.code == 0
    words = ("benchmarks", "run", "crm", "--agent", "oracle", "--name", "crm-oracle", "--wait")
    return call(*words)


def without_sizes(text: str) -> str:
    """A text with ``…`` in place of digests and packed sizes."""
    return re.sub(r" +\d+\.\d kB  sha256:[0-9a-f]{12}…", "  …", text)


# --- push -------------------------------------------------------------------------------------

PUSHED = """\
world  files  packed  digest                change
slack      4  …  new
crm        8  …  new
World slack: 1 table, 1 row, 1 tool
World crm: 2 tables, 3 rows, 2 tools
verifier              initial score
ticket_closed         0.0000
told                  - (RewardMissing)
slack/message_posted  0.0000
warning: verifiers/told.sql: RewardMissing on the untouched state: the statement answered no row.
Benchmark crm in {namespace} is ready: 2 tasks, initial mean -.
"""


def test_a_push_makes_worlds_and_a_benchmark_of_a_folder(
    pushed: Ended, namespace: str, kubectl: Kubectl
) -> None:
    names = kubectl("-n", namespace, "get", "worlds,benchmarks", "-o", "name").split()

    assert pushed.code == 0
    assert without_sizes(pushed.out) == PUSHED.format(namespace=namespace)
    assert set(names) >= {
        "world.wavetank.dev/slack",
        "world.wavetank.dev/crm",
        "benchmark.wavetank.dev/crm",
    }


def test_pushing_the_same_again_changes_nothing(
    pushed: Ended, call: Call, desk: Path, namespace: str, kubectl: Kubectl
) -> None:
    again = call("benchmarks", "push", desk)

    generations = "jsonpath={.items[*].metadata.generation}"
    assert again.code == 0
    assert again.out == re.sub(r"  new$", "  unchanged", pushed.out, flags=re.MULTILINE)
    assert kubectl("-n", namespace, "get", "worlds", "crm", "slack", "-o", generations) == "1 1"


def test_a_bundle_with_faults_writes_nothing(
    call: Call, namespace: str, kubectl: Kubectl, tmp_path: Path
) -> None:
    faulty = write_bundle(tmp_path / "faulty", {**DESK, "schema/world.json": "{"})
    config = CONFIG.replace('"crm"', '"faulty"')
    write_bundle(faulty, {"gateway-env.toml": config})

    ended = call("benchmarks", "push", faulty)

    assert (ended.code, ended.err) == (1, f"1 fault in {faulty}: nothing was written.\n")
    everything = kubectl("-n", namespace, "get", "worlds,benchmarks,configmaps", "-o", "name")
    assert "faulty" not in everything


def test_a_bundle_too_large_for_a_config_map_goes_through_the_store(
    call: Call, namespace: str, kubectl: Kubectl, tmp_path: Path
) -> None:
    noise = os.urandom(1_000_000)  # no compressor makes it small, and no store has it already
    config = CONFIG.replace('"crm"', '"large"')
    folder = write_bundle(
        tmp_path / "large", {**DESK, "gateway-env.toml": config, "data/noise.bin": noise}
    )

    ended = call("benchmarks", "push", folder, "--json")

    document = json.loads(ended.out)
    source = kubectl("-n", namespace, "get", "world", "large", "-o", "jsonpath={.spec.source}")
    assert (ended.code, document["ready"]) == (0, True)
    (world,) = document["worlds"]
    assert json.loads(source) == {"bundle": {"digest": world["digest"]}}
    assert world["digest"] == pack.digest_of(pack.read_folder(folder))
    assert world["packedBytes"] > 1_000_000
    assert "large-bundle" not in kubectl("-n", namespace, "get", "configmaps", "-o", "name")


def test_a_push_waits_for_the_check_of_what_it_brought(
    call: Call, namespace: str, kubectl: Kubectl, tmp_path: Path
) -> None:
    config = CONFIG.replace('"crm"', '"mended"')
    broken = "SELECT nope FROM crm_tickets"
    folder = write_bundle(
        tmp_path / "mended",
        {**DESK, "gateway-env.toml": config, "verifiers/ticket_closed.sql": broken},
    )

    first = call("benchmarks", "push", folder)
    refused = call("benchmarks", "run", "mended", "--agent", "nop")
    write_bundle(folder, {"verifiers/ticket_closed.sql": DESK["verifiers/ticket_closed.sql"]})
    second = call("benchmarks", "push", folder)

    fault = "verifiers/ticket_closed.sql: VerifierFailed on the untouched state: no such column"
    assert first.code == 1
    assert f"fault: {fault}: nope\n" in first.out
    assert refused.code == 1
    assert refused.err == (
        f"benchmark mended: {fault}: nope\n"
        "benchmark mended: mend it and push it again, or give --allow-faults.\n"
    )
    assert second.code == 0
    assert second.out.endswith(f"in {namespace} is ready: 1 task, initial mean 0.0000.\n")
    kept = kubectl("-n", namespace, "get", "configmaps", "-o", "name").split()
    assert len([name for name in kept if "/mended-bundle-" in name]) == 1


def test_what_was_applied_by_other_means_is_not_replaced(
    call: Call, namespace: str, kubectl: Kubectl, tmp_path: Path
) -> None:
    applied = tmp_path / "tally.json"
    applied.write_text(json.dumps(tally.world("taken")))
    kubectl("-n", namespace, "apply", "-f", applied)
    folder = write_bundle(
        tmp_path / "taken", {**DESK, "gateway-env.toml": CONFIG.replace('"crm"', '"taken"')}
    )

    ended = call("benchmarks", "push", folder)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(
        f"World taken: {namespace} has a World of this name that was not pushed: "
        "its source is inline."
    )
    assert "taken" not in kubectl("-n", namespace, "get", "benchmarks", "-o", "name")


# --- run and results --------------------------------------------------------------------------

RESULTS = """\
crm-oracle  oracle, k=1  Complete
task            mean  pass rate  samples  unscored  by verifier
close_ticket  0.5000     0.0000        1         0  ticket_closed 1, slack/message_posted 0
tell               -          -        0         1  told -
reward     0.5000, bounds 0.2500 to 0.7500
pass rate  0.0000
coverage   0.5000 of rollouts, 0.5000 of tasks (1 scored, 1 unscored, 2 of 2 recorded)
unscored   RewardInvalid 1
"""


def test_a_run_is_followed_to_its_results(ran: Ended) -> None:
    lines = ran.err.splitlines()

    assert (ran.code, ran.out) == (0, RESULTS)
    assert all(line.startswith("crm-oracle: ") for line in lines)
    assert lines[-1] == "crm-oracle: Complete, 2/2, 1 unscored, mean 0.5000"


@pytest.mark.usefixtures("ran")
def test_results_are_those_that_the_operator_wrote(
    call: Call, namespace: str, kubectl: Kubectl
) -> None:
    document = json.loads(call("benchmarks", "results", "crm", "--runs", "--json").out)
    kept = json.loads(
        kubectl("-n", namespace, "get", "configmap", "crm-oracle-results", "-o", "json")
    )

    written = json.loads(kept["data"]["results.json"])
    (run,) = document["runs"]
    for row in run["rollouts"]:
        del row["usage"], row["evidence"]
    del run["usage"]
    assert document["benchmark"] == "crm"
    assert run == written


@pytest.mark.usefixtures("ran")
def test_runs_are_listed(call: Call) -> None:
    ended = call("runs", "list", "--benchmark", "crm")

    heading, *rows = [line.split() for line in ended.out.splitlines()]
    assert heading == [
        "run",
        "benchmark",
        "agent",
        "state",
        "progress",
        "unscored",
        "mean",
        "passed",
    ]
    assert ["crm-oracle", "crm", "oracle", "Complete", "2/2", "1", "0.5000", "0.0000"] in rows


@pytest.mark.usefixtures("pushed")
def test_a_run_without_tasks_is_not_waited_for(call: Call) -> None:
    words = ("benchmarks", "run", "crm", "--agent", "nop", "--name", "none", "--task", "x*")

    ended = call(*words, "--wait")

    assert ended.code == 1
    assert ended.out.startswith("none  nop, k=1  Waiting\nspec.tasks selects none of the 2 tasks")


# --- evidence ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("ran")
def test_evidence_shows_calls_and_scores(call: Call) -> None:
    ended = call("runs", "evidence", "crm-oracle", "close_ticket", "0")

    arguments = '{"id": "T-7", "status": "closed", "reason": "duplicate"}'
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(
        f"crm-oracle  close_ticket, rollout 0, attempt 1\n  1 update_ticket {arguments}\n    -> "
    )
    assert ended.out.endswith(
        "answer  Closed.\n"
        "end     closed: completed\n"
        "score   ticket_closed 1.00\n"
        "score   slack/message_posted 0.00\n"
        "reward  0.5000\n"
    )


@pytest.mark.usefixtures("ran")
def test_evidence_of_an_unscored_rollout_says_why(call: Call) -> None:
    ended = call("runs", "evidence", "crm-oracle", "tell", "0")

    assert ended.code == 0
    assert "\nscore   told - RewardInvalid: " in ended.out
    assert ended.out.endswith("\nreward  - RewardInvalid\n")


@pytest.mark.usefixtures("ran")
def test_evidence_is_downloaded(call: Call, tmp_path: Path) -> None:
    ended = call("runs", "evidence", "crm-oracle", "close_ticket", "0", "-o", tmp_path / "ev")

    assert ended.code == 0
    assert ended.out == (
        f"{tmp_path / 'ev'} has agent.log, record.json, seal.json, session.json, "
        "trajectory.jsonl, worlds/linked/slack.sqlite, worlds/main.sqlite\n"
    )
    assert (tmp_path / "ev" / "agent.log").read_text() == "replay: 1 calls made\n"


@pytest.fixture
def slow(call: Call, tmp_path: Path) -> str:
    """A benchmark whose task ``slow`` acts for 8 s."""
    listed = tally.world(slow_seconds=8)["spec"]["source"]["inline"]
    folder = write_bundle(tmp_path / "tally", {file["path"]: file["content"] for file in listed})
    assert call("benchmarks", "push", folder).code == 0
    return "tally"


def pods_of(kubectl: Kubectl, namespace: str, run: str) -> list[Manifest]:
    label = f"wavetank.dev/run={run},app.kubernetes.io/component=rollout"
    items: list[Manifest] = json.loads(
        kubectl("-n", namespace, "get", "pods", "-l", label, "-o", "json")
    )["items"]
    return items


async def test_evidence_of_a_lost_attempt_says_why_it_was_lost(
    slow: str, namespace: str, kubeconfig: Path, kubectl: Kubectl
) -> None:
    where = ("-n", namespace, "--kubeconfig", kubeconfig)
    words = ("benchmarks", "run", slow, "--agent", "oracle", "--task", "slow", "--name", "lost")
    process = await start(*words, "--wait", *where)
    assert process.stderr is not None
    async for line in process.stderr:
        if b"1 active" in line:
            break
    (pod,) = pods_of(kubectl, namespace, "lost")
    kubectl("-n", namespace, "delete", "pod", pod["metadata"]["name"], "--wait=false")
    await process.communicate()

    first = await wavetank("runs", "evidence", "lost", "slow", "0", "--attempt", "1", *where)
    recorded = await wavetank("runs", "evidence", "lost", "slow", "0", *where)

    assert process.returncode == 0
    assert "\nfailed  attempt 1 PodDeleted: " in first.out
    assert recorded.code == 0
    assert recorded.out.startswith("lost  slow, rollout 0, attempt 2\n")
    assert recorded.out.endswith("score   reached 1.00\nreward  1.0000\n")


# --- interrupts and terminals -----------------------------------------------------------------


async def test_an_interrupted_wait_leaves_the_run_going(
    slow: str, namespace: str, kubeconfig: Path
) -> None:
    where = ("-n", namespace, "--kubeconfig", kubeconfig)
    words = ("benchmarks", "run", slow, "--agent", "oracle", "--task", "slow", "--name", "left")
    process = await start(*words, "--wait", *where)
    assert process.stderr is not None
    async for line in process.stderr:
        if b"Running" in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    watched = await wavetank("runs", "watch", "left", *where)

    assert process.returncode == 130
    assert err.decode().endswith(
        f"Run left goes on. Follow it: wavetank runs watch left -n {namespace}\nInterrupted.\n"
    )
    assert (watched.code, watched.out.splitlines()[-1]) == (
        0,
        "left: Complete, 1/1, mean 1.0000",
    )


@pytest.mark.usefixtures("pushed")
async def test_a_terminal_has_a_bar_until_the_results(namespace: str, kubeconfig: Path) -> None:
    words = ("benchmarks", "run", "crm", "--agent", "nop", "--task", "close*", "--name", "seen")

    shown = await on_a_terminal(
        *words, "--wait", "-n", namespace, KUBECONFIG=str(kubeconfig), columns=120
    )

    bars = [line for line in plain(shown.out).splitlines() if line.startswith("seen ━")]
    assert shown.code == 0
    assert re.fullmatch(r"seen ━+ 1/1 \d:\d\d:\d\d Complete, mean 0\.0000 *", bars[-1])
    assert "\nseen  nop, k=1  Complete" in plain(shown.out)


# --- permissions ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def viewer(
    ran: Ended,
    namespace: str,
    kubeconfig: Path,
    kubectl: Kubectl,
    tmp_path_factory: pytest.TempPathFactory,
) -> Call:
    """Call ``wavetank`` as somebody who may only look."""
    assert ran.code == 0
    folder = tmp_path_factory.mktemp("viewer")
    config = kubeconfig_of_a_service_account(kubeconfig, namespace, "viewer", folder)
    account = f"{namespace}:viewer"
    grant = ("create", "rolebinding", "viewer", "--clusterrole=view")
    kubectl("-n", namespace, *grant, f"--serviceaccount={account}")

    def called(*words: str | Path) -> Ended:
        return asyncio.run(wavetank(*words, "-n", namespace, KUBECONFIG=str(config)))

    return called


def test_who_may_look_sees_results(viewer: Call) -> None:
    assert viewer("benchmarks", "results", "crm-oracle").out == RESULTS


@pytest.mark.parametrize(
    ("words", "forbidden"),
    [
        (("benchmarks", "run", "crm", "--agent", "nop"), 'cannot create resource "runs"'),
        (
            ("runs", "evidence", "crm-oracle", "close_ticket", "0"),
            'cannot get resource "secrets"',
        ),
    ],
    ids=["run", "evidence"],
)
def test_who_may_only_look_is_told_what_is_missing(
    words: tuple[str, ...], forbidden: str, viewer: Call
) -> None:
    ended = viewer(*words)

    assert (ended.code, ended.out) == (1, "")
    assert forbidden in ended.err
    assert ended.err.endswith(
        "Ask for a role that allows it, or name another --namespace or --context.\n"
    )


def test_who_may_only_look_pushes_nothing(
    viewer: Call, namespace: str, kubectl: Kubectl, tmp_path: Path
) -> None:
    config = CONFIG.replace('"crm"', '"forbidden"')
    folder = write_bundle(tmp_path / "forbidden", {**DESK, "gateway-env.toml": config})

    ended = viewer("benchmarks", "push", folder)

    assert (ended.code, ended.out) == (1, "")
    assert 'cannot create resource "configmaps"' in ended.err
    assert "forbidden" not in kubectl("-n", namespace, "get", "worlds", "-o", "name")


def test_a_namespace_that_is_not_there_is_told_with_those_that_are(
    kubeconfig: Path, namespace: str
) -> None:
    ended = asyncio.run(wavetank("runs", "list", "-n", "no-such-place", KUBECONFIG=str(kubeconfig)))

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("namespace no-such-place: the cluster has none of that name.")
