"""A session over HTTP on this machine: the table of calls, errors, transactions and the record."""

import asyncio
import json
import random
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from wavetank.api.wire import Seal, SessionEnd
from wavetank.bundles.pack import unpack
from wavetank.testing.bundles import DESK, write_bundle, write_linked
from wavetank.worlds.local import LocalWorld, served
from wavetank.worlds.opening import open_local

TOOLS = '''\
import asyncio
import time
from datetime import datetime

from wavetank.worlds import ToolError, World, tool


@tool
def add(world: World, id: str, status: str = "open", account: str = "A-1") -> dict:
    """Add a ticket."""
    return world.insert("crm_tickets", {"id": id, "status": status, "account_id": account})


@tool
def add_two(world: World, first: str, second: str) -> None:
    """Add two tickets or none."""
    add(world, first)
    add(world, second)


@tool
def add_and_fail(world: World, id: str) -> None:
    """Add a ticket, then break."""
    add(world, id)
    raise ValueError("a secret of the author")


@tool
def leave(world: World) -> None:
    """Try to end the server."""
    raise SystemExit(3)


@tool
def not_json(world: World) -> float:
    """Return what is no JSON."""
    return float("nan")


@tool
def count(world: World) -> int:
    """Count the tickets."""
    return len(world.find("crm_tickets"))


@tool
def run_sql(world: World, statement: str) -> list[dict]:
    """Run a statement."""
    return world.sql(statement)


@tool
def moments(world: World) -> list[datetime]:
    """Look at the clock twice."""
    return [world.now(), world.now()]


@tool
def dice(world: World) -> int:
    """Roll."""
    return world.random.randint(1, 10**9)


@tool
async def add_slowly(world: World, id: str) -> None:
    """Add a ticket, then wait for long."""
    add(world, id)
    await asyncio.sleep(3600)


@tool
def hang(world: World, id: str) -> None:
    """Add a ticket, then hang."""
    add(world, id)
    time.sleep(4)
    add(world, id + "0")


@tool
def hang_in_sql(world: World) -> list[dict]:
    """Never come back from the database."""
    return world.sql(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    )
'''


@pytest.fixture(autouse=True)
def _tools_that_hang_end_with_their_test() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name == "tools":
            thread.join(20)


@asynccontextmanager
async def a_session(
    tmp_path: Path, files: Mapping[str, object] | None = None, start: bool = True, seed: int = 7
) -> AsyncIterator[tuple[LocalWorld, httpx.AsyncClient]]:
    main = write_bundle(tmp_path / "crm", {**DESK, "tools/handlers.py": TOOLS, **(files or {})})
    (tmp_path / "kept").mkdir()
    async with (
        served(open_local(main, "close_ticket", seed), tmp_path / "kept") as world,
        httpx.AsyncClient(base_url=world.url, timeout=60) as client,
    ):
        if start:
            await client.post("/v1/start")
        yield world, client


async def error_of(client: httpx.AsyncClient, tool: str, arguments: object) -> tuple[int, str, str]:
    answer = await client.post(f"/v1/tools/{tool}", json=arguments)
    error = answer.json()["error"]
    assert set(error) == {"type", "message", "details"}
    return answer.status_code, error["type"], error["message"]


async def result_of(client: httpx.AsyncClient, tool: str, arguments: object = None) -> object:
    answer = await client.post(f"/v1/tools/{tool}", json=arguments or {})
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


async def test_a_session_is_ready_then_open_then_closed(tmp_path: Path) -> None:
    async with a_session(tmp_path, start=False) as (_, client):
        ready = (await client.get("/v1/session")).json()
        early = await error_of(client, "count", {})
        opened = (await client.post("/v1/start")).json()
        again = (await client.post("/v1/start")).json()
        await result_of(client, "count")
        await client.post("/v1/close", json={"reason": "completed"})
        closed = (await client.get("/v1/session")).json()
        late = await error_of(client, "count", {})
        restart = await client.post("/v1/start")

    assert ready == {
        "task": "close_ticket",
        "prompt": "Close ticket T-7 and record the reason as 'duplicate'.",
        "instructions": "You work at a support desk.",
        "tools": list(ready["tools"]),
        "state": "ready",
        "calls": 0,
        "now": "2026-01-01T09:00:00Z",
        "deadline": None,
        "maxSteps": None,
    }
    assert early[:2] == (409, "SessionNotStarted")
    assert opened == again == {**ready, "state": "open"}
    assert closed == {**ready, "state": "closed", "calls": 1}
    assert late[:2] == (409, "SessionClosed")
    assert restart.status_code == 409


