"""grade and judge as real processes beside a real store."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wavetank.api.wire import GradeRecord, GradeRecords, GradeReport, Score, digest_of
from wavetank.core.causes import Cause
from wavetank.testing.bundles import DESK, write_bundle, write_linked
from wavetank.testing.grading import SEAL, Job, Scene, wait_until
from wavetank.testing.store import RunningStore, running_store
from wavetank.worlds.tables import STATE_BYTES

MIB = 1024 * 1024
CLOSE = ("", "UPDATE crm_tickets SET status = 'closed' WHERE id = 'T-7'")
ENDLESS_IF_CLOSED = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n "
    "WHERE EXISTS (SELECT 1 FROM crm_tickets WHERE status = 'closed')) SELECT COUNT(*) = 1 FROM n"
)
POST = ("slack", "INSERT INTO messages VALUES (2, '#security', 'locked')")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStore]:
    with running_store(tmp_path_factory.mktemp("store") / "data") as store:
        yield store


@pytest.fixture
def scene(store: RunningStore, tmp_path: Path) -> Scene:
    return Scene(store, tmp_path, write_bundle(tmp_path / "crm", DESK))


def desk(folder: Path, **verifiers: str) -> Path:
    """Write the desk with these verifiers, all of its one task."""
    names = ", ".join(f'"{name}"' for name in verifiers)
    config = str(DESK["gateway-env.toml"]).replace('"ticket_closed"', names)
    files = {f"verifiers/{name}.sql": text for name, text in verifiers.items()}
    return write_bundle(folder, {**DESK, "gateway-env.toml": config, **files})


def record(job: Job, ordinal: int, **scores: float) -> GradeRecord:
    """Return the record that is right for these scores."""
    return GradeRecord(
        ordinal=ordinal,
        attempt=1,
        task="close_ticket",
        seal=SEAL,
        grader=job.spec.bundles.digest(),
        reward=sum(scores.values()) / len(scores),
        scores=[Score(name=name, value=value) for name, value in scores.items()],
    )


async def test_sixteen_members_are_graded_and_their_records_go_through_the_store(
    store: RunningStore, tmp_path: Path
) -> None:
    scene = Scene(store, tmp_path, write_linked(tmp_path), {"slack": tmp_path / "slack"})
    members = [await scene.member(n, [CLOSE] * (n % 2) + [POST] * (n // 2 % 2)) for n in range(16)]
    job = await scene.job(*members)

    codes = job.run()

    expected = [
        record(job, n, **{"ticket_closed": n % 2, "slack/message_posted": n // 2 % 2})
        for n in range(16)
    ]
    assert codes == (0, 0)
    assert len(job.message_file.read_bytes()) <= 4096
    assert job.report == GradeReport(
        sha256=GradeRecords(records=expected).digest(), n=16, records=None, message=""
    )
    async with store.client() as client:
        stored = await client.get(f"/v1/runs/{scene.run}/grades/{job.report.sha256}")
    assert GradeRecords.model_validate_json(stored).records == expected


async def test_few_records_travel_in_the_message(scene: Scene) -> None:
    job = await scene.job(await scene.member(3, [CLOSE]))

    job.run()

    expected = [record(job, 3, ticket_closed=1.0)]
    assert job.report == GradeReport(
        sha256=GradeRecords(records=expected).digest(), n=1, records=expected, message=""
    )


async def test_a_verifier_without_a_number_leaves_the_reward_null_with_the_first_cause(
    store: RunningStore, tmp_path: Path
) -> None:
    main = desk(
        tmp_path / "crm",
        ticket_closed="SELECT 1",
        text="SELECT 'yes'",
        gone="SELECT NULL",
        broken="SELECT 1 FROM nowhere",
    )
    scene = Scene(store, tmp_path, main)
    job = await scene.job(await scene.member(0))

    job.run()

    [found] = job.report.records or []
    assert (found.reward, found.cause) == (None, Cause.REWARD_INVALID)
    assert [(score.name, score.value, score.cause, score.message) for score in found.scores] == [
        ("ticket_closed", 1.0, None, ""),
        ("text", None, Cause.REWARD_INVALID, "not a number in 0..1: 'yes'"),
        ("gone", None, Cause.REWARD_MISSING, "the statement answered NULL"),
        ("broken", None, Cause.VERIFIER_FAILED, "no such table: nowhere"),
    ]


async def test_a_verifier_that_cannot_be_interrupted_costs_its_own_score_only(
    store: RunningStore, tmp_path: Path
) -> None:
    main = desk(
        tmp_path / "crm",
        before="SELECT 0.5",
        # One step of SQLite's machine that takes hours: between two steps the clock is looked at.
        stuck="SELECT instr(printf('%.*c', 9999999, 'a'), printf('%.*c', 4999999, 'a') || 'b')",
        memory="WITH RECURSIVE n(x) AS (SELECT printf('%.*c', 9999999, 'a') UNION ALL "
        "SELECT x || length(x) FROM n LIMIT 99) SELECT COUNT(DISTINCT x) FROM n",
        after="SELECT 1",
    )
    scene = Scene(store, tmp_path, main)
    job = await scene.job(await scene.member(0), await scene.member(1), seconds=1)

    job.run()

    for found in job.report.records or []:
        assert [(score.name, score.value, score.cause) for score in found.scores] == [
            ("before", 0.5, None),
            ("stuck", None, Cause.VERIFIER_TIMEOUT),
            ("memory", None, Cause.VERIFIER_FAILED),
            ("after", 1.0, None),
        ]
        assert found.scores[2].message == "out of memory"
        assert (found.reward, found.cause) == (None, Cause.VERIFIER_TIMEOUT)
    assert job.report.n == 2


async def test_assertions_on_text_made_to_take_for_ever_are_timed_out(
    store: RunningStore, tmp_path: Path
) -> None:
    main = desk(tmp_path / "crm", before="SELECT 1", slow="SELECT 1", after="SELECT 0")
    expect = {"close_reason": {"matches": "^(a+)+$"}}
    asserted = [{"entity": "crm_tickets", "where": {"id": "T-7"}, "expect": expect}]
    (main / "verifiers/slow.sql").unlink()
    (main / "verifiers/slow.json").write_text(json.dumps({"assertions": asserted}))
    scene = Scene(store, tmp_path, main)
    trap = ("", "UPDATE crm_tickets SET close_reason = printf('%.*c!', 60, 'a')")
    plain = ("", "UPDATE crm_tickets SET close_reason = 'aaa'")
    job = await scene.job(await scene.member(0, [trap]), await scene.member(1, [plain]), seconds=1)

    job.run()

    assert [
        [(score.name, score.value, score.cause) for score in found.scores]
        for found in job.report.records or []
    ] == [
        [("before", 1.0, None), ("slow", None, Cause.VERIFIER_TIMEOUT), ("after", 0.0, None)],
        [("before", 1.0, None), ("slow", 1.0, None), ("after", 0.0, None)],
    ]


# What people's code could try against the record of another rollout, and against its own.
HOSTILE = """
import os, signal
from pathlib import Path

