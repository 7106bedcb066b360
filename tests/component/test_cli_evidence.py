"""Evidence of a rollout as it is shown and downloaded, and what is said where there is none."""

import base64
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import zstandard
from aiohttp import web

from wavetank.bundles import pack
from wavetank.bundles.pack import PLAIN, BundleFile
from wavetank.core.causes import Cause
from wavetank.core.identity import AttemptKey
from wavetank.core.observed import Failure
from wavetank.kube.objects import Manifest
from wavetank.testing import kept
from wavetank.testing.api_server import (
    Answer,
    ScriptedApiServer,
    gives,
    refuses,
    scripted_api_server,
)
from wavetank.testing.command import on_a_terminal, plain, start, wavetank
from wavetank.testing.kept import KeptRun, failed_grading, invalid, scored

pytestmark = pytest.mark.component

RUN = KeptRun(
    entries=[
        scored(0, 1, 0.5),
        Failure(AttemptKey(2, 1), Cause.POD_DELETED, "the Pod was deleted", 0.0),
        failed_grading(2, "grade took 600 s"),
        invalid(2, "the answer is the text 'yes'"),
    ]
)

CALLS = [
    {"n": 1, "tool": "get_ticket", "arguments": {"id": "T-7"}, "result": {"status": "open"}},
    {
        "n": 2,
        "tool": "update_ticket",
        "arguments": {"id": "T-7", "status": "clozed"},
        "error": {"type": "InvalidArguments", "message": "status: open, pending or closed"},
    },
]
SESSION = {"task": "close_ticket", "finalAnswer": "Done.", "end": "closed", "reason": "completed"}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedApiServer]:
    async with scripted_api_server() as running:
        yield running


@pytest.fixture
def config(server: ScriptedApiServer, tmp_path: Path) -> str:
    return str(server.kubeconfig(tmp_path))


def raw(data: bytes, status: int = 200) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=data, status=status)

    return answer


def recorded(run: KeptRun = RUN) -> list[Answer]:
    """What the API server says of a Run: the object, its plan, its ledger, its Secret."""
    shards: Manifest = {"metadata": {"resourceVersion": "1"}, "items": [run.shard]}
    token = base64.b64encode(b"read-token").decode()
    return [gives(run.run), gives(run.plan or {}), gives(shards), gives({"data": {"read": token}})]


def stored(session: object = SESSION, log: str = "agent: bye\n") -> list[Answer]:
    """What the store says of an attempt: its snapshot, seal and log."""
    lines = "".join(json.dumps(call) + "\n" for call in CALLS)
    files = {
        "session.json": json.dumps(session),
        "trajectory.jsonl": lines,
        "worlds/main.sqlite": "tables",
    }
    snapshot = pack.pack({path: BundleFile(PLAIN, text.encode()) for path, text in files.items()})
    return [raw(snapshot), raw(b'{"end":"closed"}'), raw(zstandard.compress(log.encode()))]


def asked(rollout: int, config: str, *more: str) -> tuple[str, ...]:
    words = ("runs", "evidence", "crm-oracle", "close_ticket", str(rollout), "-n", "bench")
    return (*words, "--kubeconfig", config, *more)


SHOWN = """\
crm-oracle  close_ticket, rollout 0, attempt 1
  1 get_ticket {"id": "T-7"}
    -> {"status": "open"}
  2 update_ticket {"id": "T-7", "status": "clozed"}
    !! {"type": "InvalidArguments", "message": "status: open, pending or closed"}
answer  Done.
end     closed: completed
score   ticket_closed 1.00
score   reason_recorded 0.50
reward  0.7500
"""


async def test_what_an_agent_did_and_got_is_shown(server: ScriptedApiServer, config: str) -> None:
    server.will(*recorded(), *stored())

    ended = await wavetank(*asked(0, config))

    assert (ended.code, ended.out, ended.err) == (0, SHOWN, "")
    path = (
        f"/api/v1/namespaces/wavetank-system/services/wavetank-store:8081/proxy/v1/runs/{kept.UID}"
    )
    assert [a.path for a in server.asked[-3:]] == [
        f"{path}/0/1/{name}" for name in ("snapshot", "seal", "agent-log")
    ]


async def test_a_rollout_without_a_reward_shows_why(server: ScriptedApiServer, config: str) -> None:
    reason = {**SESSION, "reason": "exit code 1"}
    server.will(*recorded(), *stored(reason, "Traceback\nValueError: no\n"))

    ended = await wavetank(*asked(1, config))

    assert ended.code == 0
    assert ended.out.endswith(
        "end     closed: exit code 1\n"
        "log     Traceback\n"
        "log     ValueError: no\n"
        "failed  attempt 1 PodDeleted: the Pod was deleted\n"
        "failed  attempt 1 VerifierTimeout: grade took 600 s\n"
        "score   ticket_closed - RewardInvalid: the answer is the text 'yes'\n"
        "score   reason_recorded 1.00\n"
        "reward  - RewardInvalid\n"
    )