async def test_every_error_has_the_one_shape(tmp_path: Path) -> None:
    async with a_session(tmp_path) as (_, client):
        answers = {
            "unknown path": await client.get("/nothing"),
            "method": await client.delete("/v1/session"),
            "no json": await client.post("/v1/tools/count", content=b"{"),
            "no object": await client.post("/v1/tools/count", content=b"[]"),
            "no utf-8": await client.post("/v1/tools/count", content=b'{"a": "\xff"}'),
            "key twice": await client.post("/v1/tools/count", content=b'{"a": 1, "a": 2}'),
            "too large": await client.post("/v1/tools/count", content=b" " * (2**20 + 1)),
            "too deep": await client.post(
                "/v1/tools/count", content=b'{"a":' + b"[" * 64 + b"]" * 64 + b"}"
            ),
            "far too deep": await client.post("/v1/tools/count", content=b"[" * 100_000),
            "unknown tool": await client.post("/v1/tools/nothing", json={}),
            "arguments": await client.post("/v1/tools/add", json={"id": 3}),
            "close": await client.post("/v1/close", json={"reasons": "x"}),
            "grade": await client.post("/v1/grade", json={}),
        }

    told = {
        name: (each.status_code, each.json()["error"]["type"]) for name, each in answers.items()
    }
    assert told == {
        "unknown path": (404, "NotFound"),
        "method": (405, "MethodNotAllowed"),
        "no json": (400, "InvalidArguments"),
        "no object": (400, "InvalidArguments"),
        "no utf-8": (400, "InvalidArguments"),
        "key twice": (400, "InvalidArguments"),
        "too large": (413, "TooLarge"),
        "too deep": (400, "InvalidArguments"),
        "far too deep": (400, "InvalidArguments"),
        "unknown tool": (404, "UnknownTool"),
        "arguments": (400, "InvalidArguments"),
        "close": (400, "InvalidArguments"),
        "grade": (404, "NotFound"),
    }
    assert [set(each.json()["error"]) for each in answers.values()] == [
        {"type", "message", "details"}
    ] * len(answers)


@pytest.mark.parametrize(
    "body",
    [
        b'{"reason": "\\ud800"}',
        b'{"finalAnswer": "\\ud800"}',
        b'{"log": "\\udfff"}',
        b'{"exitCode": true}',
        b'{"exitCode": 1e400}',
        b'{"exitCode": 2147483648}',
        b'{"exitCode": "1"}',
        b'{"reason": null}',
        b'{"finalAnswer": ["x"]}',
        b'{"other": 1}',
        b"[]",
    ],
)
async def test_a_report_that_could_not_be_sealed_is_refused(tmp_path: Path, body: bytes) -> None:
    async with a_session(tmp_path) as (_, client):
        answer = await client.post("/v1/close", content=body)
        state = (await client.get("/v1/session")).json()["state"]

    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "InvalidArguments")
    assert state == "open"


async def test_no_bytes_make_the_server_stumble(tmp_path: Path) -> None:
    dice = random.Random(7)  # noqa: S311 - repeatable
    pieces = [
        b"{", b"}", b"[", b"]", b'"id"', b":", b",", b'"T-7"', b"null", b"1e999", b"-0", b"NaN",
        b'"\\ud800"', b'"\\u0000"', b"\xff", b"\x00", b'"status"', b'"open"', b"9" * 30, b'"' + b"a" * 999,
    ]  # fmt: skip
    allowed = {(200, None), (400, "InvalidArguments"), (422, "ConstraintError")}
    async with a_session(tmp_path) as (_, client):
        for _ in range(400):
            body = b"".join(dice.choices(pieces, k=dice.randrange(9)))
            body = body if dice.random() < 0.5 else b'{"id":' + body + b"}"
            answer = await client.post("/v1/tools/add", content=body)

            error = answer.json().get("error")
            assert (answer.status_code, error and error["type"]) in allowed, body