def attempts(out):
    yield lambda: os.kill(os.getppid(), signal.SIGKILL)
    yield lambda: (out / "done").touch()
    yield lambda: (out / "0.1.json").unlink()
    yield lambda: os.rename(out / "0.1.json", out / "1.1.json")
    yield lambda: (out / "1.1.json").symlink_to("0.1.json")
    yield lambda: (out / "lock").unlink()
    yield lambda: (out.parent / "in" / "ready").unlink()

def verify(world, trajectory):
    refused = 0
    for attempt in attempts(Path({out!r})):
        try:
            attempt()
        except PermissionError:
            refused += 1
    return refused / 7
"""


async def test_a_hostile_python_check_leaves_all_records_as_they_are(
    store: RunningStore, tmp_path: Path
) -> None:
    main = desk(tmp_path / "crm", ticket_closed=str(DESK["verifiers/ticket_closed.sql"]), evil="")
    (main / "verifiers/evil.sql").unlink()
    out = str(tmp_path / "job" / "out")
    (main / "verifiers/evil.py").write_text(HOSTILE.replace("{out!r}", repr(out)))
    scene = Scene(store, tmp_path, main)
    members = [await scene.member(n, [CLOSE] * (n % 2)) for n in range(3)]
    job = await scene.job(*members)

    codes = job.run()

    assert codes == (0, 0)
    # It did try: each attempt was refused, which is what it answers.
    assert job.report.records == [
        record(job, n, ticket_closed=float(n % 2), evil=1.0) for n in range(3)
    ]


async def test_a_grade_that_is_killed_leaves_what_it_finished(
    store: RunningStore, tmp_path: Path
) -> None:
    main = desk(tmp_path / "crm", endless_if_closed=ENDLESS_IF_CLOSED)
    scene = Scene(store, tmp_path, main)
    members = [await scene.member(n, [CLOSE] * (n == 1)) for n in range(3)]
    job = await scene.job(*members, seconds=60)

    judge, grade = job.start_judge(), job.start_grade()
    wait_until((job.outbox / "0.1.json").exists)
    grade.send_signal(signal.SIGKILL)
    grade.wait()

    assert judge.wait(timeout=20) == 0
    assert job.report.records == [record(job, 0, endless_if_closed=1.0)]
    assert job.report.message == "grade died"


async def test_a_child_that_is_killed_costs_its_member_only(
    store: RunningStore, tmp_path: Path
) -> None:
    main = desk(tmp_path / "crm", endless_if_closed=ENDLESS_IF_CLOSED)
    scene = Scene(store, tmp_path, main)
    members = [await scene.member(n, [CLOSE] * (n == 1)) for n in range(3)]
    job = await scene.job(*members, seconds=60)

    judge, grade = job.start_judge(), job.start_grade()
    wait_until((job.outbox / "0.1.json").exists)
    children = Path(f"/proc/{grade.pid}/task/{grade.pid}/children")
    wait_until(lambda: bool(children.read_text()))
    os.kill(int(children.read_text().split()[0]), signal.SIGKILL)

    assert (grade.wait(timeout=30), judge.wait(timeout=20)) == (0, 0)
    assert job.report.records == [record(job, n, endless_if_closed=1.0) for n in (0, 2)]


async def test_a_judge_that_is_told_to_stop_reports_what_is_finished(
    store: RunningStore, tmp_path: Path
) -> None:
    scene = Scene(store, tmp_path, write_bundle(tmp_path / "crm", DESK))
    job = await scene.job(await scene.member(0))

    judge = job.start_judge()
    wait_until((job.folder / "in" / "ready").exists)
    judge.send_signal(signal.SIGTERM)

    assert judge.wait(timeout=20) == 0
    assert job.report.message == "judge was told to stop before grade was done"


async def test_records_wait_for_a_store_that_is_away(tmp_path: Path) -> None:
    main = desk(tmp_path / "crm", **{f"verifier_{n}": "SELECT 1" for n in range(50)})
    with running_store(tmp_path / "store") as store:
        scene = Scene(store, tmp_path, main)
        job = await scene.job(await scene.member(0))
        judge = job.start_judge()
        wait_until((job.folder / "in" / "ready").exists)
        store.stop()

        assert job.start_grade().wait(timeout=30) == 0
        assert not job.message_file.exists()
        store.start()

        assert judge.wait(timeout=30) == 0
        assert (job.report.n, job.report.records) == (1, None)
        async with store.client() as client:
            assert await client.exists(f"/v1/runs/{scene.run}/grades/{job.report.sha256}")


async def test_judge_waits_for_a_store_that_is_away_at_its_start(tmp_path: Path) -> None:
    with running_store(tmp_path / "store") as store:
        scene = Scene(store, tmp_path, write_bundle(tmp_path / "crm", DESK))
        job = await scene.job(await scene.member(0, [CLOSE]))
        store.stop()
        judge, grade = job.start_judge(), job.start_grade()
        wait_until((job.folder / "in" / "lock").exists)
        store.start()

        assert (grade.wait(timeout=30), judge.wait(timeout=30)) == (0, 0)
        assert job.report.n == 1


async def test_a_store_that_stays_away_leaves_no_record_and_both_end(tmp_path: Path) -> None:
    with running_store(tmp_path / "store") as store:
        scene = Scene(store, tmp_path, write_bundle(tmp_path / "crm", DESK))
        job = await scene.job(await scene.member(0))
    job.seconds = 1

    codes = job.run()

    assert codes == (1, 0)
    assert (job.report.n, job.report.records) == (0, [])
    assert job.report.cause is Cause.STORE_UNAVAILABLE
    assert "/v1/bundles/" in job.report.message


CHECKS_A_LARGE_STATE = """\
def verify(world, trajectory):
    [counted] = world.sql("SELECT COUNT(*) AS n FROM crm_accounts")
    return counted["n"] > 100 and world.find_one("crm_accounts", id="x7") is not None
