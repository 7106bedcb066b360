"""The command line as a process: wrong usage, exit codes, and what it prints of documents.

A scripted API server stands for the cluster; tests/cluster/test_cli.py has the real one.
"""

import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from wavetank.cli.main import root
from wavetank.core.causes import Cause
from wavetank.kube.objects import Manifest
from wavetank.kube.transport import ClientSettings
from wavetank.testing import kept
from wavetank.testing.api_server import (
    Answer,
    ScriptedApiServer,
    gives,
    gives_text,
    refuses,
    scripted_api_server,
)
from wavetank.testing.command import on_a_terminal, plain, wavetank
from wavetank.testing.kept import KeptRun, invalid, lost, scored

pytestmark = pytest.mark.component

TRIES = ClientSettings().tries + 1
"""So many refusals in a row are more than the client itself waits for."""

MIXED = KeptRun(
    entries=[
        scored(0, 1, 1),
        scored(1, 1, 0, agent_cause=Cause.AGENT_TIMEOUT),
        invalid(2, "the answer is the text 'yes'"),
        *lost(3, 2, "the Pod was deleted"),
    ]
)
WAITING = KeptRun(
    name="crm-nop",
    agent="nop",
    waits=("BenchmarkNotReady", "Benchmark crm is being checked."),
)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedApiServer]:
    async with scripted_api_server() as running:
        yield running


@pytest.fixture
def config(server: ScriptedApiServer, tmp_path: Path) -> str:
    return str(server.kubeconfig(tmp_path))


def listing(*items: Manifest) -> Answer:
    return gives({"metadata": {"resourceVersion": "1"}, "items": list(items)})


def documents(*runs: KeptRun) -> list[Answer]:
    """What the API server is asked for the results of Runs."""
    answers = [listing(*(run.run for run in runs))]
    for run in runs:
        answers += [gives(run.plan), listing(run.shard)] if run.plan else [refuses(404, "NotFound")]
    return answers


# --- wrong usage ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("runs lst", "Error: There is no command 'lst'. Name one of: list, watch, evidence."),
        ("runs list --nope", "Error: No such option '--nope'."),
        (
            "benchmarks results crm --json --csv",
            "Error: --json and --csv exclude each other.",
        ),
        ("benchmarks run crm", "Error: Missing option '--agent'."),
        (
            "benchmarks run crm --agent nop -k 0",
            "Error: Invalid value for '-k': 0 is not in the range 1<=x<=100.",
        ),
        (
            "benchmarks run crm --agent gpt",
            "Error: --agent: give oracle, nop or scripted:<name>, not 'gpt'.",
        ),
        (
            "benchmarks run crm --agent nop --task a,b",
            "Error: --task: give an id, or a pattern with *, ? or [...] like 'close_*', not 'a,b'.",
        ),
        (
            "benchmarks run /tmp --agent nop",
            "Error: /tmp is a folder. Give --local, or push it first: wavetank benchmarks push /tmp",
        ),
        (
            "benchmarks push /nonexistent",
            "Error: Invalid value for 'FOLDER': Directory '/nonexistent' does not exist.",
        ),
        (
            "benchmarks run crm --agent nop --name Mine",
            "Error: Invalid value for '--name': 'Mine' cannot name an object: lower-case letters, "
            "digits, '-' and '.', at most 200 characters, with a letter or digit at both ends.",
        ),
        (
            "runs evidence crm-oracle close_ticket first",
            "Error: Invalid value for 'ROLLOUT': 'first' is not a valid integer range.",
        ),
    ],
    ids=lambda value: value if not value.startswith("Error") else "",
)
def test_wrong_usage_is_told_and_is_exit_code_2(words: str, told: str) -> None:
    ended = CliRunner().invoke(root, words.split(), prog_name="wavetank")

    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-1] == told


# --- no cluster -------------------------------------------------------------------------------