async def test_invalid_arguments_name_every_path(tmp_path: Path) -> None:
    async with a_session(tmp_path) as (_, client):
        answer = await client.post("/v1/tools/add", json={"id": 3, "color": "red"})

    assert answer.json()["error"]["details"] == [
        {"path": "id", "message": "Input should be a valid string"},
        {"path": "color", "message": "Extra inputs are not permitted"},
    ]


async def test_a_call_that_fails_half_way_changes_nothing(tmp_path: Path) -> None:
    async with a_session(tmp_path) as (_, client):
        broken = await error_of(client, "add_two", {"first": "T-1", "second": "T-7"})
        crashed = await error_of(client, "add_and_fail", {"id": "T-1"})
        left = await error_of(client, "leave", {})
        no_json = await error_of(client, "not_json", {})

        assert await result_of(client, "count") == 2
    assert broken == (
        422,
        "ConstraintError",
        "crm_tickets.id: there is a row already whose (id) is ('T-7'). Keys are unique.",
    )
    assert crashed == left == no_json == (500, "InternalError", "internal error")


async def test_broken_rules_name_entity_field_and_value(tmp_path: Path) -> None:
    async with a_session(tmp_path) as (_, client):
        enum = await client.post("/v1/tools/add", json={"id": "T-1", "status": "opne"})
        reference = await client.post("/v1/tools/add", json={"id": "T-1", "account": "A-2"})

    assert (enum.status_code, enum.json()["error"]) == (
        422,
        {
            "type": "ConstraintError",
            "message": "crm_tickets.status: 'opne' is not allowed. "
            "Name one of: 'open', 'pending', 'closed'.",
            "details": {"entity": "crm_tickets", "field": "status", "value": "opne"},
        },
    )
    assert reference.json()["error"]["message"] == (
        "crm_tickets.account_id: there is no crm_accounts whose id is 'A-2'."
    )


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE crm_tickets",
        "CREATE TRIGGER t AFTER INSERT ON crm_tickets BEGIN DELETE FROM crm_tickets; END",
        "CREATE TEMP VIEW crm_tickets AS SELECT 1",
        "ALTER TABLE crm_tickets ADD COLUMN x",
        "ATTACH ':memory:' AS other",
        "PRAGMA foreign_keys = OFF",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT s",
        "VACUUM",
        "SELECT random()",
        "SELECT datetime('NOW')",
        "SELECT date()",
        "SELECT current_timestamp",
        "UPDATE sqlite_master SET sql = ''",
    ],
)
async def test_sql_can_do_no_more_than_read_and_change_rows(tmp_path: Path, statement: str) -> None:
    async with a_session(tmp_path) as (_, client):
        assert await error_of(client, "run_sql", {"statement": statement}) == (
            500,
            "InternalError",
            "internal error",
        )
        assert await result_of(client, "count") == 2


async def test_sql_reads_and_changes_rows(tmp_path: Path) -> None:
    async with a_session(tmp_path) as (_, client):
        changed = "UPDATE crm_tickets SET status = 'closed' WHERE id = 'T-7' RETURNING id, status"

        assert await result_of(client, "run_sql", {"statement": changed}) == [
            {"id": "T-7", "status": "closed"}
        ]


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "SELECT x, 'a lot of text' FROM n",
            (422, "ToolError", "a statement returns more than 67108864 bytes. Ask for less."),
        ),
        (
            "SELECT hex(zeroblob(4000)) AS t FROM n ORDER BY t",
            (500, "InternalError", "internal error"),
        ),
        (
            "INSERT INTO crm_accounts SELECT x, hex(zeroblob(4000000)) FROM n",
            (500, "InternalError", "internal error"),
        ),
        (
            "SELECT hex(zeroblob(100000)) FROM n LIMIT 100",
            (422, "ToolError", "the result has 20003100 bytes; at most 4194304 are sent."),
        ),
    ],
    ids=["too many rows", "too much to sort", "too much to keep", "too large a result"],
)
async def test_an_agent_cannot_fill_the_memory_of_its_world(
    tmp_path: Path, statement: str, expected: tuple[int, str, str]
) -> None:
    async with a_session(tmp_path) as (_, client):
        call = {"statement": f"{ENDLESS} {statement}"}

        assert await error_of(client, "run_sql", call) == expected
        assert await result_of(client, "count") == 2


