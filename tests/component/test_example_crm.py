"""Example 01, played as a rollout Pod and a verifier Job play it: every program is the real one."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from wavetank.api.plan import Plan
from wavetank.api.results import RunFacts, document, figures_of
from wavetank.api.wire import (
    SESSION_ENV,
    SOLUTION_ENV,
    TOKEN_FILE_ENV,
    BundleSet,
    CheckKind,
    CheckReport,
    CheckResult,
    CheckSpec,
    GradeMember,
    GradeRecord,
    GradeRecords,
    GradeSpec,
    SessionSpec,
    WorldMessage,
)
from wavetank.bundles.world import linked_folders, read
from wavetank.core.identity import AttemptKey, ordinal_of
from wavetank.core.observed import Ledger, Record, ScoreSeen
from wavetank.manifests.rollout import agent_choice
from wavetank.testing.grading import Job, Scene
from wavetank.testing.store import RunningStore, running_store

EXAMPLE = Path(__file__).parents[2] / "examples" / "01-crm"
AGENTS = ("oracle", "nop", "scripted:partial")
K = 3
"""Of the example's Runs."""

CRM_TOOLS = [
    *("list_accounts", "get_account", "list_staff", "list_tickets", "search_tickets", "get_ticket"),
    *("update_ticket", "merge_tickets", "add_comment", "set_account_status"),
]
SLACK_TOOLS = [
    *("slack__list_channels", "slack__list_members", "slack__read_channel"),
    "slack__post_message",
]


@dataclass(frozen=True)
class Stage:
    """The example's bundles in a store."""

    scene: Scene
    bundles: BundleSet
    tasks: list[str]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    root = tmp_path_factory.mktemp("crm")
    for bundle in ("crm-bench", "slack-world"):
        shutil.copytree(EXAMPLE / bundle, root / bundle)
    with running_store(root / "store") as store:
        main = root / "crm-bench"
        scene = Scene(store, root / "scene", main, linked_folders(main))
        tasks = [task.id for task in read(main, scene.linked).tasks]
        yield Stage(scene, asyncio.run(scene.bundles()), tasks)


@pytest.fixture(scope="module")
def result(stage: Stage) -> CheckResult:
    """What the check of the benchmark found."""
    spec = CheckSpec(
        kind=CheckKind.BENCHMARK,
        uid="0d7e",
        generation=1,
        bundles=stage.bundles,
        aliases=["slack"],
        store=stage.scene.store.url,
    )
    job = Job(stage.scene.folder / "check", stage.scene.store, spec)
    assert job.run() == (0, 0)
    report = CheckReport.model_validate_json(job.message_file.read_bytes())
    assert report.cause is None, report.message
    path = f"/v1/checks/0d7e/1/{report.sha256}"
    return CheckResult.model_validate_json(asyncio.run(get(stage.scene.store, path)))


async def get(store: RunningStore, path: str) -> bytes:
    async with store.client() as client:
        return await client.get(path)


@pytest.fixture(scope="module")
def records(stage: Stage) -> dict[str, list[GradeRecord]]:
    """Each agent's records, one for each task in the benchmark's order."""
    played = [(agent, task) for agent in AGENTS for task in stage.tasks]
    members = [play(stage, agent, task, place) for place, (agent, task) in enumerate(played)]
    spec = GradeSpec(
        run=stage.scene.run,
        generation=0,
        members=members,
        bundles=BundleSet(agent=stage.bundles.agent, grader=stage.bundles.grader),
        store=stage.scene.store.url,
    )
    job = Job(stage.scene.folder / "job", stage.scene.store, spec)
    assert job.run() == (0, 0)
    report = job.report
    if report.records is None:
        path = f"/v1/runs/{stage.scene.run}/grades/{report.sha256}"
        graded = GradeRecords.model_validate_json(asyncio.run(get(stage.scene.store, path)))
    else:
        graded = GradeRecords(records=report.records)
    by_ordinal = {record.ordinal: record for record in graded.records}
    count = len(stage.tasks)
    return {
        agent: [by_ordinal[place * count + task] for task in range(count)]
        for place, agent in enumerate(AGENTS)
    }