CONTEXTS = """\
current-context: gone
contexts:
- {name: lab, context: {cluster: lab, user: lab, namespace: bench}}
- {name: prod, context: {cluster: prod, user: prod}}
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "there is no kubeconfig '{file}'. Give --kubeconfig, or set KUBECONFIG."),
        ("a text", "kubeconfig '{file}' is no kubeconfig: it holds no mapping."),
        (
            "{}",
            "kubeconfig '{file}': it has no current context. Give --context, one of: none.",
        ),
        (
            CONTEXTS,
            "kubeconfig '{file}': it has no context 'gone'. Give --context, one of: lab, prod.",
        ),
    ],
    ids=["that is not there", "of another kind", "without contexts", "with a stale context"],
)
async def test_the_cluster_cannot_be_reached_by_a_kubeconfig(
    text: str | None, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    if text is not None:
        file.write_text(text)

    ended = await wavetank("runs", "list", KUBECONFIG=str(file))

    words = f"The cluster or the store could not be reached: {told.format(file=file)}\n"
    assert (ended.code, ended.out, ended.err) == (3, "", words)


async def test_a_context_that_is_not_there_is_told_with_those_that_are(config: str) -> None:
    ended = await wavetank("runs", "list", "--kubeconfig", config, "--context", "prod")

    assert ended.code == 3
    assert ended.err.endswith("it has no context 'prod'. Give --context, one of: test.\n")


async def test_of_several_kubeconfigs_the_first_current_context_counts(
    server: ScriptedApiServer, config: str, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.write_text(CONTEXTS)
    server.will(listing(MIXED.run))

    ended = await wavetank("runs", "list", KUBECONFIG=f"{config}:{other}")

    assert ended.code == 0
    assert server.asked[0].path.startswith("/apis/wavetank.dev/v1alpha1/namespaces/default/")


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        (refuses(401, "Unauthorized"), 3, "list Run default: words of Unauthorized"),
        (refuses(403, "Forbidden"), 1, "list Run default: words of Forbidden (403 Forbidden)\n"),
        (
            gives_text("404 page not found", 404),
            3,
            "This cluster does not know the kind Run: Wavetank is not installed there.",
        ),
    ],
    ids=["401", "403", "a kind that is not there"],
)
async def test_a_refusal_of_the_api_server_is_told(
    answer: Answer, code: int, told: str, server: ScriptedApiServer, config: str
) -> None:
    server.will(answer, answer)

    ended = await wavetank("runs", "list", "--kubeconfig", config)

    assert (ended.code, ended.out) == (code, "")
    assert told in ended.err


async def test_a_server_that_is_away_is_exit_code_3(
    server: ScriptedApiServer, config: str, tmp_path: Path
) -> None:
    text = Path(config).read_text().replace(server.url, "http://127.0.0.1:1")
    Path(config).write_text(text)

    ended = await wavetank("runs", "list", "--kubeconfig", config)

    assert (ended.code, ended.out) == (3, "")
    assert "The cluster or the store could not be reached: list Run default:" in ended.err


# --- names ------------------------------------------------------------------------------------


def named(*names: str) -> Answer:
    return listing(*({"metadata": {"name": name}} for name in names))


@pytest.mark.parametrize(
    ("words", "answers", "told"),
    [
        (
            "benchmarks results hr",
            [named(), refuses(404, "NotFound"), gives({}), named("crm", "crm-big")],
            "Benchmark hr: bench has none of that name. Name one of: crm, crm-big.",
        ),
        (
            "benchmarks run hr --agent nop",
            [refuses(404, "NotFound"), gives({}), named()],
            "Benchmark hr: bench has none of that name. There is none to name.",
        ),
        (
            "runs watch crm-7",
            [listing(MIXED.run), gives({}), named("crm-oracle")],
            "Run crm-7: bench has none of that name. Name one of: crm-oracle.",
        ),
        (
            "runs evidence crm-7 close_ticket 0",
            [refuses(404, "NotFound"), gives({}), named("crm-oracle")],
            "Run crm-7: bench has none of that name. Name one of: crm-oracle.",
        ),
        (
            "runs evidence crm-oracle close 0",
            [gives(MIXED.run), gives(MIXED.plan or {}), listing(MIXED.shard)],
            "task close: Run crm-oracle has none of that id. Name one of: close_ticket, escalate.",
        ),
        (
            "runs evidence crm-oracle escalate 2",
            [gives(MIXED.run), gives(MIXED.plan or {}), listing(MIXED.shard)],
            "rollout 2: Run crm-oracle has rollouts 0 to 1 of each task.",
        ),
        (
            "runs list",
            [listing(), refuses(404, "NotFound"), named("bench-1", "default")],
            "namespace bench: the cluster has none of that name. Name one of: bench-1, default.",
        ),
    ],
    ids=["benchmark", "benchmark to run", "run", "run's evidence", "task", "rollout", "namespace"],
)
async def test_an_unknown_name_is_told_with_the_known_ones(
    words: str, answers: list[Answer], told: str, server: ScriptedApiServer, config: str
) -> None:
    server.will(*answers)

    ended = await wavetank(*words.split(), "-n", "bench", "--kubeconfig", config)

    assert (ended.code, ended.out, ended.err) == (1, "", f"{told}\n")


async def test_a_name_that_is_taken_is_exit_code_1(server: ScriptedApiServer, config: str) -> None:
    bare = {"metadata": {"name": "crm", "uid": "u", "generation": 1, "namespace": "bench"}}
    spec = {"spec": {"world": {"worldRef": {"name": "crm"}}}}
    server.will(gives({**bare, **spec}), refuses(409, "AlreadyExists"))

    words = "benchmarks run crm --agent nop --name mine -n bench --kubeconfig"
    ended = await wavetank(*words.split(), config)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "Run mine: bench has one of this name. Give another --name.\n"


# --- results ----------------------------------------------------------------------------------

TEXT = """\
crm-oracle  oracle, k=2  Complete
task            mean  pass rate  samples  unscored  by verifier
close_ticket  1.0000     1.0000        1         1  ticket_closed 1, reason_recorded 1
escalate      0.5000     0.0000        1         1  ticket_escalated 1, slack/message_posted 0
reward     0.7500 ± 0.2500 (standard error), bounds 0.3750 to 0.8750
pass rate  0.5000
coverage   0.5000 of rollouts, 1.0000 of tasks (2 scored, 2 unscored, 4 of 4 recorded)
unscored   PodDeleted 1, RewardInvalid 1
"""

ROLLOUTS = """
task          rollout  reward  attempts  seconds  what was missed
close_ticket        0  1.0000         1      1.2
close_ticket        1       -         1      1.2  RewardInvalid: the answer is the text 'yes'
escalate            0  0.5000         1      1.2  AgentTimeout, slack/message_posted 0
escalate            1       -         2        -  PodDeleted: the Pod was deleted
"""

WAITS = """\
crm-nop  nop, k=2  Waiting
Benchmark crm is being checked.