async def test_no_answer_waits_for_a_delayed_acknowledgement(tmp_path: Path) -> None:
    async with a_session(tmp_path) as (_, client):
        seconds = []
        for _ in range(20):
            began = time.perf_counter()
            await result_of(client, "count")
            seconds.append(time.perf_counter() - began)

    # Linux acknowledges after 40 ms; the quickest of twenty calls takes 2 ms.
    assert min(seconds) < 0.03


async def test_the_clock_shows_the_bundles_moment_then_a_second_more_at_each_look(
    tmp_path: Path,
) -> None:
    async with a_session(tmp_path) as (_, client):
        assert await result_of(client, "moments") == [
            "2026-01-01T09:00:00Z",
            "2026-01-01T09:00:01Z",
        ]
        assert (await client.get("/v1/session")).json()["now"] == "2026-01-01T09:00:02Z"


async def end_state(tmp_path: Path, seed: int) -> tuple[bytes, list[object]]:
    """Make the same calls, of which some fail, and return the database's bytes."""
    tmp_path.mkdir()
    async with a_session(tmp_path, seed=seed) as (_, client):
        rolls = [await result_of(client, "dice") for _ in range(3)]
        for number in range(20):
            await client.post("/v1/tools/add", json={"id": f"T-{number}"})
            await client.post("/v1/tools/add_and_fail", json={"id": f"X-{number}"})
        await result_of(
            client, "run_sql", {"statement": "DELETE FROM crm_tickets WHERE id < 'T-15'"}
        )
        await client.post("/v1/close", json={})
    unpack((tmp_path / "kept/snapshot.tar.zst").read_bytes(), tmp_path / "end")
    return (tmp_path / "end/worlds/main.sqlite").read_bytes(), rolls


async def test_the_same_seed_and_calls_end_in_the_same_bytes(tmp_path: Path) -> None:
    first, rolls = await end_state(tmp_path / "first", seed=7)
    second, same_rolls = await end_state(tmp_path / "second", seed=7)
    _, other_rolls = await end_state(tmp_path / "third", seed=8)

    assert first == second
    assert rolls == same_rolls
    assert rolls != other_rolls


async def test_calls_at_once_are_made_one_after_another(tmp_path: Path) -> None:
    async with a_session(tmp_path) as (world, client):
        await asyncio.gather(
            *(client.post("/v1/tools/add", json={"id": f"T-{n}"}) for n in range(20, 40))
        )

        assert await result_of(client, "count") == 22
        assert world.session.trajectory.calls == 21


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("add_slowly", {"id": "T-1"}), ("hang", {"id": "T-1"}), ("hang_in_sql", {})],
)
async def test_a_call_that_outlasts_the_session_is_taken_back(
    tmp_path: Path, tool: str, arguments: Mapping[str, object]
) -> None:
    async with a_session(tmp_path) as (world, client):
        hanging = asyncio.create_task(client.post(f"/v1/tools/{tool}", json=arguments))
        while not world.session._gate.locked():
            await asyncio.sleep(0.01)
        closed = await client.post("/v1/close", json={})
        answer = await hanging

    assert closed.status_code == 200
    assert (answer.status_code, answer.json()["error"]["type"]) == (409, "SessionClosed")
    unpack((tmp_path / "kept/snapshot.tar.zst").read_bytes(), tmp_path / "end")
    connection = sqlite3.connect(tmp_path / "end/worlds/main.sqlite")
    assert connection.execute("SELECT COUNT(*) FROM crm_tickets").fetchone() == (2,)
    connection.close()


