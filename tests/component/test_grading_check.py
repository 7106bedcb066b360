"""What a check finds: as a Job beside a real store, and called directly."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from wavetank.api.wire import (
    BundleRef,
    BundleSet,
    CheckKind,
    CheckReport,
    CheckResult,
    CheckSpec,
    EntityInfo,
    TaskInfo,
    VerifierInfo,
    WireFinding,
    digest_of,
)
from wavetank.bundles import pack
from wavetank.bundles.pack import BundleFile
from wavetank.core.causes import Cause
from wavetank.core.errors import Severity
from wavetank.testing.bundles import CONFIG, DESK, OF_EACH_KIND, write_bundle, write_linked
from wavetank.testing.grading import Job, Scene
from wavetank.testing.store import RunningStore, running_store
from wavetank.worlds.grading.check import check

UID = "7c1d0000-0000-0000-0000-000000000000"
NO_BUNDLES = BundleSet(agent=[BundleRef(digest=digest_of(b""))], grader=[])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStore]:
    with running_store(tmp_path_factory.mktemp("store") / "data") as store:
        yield store


def spec_of(
    bundles: BundleSet = NO_BUNDLES,
    kind: CheckKind = CheckKind.BENCHMARK,
    aliases: tuple[str, ...] = (),
    threshold: float = 1.0,
    url: str = "",
) -> CheckSpec:
    return CheckSpec(
        kind=kind,
        uid=UID,
        generation=2,
        bundles=bundles,
        aliases=list(aliases),
        pass_threshold=threshold,
        store=url,
    )


def desk(folder: Path, changes: Mapping[str, object]) -> Path:
    return write_bundle(folder / "crm", {**DESK, **changes})


def findings(result: CheckResult, severity: Severity = Severity.FAULT) -> list[tuple[str, str]]:
    return [(each.path, each.message) for each in result.findings if each.severity is severity]


async def test_a_good_benchmark_is_described_whole(store: RunningStore, tmp_path: Path) -> None:
    scene = Scene(store, tmp_path, write_linked(tmp_path), {"slack": tmp_path / "slack"})
    bundles = await scene.bundles()
    job = Job(tmp_path / "job", store, spec_of(bundles, aliases=("slack",), url=store.url))

    codes = job.run()

    report = CheckReport.model_validate_json(job.message_file.read_bytes())
    assert (codes, report.cause, report.message) == ((0, 0), None, "")
    async with store.client() as client:
        stored = await client.get(f"/v1/checks/{UID}/2/{report.sha256}")
    assert CheckResult.model_validate_json(stored) == CheckResult(
        kind=CheckKind.BENCHMARK,
        bundles=bundles,
        findings=[],
        entities=[EntityInfo(name="crm_accounts", rows=1), EntityInfo(name="crm_tickets", rows=2)],
        tools=["update_ticket", "list_tickets", "slack__post_message"],
        tasks=[
            TaskInfo(
                id="close_ticket",
                verifiers=["ticket_closed", "slack/message_posted"],
                initial_reward=0.0,
                has_solution=True,
            )
        ],
        verifiers=[
            VerifierInfo(name="ticket_closed", initial_score=0.0),
            VerifierInfo(name="slack/message_posted", initial_score=0.0),
        ],
        initial_mean=0.0,
    )


def test_all_faults_of_a_very_bad_benchmark_come_at_once(tmp_path: Path) -> None:
    main = desk(
        tmp_path,
        {
            "gateway-env.toml": """
[world]
name = "crm"

[dependencies.mail]
world = "mail"

[[tasks]]
id = "close_ticket"
prompt = "Close it."
verifiers = ["text", "two", "broken", "missing"]

[[tasks]]
id = "look"
prompt = "Look."
verifiers = ["always"]