def play(stage: Stage, agent: str, task: str, ordinal: int) -> GradeMember:
    """Run one rollout's programs to their end; return what was sealed as a member to grade."""
    scene, folder = stage.scene, stage.scene.folder / f"rollout-{ordinal}"
    (folder / "state").mkdir(parents=True)
    (folder / "token").write_text(scene.store.token())
    port = free_port()
    session = SessionSpec(
        run=scene.run,
        ordinal=ordinal,
        attempt=1,
        task=task,
        rollout=0,
        seed=7,
        deadline_seconds=60,
        bundles=stage.bundles.agent,
        store=scene.store.url,
    )
    choice = agent_choice(agent, task, "", stage.bundles, scene.store.url)
    calls = {"WAVETANK_SOLUTION_FILE": str(folder / "calls.json")}
    if choice.solution is not None:
        run(
            "wavetank.agents.solution",
            folder,
            {SOLUTION_ENV: choice.solution.canonical().decode(), **calls},
        )
    world = start(
        "wavetank.worlds",
        folder,
        {
            SESSION_ENV: session.canonical().decode(),
            "WAVETANK_STATE_DIR": str(folder / "state"),
            "WAVETANK_HOST": "127.0.0.1",
            "WAVETANK_PORT": str(port),
        },
    )
    url = {"WAVETANK_WORLD_URL": f"http://127.0.0.1:{port}"}
    command = (sys.executable, *choice.command[1:])
    run("wavetank.agents.wrapper", folder, {**url, **calls}, "--", *command)
    world.terminate()
    assert world.wait(timeout=30) == 0
    message = WorldMessage.model_validate_json((folder / "message").read_bytes())
    assert message.seal is not None, message
    assert message.seal_digest is not None
    return GradeMember(
        ordinal=ordinal,
        attempt=1,
        task=task,
        seal=message.seal_digest,
        snapshot=message.seal.snapshot,
    )


def start(
    module: str, folder: Path, environment: dict[str, str], *arguments: str
) -> subprocess.Popen[bytes]:
    files = {
        TOKEN_FILE_ENV: str(folder / "token"),
        "WAVETANK_TERMINATION_LOG": str(folder / "message"),
    }
    with (folder / f"{module}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env={**files, **environment},
            stdout=log,
            stderr=log,
        )


def run(module: str, folder: Path, environment: dict[str, str], *arguments: str) -> None:
    code = start(module, folder, environment, *arguments).wait(timeout=60)
    assert code == 0, (folder / f"{module}.log").read_text()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_check_finds_guards_and_no_fault(result: CheckResult):
    # What must not change is 1 from the start: the check says so, and lets it be.
    assert [(finding.severity.value, finding.path) for finding in result.findings] == [
        ("warning", f"verifiers/{guard}.sql")
        for guard in ("nothing_changed", "only_t7_changed", "rest_of_desk_kept")
    ] + [("warning", "linked/slack/verifiers/other_channels_quiet.sql")]
    assert result.tools == [*CRM_TOOLS, *SLACK_TOOLS]
    assert [(entity.name, entity.rows) for entity in result.entities] == [
        ("crm_accounts", 12),
        ("crm_staff", 5),
        ("crm_tickets", 44),
        ("crm_comments", 21),
    ]
    assert result.initial_mean == pytest.approx(0.3)


def test_the_oracle_reaches_1_in_every_task(records: dict[str, list[GradeRecord]]):
    assert [(record.task, record.reward) for record in records["oracle"]] == [
        ("close_ticket", 1.0),
        ("largest_backlog", 1.0),
        ("route_urgent", 1.0),
        ("merge_duplicates", 1.0),
        ("escalate", 1.0),
    ]


def test_nop_gets_what_the_check_found_and_passes_nowhere(
    result: CheckResult, records: dict[str, list[GradeRecord]]
):
    initial = [(task.id, task.initial_reward) for task in result.tasks]

    assert [(record.task, record.reward) for record in records["nop"]] == initial
    assert all(reward is not None and reward < 1 for _, reward in initial)


def test_the_partial_script_gets_part_of_each_task(records: dict[str, list[GradeRecord]]):
    scores = {
        record.task: [score.value for score in record.scores]
        for record in records["scripted:partial"]
    }

    assert scores == {
        "close_ticket": [1.0, 0.0, 1.0],
        "largest_backlog": [0.5, 1.0],
        "route_urgent": [0.5],
        "merge_duplicates": [0.5, 0.0, 1.0],
        "escalate": [1.0, 1.0, 1.0],
    }


def test_results_are_the_expected_ones(result: CheckResult, records: dict[str, list[GradeRecord]]):
    results = {agent: results_of(result, agent, records[agent]) for agent in AGENTS}

    assert results == json.loads((EXAMPLE / "expected-results.json").read_text())


def results_of(result: CheckResult, agent: str, graded: list[GradeRecord]) -> object:
    """The results of a Run in which each of k rollouts came out like the one that was played."""
    plan = Plan(
        run="0c1a",
        benchmark="crm",
        benchmark_generation=1,
        tasks=result.tasks,
        bundles=result.bundles,
    )
    ledger = {
        ordinal: Record(
            AttemptKey(ordinal, 1),
            record.reward,
            record.cause,
            scores=tuple(ScoreSeen(score.name, score.value) for score in record.scores),
        )
        for rollout in range(K)
        for place, record in enumerate(graded)
        for ordinal in [ordinal_of(rollout, place, len(graded))]
    }
    name = f"crm-{agent.partition(':')[0]}"
    facts = RunFacts(name=name, agent=agent, k=K, state="Complete")
    return document(facts, figures_of(plan, K, Ledger(records=ledger)))