"""


async def results(config: str, *more: str) -> str:
    ended = await wavetank(
        "benchmarks", "results", "crm", "-n", "bench", "--kubeconfig", config, *more
    )
    assert (ended.code, ended.err) == (0, "")
    return ended.out


async def test_results_are_tasks_and_totals(server: ScriptedApiServer, config: str) -> None:
    server.will(*documents(MIXED))

    assert await results(config) == TEXT


async def test_results_show_why_a_rollout_has_no_reward(
    server: ScriptedApiServer, config: str
) -> None:
    server.will(*documents(MIXED))

    assert await results(config, "--runs") == TEXT + ROLLOUTS


async def test_results_of_a_run_that_waits_say_what_for(
    server: ScriptedApiServer, config: str
) -> None:
    server.will(*documents(WAITING, MIXED))

    assert await results(config) == WAITS + TEXT


async def test_a_namespace_means_the_cluster_also_beside_a_folder_of_that_name(
    server: ScriptedApiServer, config: str, tmp_path: Path
) -> None:
    (tmp_path / "crm").mkdir()
    server.will(*documents(MIXED))

    words = ("benchmarks", "results", "crm", "-n", "bench", "--kubeconfig", config)
    ended = await wavetank(*words, cwd=tmp_path)

    assert ended.out == TEXT


async def test_a_benchmark_without_runs_has_no_results(
    server: ScriptedApiServer, config: str
) -> None:
    server.will(listing(), gives({}))

    assert await results(config) == (
        "Benchmark crm has no Runs yet. "
        "Start one: wavetank benchmarks run crm -n bench --agent oracle\n"
    )


def shape(value: object) -> object:
    """The keys of a document, with a list as its first item."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else None


async def test_results_as_json_are_numbers_and_nulls(
    server: ScriptedApiServer, config: str
) -> None:
    server.will(*documents(MIXED))

    document = json.loads(await results(config, "--runs", "--json"))

    (run,) = document.pop("runs")
    assert document == {"benchmark": "crm"}
    assert {key: run[key] for key in ("name", "agent", "k", "state", "usage")} == {
        "name": "crm-oracle",
        "agent": "oracle",
        "k": 2,
        "state": "Complete",
        "usage": None,
    }
    assert (run["reward"]["mean"], run["reward"]["interval95"]) == (0.75, None)
    assert run["coverage"] == {"rollouts": 0.5, "tasks": 1.0}
    assert run["unscoredByCause"] == [
        {"cause": "PodDeleted", "count": 1},
        {"cause": "RewardInvalid", "count": 1},
    ]
    assert run["tasks"][1] == {
        "id": "escalate",
        "category": None,
        "difficulty": None,
        "mean": 0.5,
        "passRate": 0.0,
        "samples": 1,
        "unscored": 1,
        "byVerifier": {"ticket_escalated": 1.0, "slack/message_posted": 0.0},
    }
    assert [(r["task"], r["rollout"], r["reward"], r["evidence"]) for r in run["rollouts"]] == [
        ("close_ticket", 0, 1.0, f"/v1/runs/{kept.UID}/0/1"),
        ("close_ticket", 1, None, f"/v1/runs/{kept.UID}/2/1"),
        ("escalate", 0, 0.5, f"/v1/runs/{kept.UID}/1/1"),
        ("escalate", 1, None, None),
    ]