[[tasks]]
id = "typo"
prompt = "Typo."
verifiers = ["alwais"]
""",
            "tools/handlers.py": "import nothing_like_this\n",
            "verifiers/text.sql": "SELECT 'yes'",
            "verifiers/two.sql": "SELECT 2",
            "verifiers/broken.sql": "SELECT 1 FROM crm_ticket",
            "verifiers/missing.sql": "SELECT 1 FROM crm_tickets WHERE id = 'T-99'",
            "verifiers/always.sql": "SELECT 1",
            "verifiers/writes.sql": "DELETE FROM crm_tickets",
            "verifiers/clock.sql": "SELECT date('now') > '2100'",
            "solutions/close_ticket.json": None,
        },
    )

    result = check(spec_of(), main, {})

    assert sorted(findings(result)) == [
        (
            "gateway-env.toml: dependencies.mail",
            "the bundle links 'mail', which spec.dependencies does not declare. Declared: none.",
        ),
        (
            "gateway-env.toml: tasks",
            "TrivialTask: 'look' has the reward 1 before the agent acts, and 1 passes. "
            "Add a verifier that the untouched state fails.",
        ),
        (
            "gateway-env.toml: tasks[2].verifiers[0]",
            "no verifier is named 'alwais'. Name one of: always, broken, clock, missing, text, "
            "ticket_closed, two, writes.",
        ),
        (
            "tools/handlers.py",
            "importing it raised at line 1: ModuleNotFoundError: No module named "
            "'nothing_like_this'",
        ),
        (
            "verifiers/broken.sql",
            "VerifierFailed on the untouched state: no such table: crm_ticket",
        ),
        (
            "verifiers/clock.sql",
            "VerifierFailed on the untouched state: it asks for the time of the machine: compare "
            "with stored times",
        ),
        ("verifiers/text.sql", "RewardInvalid on the untouched state: not a number in 0..1: 'yes'"),
        ("verifiers/two.sql", "RewardInvalid on the untouched state: not a number in 0..1: 2"),
        (
            "verifiers/writes.sql",
            "VerifierFailed on the untouched state: not authorized; DELETE crm_tickets is refused",
        ),
    ]
    assert sorted(findings(result, Severity.WARNING)) == [
        (
            "verifiers/always.sql",
            "scores 1.0 on the untouched state: it grades nothing, or guards.",
        ),
        (
            "verifiers/missing.sql",
            "RewardMissing on the untouched state: the statement answered no row.",
        ),
    ]
    assert [(task.id, task.initial_reward) for task in result.tasks] == [
        ("close_ticket", None),
        ("look", 1.0),
        ("typo", None),
    ]
    assert result.initial_mean is None
    assert VerifierInfo(name="text", initial_score=None, cause=Cause.REWARD_INVALID) in (
        result.verifiers
    )


def test_verifiers_of_each_kind_have_an_initial_score(tmp_path: Path) -> None:
    main = desk(tmp_path, OF_EACH_KIND)

    result = check(spec_of(), main, {})

    assert findings(result) == []
    assert result.verifiers == [
        VerifierInfo(name="one_call", initial_score=0.0),
        VerifierInfo(name="ticket_closed", initial_score=0.0),
        VerifierInfo(name="ticket_recorded", initial_score=0.5),
    ]


async def test_a_benchmarks_own_verifier_replaces_one_of_the_world_of_any_kind(
    store: RunningStore, tmp_path: Path
) -> None:
    scene = Scene(store, tmp_path, desk(tmp_path, OF_EACH_KIND))
    bundles = await scene.bundles()
    own = {
        f"verifiers/{name}.sql": BundleFile(0o644, b"SELECT 0.25")
        for name in ("one_call", "ticket_recorded", "ticket_closed")
    }
    overlay = BundleRef(digest=pack.digest_of(own))
    async with store.client() as client:
        await client.put(f"/v1/bundles/{overlay.digest}", pack.pack(own))
    bundles = bundles.model_copy(update={"grader": [*bundles.grader, overlay]})
    job = Job(tmp_path / "job", store, spec_of(bundles, url=store.url))

    assert job.run() == (0, 0)

    report = CheckReport.model_validate_json(job.message_file.read_bytes())
    async with store.client() as client:
        stored = await client.get(f"/v1/checks/{UID}/2/{report.sha256}")
    result = CheckResult.model_validate_json(stored)
    assert findings(result) == []
    assert result.verifiers == [
        VerifierInfo(name=name, initial_score=0.25)
        for name in ("one_call", "ticket_closed", "ticket_recorded")
    ]


def test_what_is_wrong_with_verifiers_of_each_kind_is_told_once(tmp_path: Path) -> None:
    main = desk(
        tmp_path,
        {
            "verifiers/ticket_closed.json": "{}",
            "verifiers/empty.sql": "",
            "verifiers/asserted.json": {"assertions": [{"entity": "crm_tickets", "where": {}}]},
            "verifiers/always.json": {
                "assertions": [{"entity": "crm_tickets", "where": {}, "count": 2}]
            },
            "verifiers/syntax.py": "def verify(",
            "verifiers/raises.py": "def verify(world, trajectory):\n    return 1 / 0\n",
            "verifiers/imports.py": "import nothing_like_this\n\ndef verify(w, t): ...\n",
            "verifiers/none.py": "def verify(world, trajectory): ...\n",
        },
    )

    result = check(spec_of(), main, {})

    assert sorted(findings(result)) == [
        (
            "verifiers/asserted.json: assertions[0]",
            "this must have either 'expect' or 'count', and one of them only.",
        ),
        (
            "verifiers/empty.sql",
            "the file is empty. Write one SQL statement that returns a number in 0..1.",
        ),
        (
            "verifiers/imports.py",
            "VerifierFailed on the untouched state: at line 1: ModuleNotFoundError: No module "
            "named 'nothing_like_this'",
        ),
        (
            "verifiers/raises.py",
            "VerifierFailed on the untouched state: at line 2: ZeroDivisionError: division by zero",
        ),
        ("verifiers/syntax.py", "this is not Python: line 1: '(' was never closed."),
        (
            "verifiers/ticket_closed.json: assertions",
            "there is none. Name at least one row that must be there.",
        ),
        (
            "verifiers/ticket_closed.sql",
            "there is a ticket_closed.json already. One verifier has one file.",
        ),
    ]
    assert sorted(findings(result, Severity.WARNING)) == [
        (
            "verifiers/always.json",
            "scores 1.0 on the untouched state: it grades nothing, or guards.",
        ),
        ("verifiers/none.py", "RewardMissing on the untouched state: verify returned None."),
    ]


def test_a_python_check_of_a_linked_world_is_run_for_each_of_its_tasks(tmp_path: Path) -> None:
    main = write_linked(tmp_path)
    write_bundle(
        tmp_path / "slack",
        {
            "verifiers/message_posted.sql": None,
            "verifiers/message_posted.py": "def verify(world, trajectory):\n"
            "    return trajectory.task == 'close_ticket' and len(world.find('messages')) > 1\n",
        },
    )
    (tmp_path / "slack/verifiers/message_posted.sql").unlink()

    result = check(spec_of(aliases=("slack",)), main, {"slack": tmp_path / "slack"})

    assert findings(result) == []
    assert VerifierInfo(name="slack/message_posted", initial_score=0.0) in result.verifiers
    assert result.tasks[0].initial_reward == 0.0


def test_verifiers_are_not_run_on_data_that_is_at_fault(tmp_path: Path) -> None:
    main = desk(tmp_path, {"data/initial.json": {"crm_tickets": [{"id": 7}]}})

    result = check(spec_of(), main, {})

    assert all(path.startswith("data/initial.json") for path, _ in findings(result))
    assert result.verifiers == [VerifierInfo(name="ticket_closed", initial_score=None)]
    assert (result.tasks[0].initial_reward, result.initial_mean) == (None, None)


@pytest.mark.parametrize(
    ("handlers", "words"),
    [
        ("import os\nos._exit(0)\n", "importing it did not end: its process ended by itself."),
        (
            "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
            "importing it did not end: its process ended by signal SIGSEGV.",
        ),
        ("import sys\nsys.exit('no')\n", "importing it raised at line 2: SystemExit: no"),
        ("x = bytearray(1 << 40)\n", "importing it raised at line 1: MemoryError"),
        ("def f(:\n", "importing it raised at line 1: SyntaxError: invalid syntax"),
    ],
)
def test_handlers_that_cannot_be_imported_are_a_fault(
    tmp_path: Path, handlers: str, words: str
) -> None:
    result = check(spec_of(), desk(tmp_path, {"tools/handlers.py": handlers}), {})

    assert findings(result) == [("tools/handlers.py", words)]
    assert result.tools == []
    assert result.tasks[0].initial_reward == 0.0


def test_a_lower_pass_threshold_makes_more_tasks_trivial(tmp_path: Path) -> None:
    main = desk(tmp_path, {"verifiers/ticket_closed.sql": "SELECT 0.5"})

    assert findings(check(spec_of(threshold=0.51), main, {})) == []
    assert [path for path, _ in findings(check(spec_of(threshold=0.5), main, {}))] == [
        "gateway-env.toml: tasks"
    ]


def test_a_verifier_that_asks_for_the_session_is_run_for_each_task(tmp_path: Path) -> None:
    config = CONFIG + '[[tasks]]\nid = "other"\nprompt = "Other."\nverifiers = ["ticket_closed"]\n'
    main = desk(
        tmp_path,
        {
            "gateway-env.toml": config,
            "verifiers/ticket_closed.sql": "SELECT task = 'other' AND final_answer IS NULL "
            "AND calls = 0 FROM _session",
        },
    )

    result = check(spec_of(), main, {})

    assert [task.initial_reward for task in result.tasks] == [0.0, 1.0]
    assert (result.verifiers[0].initial_score, result.initial_mean) == (0.0, 0.5)


def test_a_world_needs_no_task_and_its_verifiers_are_run(tmp_path: Path) -> None:
    main = write_bundle(
        tmp_path / "crm",
        {
            **DESK,
            "gateway-env.toml": '[world]\nname = "crm"\n',
            "solutions/close_ticket.json": None,
            "verifiers/broken.sql": "SELECT colour",
        },
    )

    result = check(spec_of(kind=CheckKind.WORLD), main, {})

    assert findings(result) == [
        ("verifiers/broken.sql", "VerifierFailed on the untouched state: no such column: colour")
    ]
    assert (result.tasks, result.initial_mean) == ([], None)


def test_a_world_lists_its_own_tools_only(tmp_path: Path) -> None:
    main = write_linked(tmp_path)

    result = check(
        spec_of(kind=CheckKind.WORLD, aliases=("slack",)), main, {"slack": tmp_path / "slack"}
    )

    assert result.tools == ["update_ticket", "list_tickets"]


def test_a_benchmark_without_a_task_is_at_fault(tmp_path: Path) -> None:
    main = desk(
        tmp_path,
        {"gateway-env.toml": '[world]\nname = "crm"\n', "solutions/close_ticket.json": None},
    )

    assert findings(check(spec_of(), main, {})) == [
        (
            "gateway-env.toml: tasks",
            "there is no task. Add one, with a prompt and at least one verifier.",
        )
    ]


def test_a_bundle_with_more_faults_than_anyone_reads_is_cut(tmp_path: Path) -> None:
    more = {f"verifiers/v{n}.sql": "SELECT nothing" for n in range(600)}

    result = check(spec_of(), desk(tmp_path, more), {})

    assert len(result.findings) == 501
    assert result.findings[-1] == WireFinding(
        severity=Severity.FAULT, path="bundle", message="and 100 findings more."
    )


async def test_a_bundle_that_is_not_in_the_store_cannot_be_checked(
    store: RunningStore, tmp_path: Path
) -> None:
    job = Job(tmp_path / "job", store, spec_of(url=store.url))

    codes = job.run()

    report = CheckReport.model_validate_json(job.message_file.read_bytes())
    assert (codes, report.cause) == ((1, 0), Cause.VERIFIER_FAILED)
    assert report.message.startswith("/v1/bundles/sha256:")


async def test_a_result_of_other_bundles_is_refused(store: RunningStore, tmp_path: Path) -> None:
    scene = Scene(store, tmp_path, write_bundle(tmp_path / "crm", DESK))
    spec = spec_of(await scene.bundles(), url=store.url)
    job = Job(tmp_path / "job", store, spec)
    forged = CheckResult(kind=spec.kind, bundles=NO_BUNDLES, findings=[])
    (job.outbox / "check.json").write_bytes(forged.canonical())
    (job.outbox / "done").touch()

    assert job.start_judge().wait(timeout=30) == 0

    report = CheckReport.model_validate_json(job.message_file.read_bytes())
    assert report.cause is Cause.VERIFIER_FAILED
    assert report.message == "the result is refused: it is of another kind or of other bundles"