async def test_evidence_is_downloaded_into_a_folder(
    server: ScriptedApiServer, config: str, tmp_path: Path
) -> None:
    server.will(*recorded(), *stored())
    folder = tmp_path / "evidence"

    ended = await wavetank(*asked(0, config, "-o", str(folder)))

    files = {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}
    record = json.loads(files.pop("record.json"))
    assert ended.out == (
        f"{folder} has agent.log, record.json, seal.json, session.json, trajectory.jsonl, "
        "worlds/main.sqlite\n"
    )
    assert files == {
        "agent.log": "agent: bye\n",
        "seal.json": '{"end":"closed"}',
        "session.json": json.dumps(SESSION),
        "trajectory.jsonl": "".join(json.dumps(call) + "\n" for call in CALLS),
        "worlds/main.sqlite": "tables",
    }
    assert record["record"]["scores"][1] == {"name": "reason_recorded", "value": 0.5}


async def test_evidence_as_json(server: ScriptedApiServer, config: str) -> None:
    server.will(*recorded(), *stored())

    document = json.loads((await wavetank(*asked(1, config, "--json"))).out)

    assert document.keys() == {
        *("run", "task", "rollout", "attempt", "record", "failures", "session", "trajectory"),
    }
    assert (document["trajectory"], document["session"]) == (CALLS, SESSION)
    assert [(f["attempt"], f["cause"]) for f in document["failures"]] == [
        (1, "PodDeleted"),
        (1, "VerifierTimeout"),
    ]


async def test_a_lost_attempt_shows_why_and_is_exit_code_1(
    server: ScriptedApiServer, config: str, tmp_path: Path
) -> None:
    run = KeptRun(entries=kept.lost(0, 2, "the Pod was deleted"))
    missing = raw(b'{"error": {"type": "NotFound", "message": "no such object"}}', 404)
    server.will(*recorded(run), missing, *recorded(run), missing)

    shown = await wavetank(*asked(0, config, "--attempt", "1"))
    downloaded = await wavetank(*asked(0, config, "-o", str(tmp_path / "evidence")))

    assert (shown.code, downloaded.code) == (1, 1)
    assert shown.out == (
        "crm-oracle  close_ticket, rollout 0, attempt 1\n"
        "failed  attempt 1 PodDeleted: the Pod was deleted\n"
        "failed  attempt 2 PodDeleted: the Pod was deleted\n"
    )
    assert shown.err == (
        "The store has no end state of attempt 1: "
        "it ended before one was sealed, or has not ended yet.\n"
    )
    assert [p.name for p in (tmp_path / "evidence").iterdir()] == ["record.json"]


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        (
            raw(b'{"error": {"type": "Unauthorized", "message": "the token has ended"}}', 401),
            3,
            "The cluster or the store could not be reached: "
            "the store refused: the token has ended\n",
        ),
        (
            refuses(404, "NotFound"),
            3,
            "The cluster or the store could not be reached: there is no Service "
            "wavetank-system/wavetank-store:8081: Wavetank was removed, or installed elsewhere.\n",
        ),
        (
            refuses(403, "Forbidden"),
            1,
            "store wavetank-system/wavetank-store:8081: you may not reach it. "
            "Ask for Role wavetank-store-access in wavetank-system.\n",
        ),
    ],
    ids=["refuses the token", "is gone", "is closed to the caller"],
)
async def test_it_is_told_when_the_store(
    answer: Answer, code: int, told: str, server: ScriptedApiServer, config: str
) -> None:
    server.will(*recorded(), answer)

    ended = await wavetank(*asked(0, config))

    assert (ended.code, ended.out, ended.err) == (code, "", told)


async def test_a_rollout_that_is_not_recorded_needs_an_attempt(
    server: ScriptedApiServer, config: str
) -> None:
    server.will(*recorded(KeptRun(entries=[scored(1, 1, 1)])))

    ended = await wavetank(*asked(0, config))

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        "rollout 0 of close_ticket: it is not recorded yet: "
        "give --attempt to look at one all the same.\n"
    )


async def test_what_an_agent_wrote_cannot_steer_a_terminal(
    server: ScriptedApiServer, config: str
) -> None:
    session = {**SESSION, "finalAnswer": "\x1b]0;title\x07[bold]", "reason": "exit code 1"}
    server.will(*recorded(), *stored(session, "\x1b[2J\x9b2J\n"))

    shown = await on_a_terminal(*asked(0, config))

    lines = plain(shown.out).splitlines()
    assert "answer  \\x1b]0;title\\x07[bold]" in lines
    assert "log     \\x1b[2J\\x9b2J" in lines
    assert not any(code in shown.out for code in ("\x1b]", "\x1b[2J", "\x9b", "\x07"))


async def test_an_interrupt_is_exit_code_130(server: ScriptedApiServer, config: str) -> None:
    waits = KeptRun(waits=("BenchmarkNotReady", "Benchmark crm is being checked."))
    shards: Manifest = {"metadata": {"resourceVersion": "1"}, "items": [waits.run]}
    server.will(gives(shards))
    server.otherwise = lambda _: gives(waits.run)

    process = await start("runs", "watch", "crm-oracle", "--kubeconfig", config)
    assert process.stdout is not None
    first = await process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()

    assert first.decode() == "crm-oracle: Waiting (Benchmark crm is being checked.)\n"
    assert (process.returncode, err.decode()) == (130, "Interrupted.\n")