async def test_results_as_json_have_every_promised_key(
    server: ScriptedApiServer, config: str
) -> None:
    server.will(*documents(MIXED), *documents(MIXED))

    bare = json.loads(await results(config, "--json"))["runs"][0]
    whole = json.loads(await results(config, "--runs", "--json"))["runs"][0]

    assert bare.keys() >= {
        *("name", "model", "agent", "k", "state", "reward", "passRate", "coverage", "passAtK"),
        *("tasks", "unscoredByCause", "usage"),
    }
    assert bare["reward"].keys() >= {
        *("mean", "standardError", "interval95", "lowerBound", "upperBound"),
    }
    assert whole.keys() - bare.keys() == {"rollouts"}
    assert whole["rollouts"][0].keys() >= {
        *("task", "rollout", "reward", "rewards", "cause", "attempts", "seconds", "usage"),
        "evidence",
    }


async def test_results_as_csv_are_rows_that_a_spreadsheet_only_reads(
    server: ScriptedApiServer, config: str
) -> None:
    run = KeptRun(entries=[scored(0, 1, 1), *lost(1, 1, "=cmd()")], k=1)
    server.will(*documents(run), *documents(run))

    tasks = list(csv.reader(io.StringIO(await results(config, "--csv"))))
    rollouts = list(csv.DictReader(io.StringIO(await results(config, "--csv", "--runs"))))

    assert tasks == [
        [
            *("run", "agent", "id", "category", "difficulty", "mean", "passRate", "samples"),
            *("unscored", "byVerifier.ticket_closed", "byVerifier.reason_recorded"),
        ],
        [
            *("crm-oracle", "oracle", "close_ticket", "tickets", "easy", "1.0", "1.0", "1", "0"),
            *("1.0", "1.0"),
        ],
        ["crm-oracle", "oracle", "escalate", "", "", "", "", "0", "1", "", ""],
    ]
    assert [row["message"] for row in rollouts] == ["", "'=cmd()"]


async def test_a_csv_without_rows_has_its_heading(server: ScriptedApiServer, config: str) -> None:
    server.will(listing(), gives({}))

    assert await results(config, "--csv") == (
        "run,agent,id,category,difficulty,mean,passRate,samples,unscored\n"
    )


async def test_a_ledger_that_was_changed_by_hand_gives_no_results(
    server: ScriptedApiServer, config: str
) -> None:
    shard = {**MIXED.shard, "data": {"0": "{}"}}
    server.will(listing(MIXED.run), gives(MIXED.plan or {}), listing(shard))

    ended = await wavetank("benchmarks", "results", "crm", "--kubeconfig", config)

    assert (ended.code, ended.out) == (1, "")
    assert "key '0': task: Field required. It was changed by hand" in ended.err


# --- runs -------------------------------------------------------------------------------------


async def test_runs_are_listed_with_what_is_in_their_way(
    server: ScriptedApiServer, config: str
) -> None:
    server.will(listing(MIXED.run, WAITING.run))

    ended = await wavetank("runs", "list", "-n", "bench", "--kubeconfig", config)

    assert ended.out == (
        "run         benchmark  agent   state     progress  unscored    mean  passed\n"
        "crm-nop     crm        nop     Waiting          -         -       -       -\n"
        "crm-oracle  crm        oracle  Complete       4/4         2  0.7500  0.5000\n"
        "crm-nop: Benchmark crm is being checked.\n"
    )


async def test_a_run_is_followed_to_its_end_line_by_line(
    server: ScriptedApiServer, config: str
) -> None:
    first = KeptRun(entries=[scored(0, 1, 1)])
    looks = [WAITING.run, first.run, first.run, MIXED.run]
    server.will(listing(MIXED.run), *(gives(renamed(run)) for run in looks))

    ended = await wavetank("runs", "watch", "crm-oracle", "-n", "bench", "--kubeconfig", config)

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "crm-oracle: Waiting (Benchmark crm is being checked.)\n"
        "crm-oracle: Running, 1/4, 0 active, 0 grading, mean 1.0000\n"
        "crm-oracle: Complete, 4/4, 2 unscored, mean 0.7500\n"
    )