async def test_every_call_is_recorded_with_what_the_agent_is_not_told(tmp_path: Path) -> None:
    async with a_session(tmp_path) as (_, client):
        await client.post("/v1/tools/count", json={})
        await client.post("/v1/tools/nothing", json={"a": 1})
        await client.post("/v1/tools/add_and_fail", json={"id": "T-1"})

    lines = (tmp_path / "kept/trajectory.jsonl").read_text().splitlines()
    calls = [json.loads(line) for line in lines]
    assert [set(call) for call in calls] == [
        {"n", "at", "tool", "arguments", "seconds", "result"},
        {"n", "at", "tool", "arguments", "seconds", "error"},
        {"n", "at", "tool", "arguments", "seconds", "error", "traceback"},
    ]
    assert (calls[0]["n"], calls[0]["tool"], calls[0]["result"]) == (1, "count", 2)
    assert calls[1]["arguments"] == {"a": 1}
    assert calls[2]["error"]["message"] == "internal error"
    assert calls[2]["traceback"].endswith("ValueError: a secret of the author\n")


async def test_a_linked_worlds_tools_work_on_its_own_tables(tmp_path: Path) -> None:
    main = write_linked(tmp_path)
    (tmp_path / "kept").mkdir()
    async with (
        served(open_local(main, "close_ticket"), tmp_path / "kept") as world,
        httpx.AsyncClient(base_url=world.url) as client,
    ):
        await client.post("/v1/start")
        posted = await result_of(client, "slack__post_message", {"channel": "#x", "text": "hi"})

    assert posted == {"id": 2, "channel": "#x", "text": "hi"}


async def test_a_handler_changes_both_worlds_or_none(tmp_path: Path) -> None:
    handlers = '''\
from wavetank.worlds import ToolError, World, tool


@tool
def tell(world: World, fail: bool) -> int:
    """Close the ticket and tell it."""
    world.update("crm_tickets", {"id": "T-7"}, {"status": "closed"})
    messages = world.linked("slack")
    messages.insert("messages", {"id": 2, "channel": "#x", "text": "closed"})
    if fail:
        raise ToolError("no")
    return len(messages.find("messages"))


@tool
def state(world: World) -> list:
    """Return both states."""
    return [world.find_one("crm_tickets", id="T-7")["status"], len(world.linked("slack").find("messages"))]
'''
    main = write_linked(tmp_path, {"tools/handlers.py": handlers})
    (tmp_path / "kept").mkdir()
    async with (
        served(open_local(main, "close_ticket"), tmp_path / "kept") as world,
        httpx.AsyncClient(base_url=world.url) as client,
    ):
        await client.post("/v1/start")
        await client.post("/v1/tools/tell", json={"fail": True})
        before = await result_of(client, "state")
        await client.post("/v1/tools/tell", json={"fail": False})
        after = await result_of(client, "state")

    assert before == ["open", 1]
    assert after == ["closed", 2]


async def test_at_the_deadline_the_session_is_sealed_with_what_the_wrapper_reports(
    tmp_path: Path,
) -> None:
    main = write_bundle(tmp_path / "crm", DESK)
    (tmp_path / "kept").mkdir()
    opening = replace(open_local(main, "close_ticket"), deadline_seconds=1)
    async with (
        served(opening, tmp_path / "kept") as world,
        httpx.AsyncClient(base_url=world.url, timeout=60) as client,
    ):
        await client.post("/v1/start")
        while (await client.get("/v1/session")).json()["state"] != "closed":
            await asyncio.sleep(0.01)
        report = {"reason": "deadline", "finalAnswer": "Late.", "exitCode": 137, "log": "x"}
        await client.post("/v1/close", json=report)

    seal = Seal.model_validate_json((tmp_path / "kept/seal.json").read_bytes())
    assert (seal.end, seal.reason, seal.exit_code) == (SessionEnd.DEADLINE, "deadline", 137)
    assert (tmp_path / "kept/agent.log").read_text() == "x"