"""


async def test_a_state_as_large_as_can_be_is_graded(store: RunningStore, tmp_path: Path) -> None:
    main = desk(
        tmp_path / "crm",
        rows="SELECT COUNT(*) > 100 FROM crm_accounts",
        sorted="SELECT COUNT(*) = 2 FROM (SELECT DISTINCT name FROM crm_accounts)",
        asserted="SELECT 0",
        checked="SELECT 0",
    )
    for name in ("asserted", "checked"):
        (main / f"verifiers/{name}.sql").unlink()
    asserted = {"entity": "crm_accounts", "where": {"name": {"contains": "xyz"}}, "count": 0}
    (main / "verifiers/asserted.json").write_text(json.dumps({"assertions": [asserted]}))
    (main / "verifiers/checked.py").write_text(CHECKS_A_LARGE_STATE)
    rows, length = STATE_BYTES // MIB - 1, MIB - 9000
    fill = (
        f"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT {rows}) "  # noqa: S608
        f"INSERT INTO crm_accounts SELECT 'x' || x, printf('%.*c', {length}, 'x') FROM n"
    )
    scene = Scene(store, tmp_path, main)
    # Of one letter, so that it packs as no honest state does.
    job = await scene.job(await scene.member(0, [("", fill)]))

    job.run()

    assert job.report.records == [record(job, 0, rows=1.0, sorted=1.0, asserted=1.0, checked=1.0)]


async def test_grade_ends_when_judge_was_over_before_it_came(scene: Scene) -> None:
    job = await scene.job(await scene.member(0))
    (job.folder / "token").write_text("no token")

    assert job.start_judge().wait(timeout=30) == 0
    assert job.start_grade().wait(timeout=30) == 1
    assert "401" in job.report.message


async def test_a_member_whose_snapshot_is_not_the_sealed_one_has_no_record(scene: Scene) -> None:
    good = await scene.member(0, [CLOSE])
    other = (await scene.member(1)).model_copy(update={"snapshot": digest_of(b"other")})
    job = await scene.job(good, other, good.model_copy(update={"ordinal": 2}))

    job.run()

    assert job.report.records == [record(job, 0, ticket_closed=1.0)]
    assert "1.1: the snapshot has the digest" in job.report.message
    assert "2.1: /v1/runs/" in job.report.message


async def test_a_message_stays_below_what_the_kubelet_keeps(
    store: RunningStore, tmp_path: Path
) -> None:
    scene = Scene(store, tmp_path, write_bundle(tmp_path / "crm", DESK))
    good = [await scene.member(n) for n in range(5)]
    gone = [good[0].model_copy(update={"ordinal": n}) for n in range(10, 21)]
    job = await scene.job(*good, *gone)

    job.run()

    assert job.report.n == 5
    assert job.report.message.endswith("...")
    assert len(job.message_file.read_bytes()) < 4096


def of_another_task(snapshot: Path) -> None:
    session = json.loads((snapshot / "session.json").read_text())
    (snapshot / "session.json").write_text(json.dumps({**session, "task": "other"}))


def with_half_a_character(snapshot: Path) -> None:
    session = json.loads((snapshot / "session.json").read_text())
    told = json.dumps({**session, "finalAnswer": "\ud800"})
    (snapshot / "session.json").write_text(told)


def without_session(snapshot: Path) -> None:
    (snapshot / "session.json").unlink()


def without_state(snapshot: Path) -> None:
    (snapshot / "worlds" / "main.sqlite").unlink()


def of_noise(snapshot: Path) -> None:
    (snapshot / "worlds" / "main.sqlite").write_bytes(b"noise" * 1000)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (of_another_task, "the snapshot is of task 'other', not of 'close_ticket'"),
        (without_session, "session.json of the snapshot cannot be read"),
        (without_state, "unable to open database"),
        (of_noise, "file is not a database"),
    ],
)
async def test_a_snapshot_that_cannot_be_graded_is_unscored(
    scene: Scene, change: Callable[[Path], None], words: str
) -> None:
    job = await scene.job(await scene.member(0, change=change))

    job.run()

    [found] = job.report.records or []
    assert (found.reward, found.cause) == (None, Cause.VERIFIER_FAILED)
    assert words in found.scores[0].message


async def test_an_answer_that_is_no_text_does_not_keep_an_agent_from_being_graded(
    store: RunningStore, tmp_path: Path
) -> None:
    main = desk(tmp_path / "crm", answered="SELECT final_answer = '?' FROM _session")
    scene = Scene(store, tmp_path, main)
    job = await scene.job(await scene.member(0, change=with_half_a_character))

    job.run()

    assert job.report.records == [record(job, 0, answered=1.0)]


def changed(found: GradeRecord, **update: object) -> bytes:
    return found.model_copy(update=update).canonical()


Forge = Callable[[GradeRecord], bytes]

# What grade could write if somebody took it over.
FORGED: dict[str, Forge] = {
    "another_task": lambda r: changed(r, task="other"),
    "another_seal": lambda r: changed(r, seal=digest_of(b"other")),
    "another_ordinal": lambda r: changed(r, ordinal=8),
    "another_attempt": lambda r: changed(r, attempt=2),
    "other_graders": lambda r: changed(r, grader=digest_of(b"other")),
    "a_better_reward": lambda r: changed(r, reward=1.0),
    "a_null_reward": lambda r: changed(r, reward=None, cause=Cause.REWARD_MISSING),
    "no_scores": lambda r: changed(r, scores=[]),
    "a_score_above_1": lambda r: changed(
        r, reward=2.0, scores=[Score(name="ticket_closed", value=2.0)]
    ),
    "a_score_twice": lambda r: changed(r, scores=r.scores * 2),
    "a_score_and_a_cause": lambda r: changed(
        r, scores=[Score(name="ticket_closed", value=0.0, cause=Cause.REWARD_MISSING)]
    ),
    "an_extra_field": lambda r: r.canonical().replace(b'"reward"', b'"admin":true,"reward"'),
    "a_number_as_text": lambda r: r.canonical().replace(b'"ordinal":7', b'"ordinal":"7"'),
    "not_a_number": lambda r: r.canonical().replace(b'"reward":0.0', b'"reward":NaN'),
    "no_json": lambda r: b"\xff" + r.canonical(),
    "too_long": lambda r: r.canonical() + b" " * 100_000,
}


def judged(job: Job, files: dict[str, bytes]) -> GradeReport:
    """Let judge run beside a grade that only wrote these files."""
    for name, data in files.items():
        (job.outbox / name).write_bytes(data)
    (job.outbox / "done").touch()
    assert job.start_judge().wait(timeout=30) == 0
    return job.report


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
async def test_a_forged_record_is_refused(scene: Scene, forge: Forge) -> None:
    job = await scene.job(await scene.member(7))

    report = judged(job, {"7.1.json": forge(record(job, 7, ticket_closed=0.0))})

    assert (report.n, report.records) == (0, [])
    assert report.message.startswith("the record of 7.1 is refused: ")


async def test_judge_follows_no_link_and_waits_for_no_pipe(scene: Scene) -> None:
    job = await scene.job(*[await scene.member(n) for n in range(3)])
    (job.outbox / "0.1.json").symlink_to(job.folder / "token")
    os.mkfifo(job.outbox / "1.1.json")
    (job.outbox / "2.1.json").mkdir()

    report = judged(job, {})

    assert (report.n, report.records) == (0, [])
    assert report.message == (
        "the record of 0.1 is refused: 0.1.json is a link; "
        "the record of 1.1 is refused: 1.1.json is no plain file; "
        "the record of 2.1 is refused: 2.1.json is no plain file"
    )


async def test_a_record_of_a_member_that_was_not_asked_for_is_ignored(scene: Scene) -> None:
    job = await scene.job(await scene.member(0))
    right = record(job, 0, ticket_closed=0.0)
    other = record(job, 1, ticket_closed=1.0)

    report = judged(job, {"0.1.json": right.canonical(), "1.1.json": other.canonical()})

    assert report.records == [right]