def renamed(run: Manifest) -> Manifest:
    return {**run, "metadata": {**run["metadata"], "name": "crm-oracle"}}


async def test_a_run_is_followed_through_a_restart_of_the_api_server(
    server: ScriptedApiServer, config: str
) -> None:
    away = [refuses(503, "ServiceUnavailable", retry_after="0")] * TRIES
    server.will(listing(MIXED.run), *away, gives(MIXED.run))

    ended = await wavetank("runs", "watch", "--kubeconfig", config)

    assert (ended.code, ended.err) == (0, "")


async def test_each_change_of_a_run_is_a_line_of_json(
    server: ScriptedApiServer, config: str
) -> None:
    looks = [gives(renamed(run)) for run in (WAITING.run, WAITING.run, MIXED.run)]
    server.will(listing(MIXED.run), *looks)

    ended = await wavetank("runs", "watch", "crm-oracle", "--json", "--kubeconfig", config)

    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert [(row["state"], row["mean"], row["problem"]) for row in rows] == [
        ("Waiting", None, "Benchmark crm is being checked."),
        ("Complete", 0.75, None),
    ]


@pytest.mark.parametrize("reason", ["NoTasks", "SolutionsMissing", "NameConflict"])
async def test_following_ends_when_a_run_waits_in_vain(
    reason: str, server: ScriptedApiServer, config: str
) -> None:
    run = KeptRun(waits=(reason, "It will not come."))
    server.will(listing(run.run), gives(run.run))

    ended = await wavetank("runs", "watch", "--kubeconfig", config)

    assert (ended.code, ended.out) == (1, "crm-oracle: Waiting (It will not come.)\n")


async def test_following_ends_when_a_run_is_deleted(server: ScriptedApiServer, config: str) -> None:
    server.will(listing(MIXED.run), refuses(404, "NotFound"))

    ended = await wavetank("runs", "watch", "--kubeconfig", config)

    assert (ended.code, ended.out) == (1, "")


async def test_a_run_whose_k_was_raised_is_not_over(server: ScriptedApiServer, config: str) -> None:
    raised = {**MIXED.run, "metadata": {**MIXED.run["metadata"], "generation": 2}}
    server.will(listing(raised), gives(raised), gives(MIXED.run))

    ended = await wavetank("runs", "watch", "--kubeconfig", config)

    assert ended.code == 0
    assert [asked.path.rpartition("/")[2] for asked in server.asked] == [
        "runs",
        *["crm-oracle"] * 2,
    ]


# --- terminals --------------------------------------------------------------------------------


async def test_colours_are_for_terminals(server: ScriptedApiServer, config: str) -> None:
    server.will(*documents(MIXED), *documents(MIXED), *documents(MIXED))
    words = ("benchmarks", "results", "crm", "--kubeconfig", config)

    piped = await wavetank(*words)
    shown = await on_a_terminal(*words)
    asked_for_none = await on_a_terminal(*words, NO_COLOR="1")

    assert "\x1b" not in piped.out
    assert "\x1b[32mComplete\x1b[0m" in shown.out
    assert "\x1b[32m" not in asked_for_none.out
    assert [line.rstrip() for line in plain(shown.out).splitlines()] == piped.out.splitlines()


async def test_a_watched_run_has_a_bar(server: ScriptedApiServer, config: str) -> None:
    server.will(listing(MIXED.run), gives(MIXED.run))

    shown = await on_a_terminal("runs", "watch", "--kubeconfig", config, columns=80)

    lines = [line.rstrip() for line in plain(shown.out).splitlines()]
    assert lines[:2] == [
        "run         agent   state                   progress  unscored    mean",
        "crm-oracle  oracle  Complete  ━━━━━━━━━━━━       4/4         2  0.7500",
    ]


async def test_what_a_bundle_wrote_cannot_steer_a_terminal(
    server: ScriptedApiServer, config: str
) -> None:
    run = KeptRun(entries=[invalid(0, "\x1b[2J\x9b31m gone"), scored(1, 1, 1)], k=1)
    server.will(*documents(run))

    shown = await on_a_terminal("benchmarks", "results", "crm", "--runs", "--kubeconfig", config)

    assert "\x1b[2J" not in shown.out
    assert "RewardInvalid: \\x1b[2J\\x9b31m gone" in plain(shown.out)
