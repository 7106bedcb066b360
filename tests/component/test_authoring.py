"""The commands for authors, as a new user types them: each a process of its own."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from mcp.client.client import Client

from wavetank.bundles.pack import unpack
from wavetank.cli.main import root
from wavetank.testing import command
from wavetank.testing.command import Ended

GOOD, AT_FAULT, WRONG_USAGE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130


@dataclass(frozen=True)
class Desk:
    """A folder to work in, with a benchmark that `init` has written."""

    folder: Path

    async def run(self, *words: str | Path) -> Ended:
        return await command.wavetank(*words, cwd=self.folder, **self.environment)

    async def good(self, *words: str | Path) -> str:
        """What a command prints that is to go well."""
        ended = await self.run(*words)
        assert ended.code == GOOD, ended
        return ended.out

    async def document(self, *words: str | Path, code: int = GOOD) -> dict[str, Any]:
        ended = await self.run(*words, "--json")
        assert ended.code == code, ended
        return dict(json.loads(ended.out))

    @property
    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.folder)}

    def write(self, path: str, content: object) -> None:
        file = self.folder / "crm" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))

    def change(self, path: str, before: str, after: str) -> None:
        file = self.folder / "crm" / path
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, after))

    def data(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "crm" / "data" / "initial.json").read_text()))

    @asynccontextmanager
    async def serving(self, task: str, *options: str) -> AsyncIterator["Serving"]:
        words = ("worlds", "serve", "crm", "--task", task, "--port", "0", "--json", *options)
        process = await command.start(*words, cwd=self.folder, **self.environment)
        assert process.stdout is not None
        serving = Serving(process, json.loads(await process.stdout.readline()))
        try:
            yield serving
        finally:
            if process.returncode is None:
                process.terminate()
            await process.communicate()


@dataclass(frozen=True)
class Serving:
    process: asyncio.subprocess.Process
    start: Any
    """The line that it prints when it is ready."""

    @property
    def url(self) -> str:
        return str(self.start["url"])

    async def end(self) -> tuple[int, Any]:
        """Exit code, and the line that it prints at its end."""
        out, _ = await self.process.communicate()
        return self.process.returncode or 0, json.loads(out)


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    await desk.good("benchmarks", "init", "crm")
    return desk


async def test_a_new_benchmark_is_named_after_its_folder_and_is_good(desk: Desk):
    written = await desk.document("benchmarks", "init", "My Bench")
    assert (written["name"], len(written["files"])) == ("my-bench", 9)

    found = await desk.document("benchmarks", "validate", "My Bench")

    assert (found["ok"], found["name"], found["findings"]) == (True, "my-bench", [])
    assert {(each["task"], each["agent"]): each["reward"] for each in found["rollouts"]} == {
        ("close_ticket", "oracle"): 1,
        ("close_ticket", "nop"): 0,
        ("count_urgent", "oracle"): 1,
        ("count_urgent", "nop"): 0,
    }


async def test_a_folder_that_is_not_empty_is_refused_and_left_as_it_is(desk: Desk):
    (desk.folder / "mine").mkdir()
    (desk.folder / "mine" / "notes.txt").write_text("x")

    ended = await desk.run("benchmarks", "init", "mine")

    assert ended == Ended(
        AT_FAULT,
        "fault: mine: the folder is not empty: it holds notes.txt. "
        "Name one that is new or empty.\n",
        "",
    )
    assert [path.name for path in (desk.folder / "mine").iterdir()] == ["notes.txt"]
    file = await desk.run("benchmarks", "init", "mine/notes.txt")
    assert (file.code, file.out) == (
        AT_FAULT,
        "fault: mine/notes.txt: this is a file. Name a folder that is new or empty.\n",
    )


async def test_an_empty_folder_is_at_fault_and_none_is_wrong_usage(desk: Desk):
    (desk.folder / "empty").mkdir()

    for name in ("check", "validate"):
        ended = await desk.run("benchmarks", name, "empty")
        assert ended.code == AT_FAULT
        assert "fault: gateway-env.toml: the file is missing. A world bundle" in ended.out
        assert (await desk.run("benchmarks", name, "nowhere")).code == WRONG_USAGE


async def test_check_prints_a_line_for_each_verifier_and_task(desk: Desk):
    assert await desk.good("benchmarks", "check", "crm") == (
        "verifiers.count_right.initial_score  0.0\n"
        "verifiers.reason_recorded.initial_score  0.0\n"
        "verifiers.ticket_closed.initial_score  0.0\n"
        "tasks.close_ticket.initial_reward  0.0\n"
        "tasks.count_urgent.initial_reward  0.0\n"
        "crm: 2 tables, 11 rows, 2 tools, 3 verifiers, 2 tasks; 0 faults.\n"
    )


async def test_dry_run_shows_the_task_and_its_untouched_grades(desk: Desk):
    assert await desk.good("benchmarks", "dry-run", "crm", "--task", "close_ticket") == (
        "task close_ticket of crm\n"
        "instructions: You work at a support desk, through its tools. "
        "Do what you are asked and nothing else.\n"
        "prompt: Close ticket T-7 and record the reason as 'duplicate'.\n"
        "tool list_tickets: List tickets.\n"
        "tool update_ticket: Change a ticket's status.\n"
        "seed rows crm_accounts: 3\n"
        "seed rows crm_tickets: 8\n"
        "verifier ticket_closed: 0\n"
        "verifier reason_recorded: 0\n"
        "reward: 0\n"
    )
    unknown = await desk.run("benchmarks", "dry-run", "crm", "--task", "nope")
    assert (unknown.code, unknown.out) == (
        AT_FAULT,
        "fault: tasks: no task is named 'nope'. Name one of: close_ticket, count_urgent.\n",
    )


async def test_dry_run_names_a_verifier_that_cannot_run_in_the_engines_words(desk: Desk):
    desk.write("verifiers/ticket_closed.sql", "SELECT 1.0 FROM nowhere")

    ended = await desk.run("benchmarks", "dry-run", "crm", "--task", "close_ticket")

    assert ended.code == AT_FAULT
    assert ended.out.endswith(
        "verifier ticket_closed: null (VerifierFailed: no such table: nowhere)\n"
        "verifier reason_recorded: 0\n"
        "reward: null\n"
    )


async def test_a_session_is_played_graded_and_closed_by_hand(desk: Desk):
    async with desk.serving("close_ticket", "-o", "kept") as serving:
        assert serving.start == {
            "url": serving.url,
            "mcp": f"{serving.url}/mcp",
            "task": "close_ticket",
            "prompt": "Close ticket T-7 and record the reason as 'duplicate'.",
            "tools": ["list_tickets", "update_ticket"],
        }
        call = ("worlds", "call", serving.url)
        opened = await desk.document(*call, "list_tickets", "--args", '{"status": "open"}')
        assert [row["id"] for row in opened["result"]] == ["T-1", "T-2", "T-4", "T-7", "T-8"]

        halfway = '{"id": "T-7", "status": "closed", "reason": "answered"}'
        ended = await desk.run(*call, "update_ticket", "--args", halfway, "--grade")
        assert (ended.code, ended.out) == (
            GOOD,
            '{"reward": 0.5, "rewards": {"ticket_closed": 1, "reason_recorded": 0}}\n',
        )
        assert json.loads(ended.err)["close_reason"] == "answered"

        whole = '{"id": "T-7", "status": "closed", "reason": "duplicate"}'
        done = await desk.document(*call, "update_ticket", "--args", whole, "--grade", "--close")
        assert (done["grades"]["reward"], done["closed"]) == (1, True)

        assert await serving.end() == (
            GOOD,
            {
                "closed": True,
                "calls": 3,
                "reward": 1,
                "rewards": {"ticket_closed": 1, "reason_recorded": 1},
            },
        )
        assert (await desk.run(*call, "list_tickets")).code == UNREACHABLE
    kept = {path.name for path in (desk.folder / "kept").iterdir()}
    assert kept == {"trajectory.jsonl", "snapshot.tar.zst", "seal.json"}


async def test_a_task_that_asks_is_graded_by_the_last_message(desk: Desk):
    async with desk.serving("count_urgent") as serving:
        call = ("worlds", "call", serving.url)

        silent = await desk.good(*call, "--grade")
        wrong = await desk.good(*call, "--grade", "--answer", "4")
        right = await desk.good(*call, "--grade", "--answer", "3", "--close")

        assert [json.loads(each)["reward"] for each in (silent, wrong, right)] == [0, 0, 1]
        assert (await serving.end())[1]["reward"] == 1


async def test_a_call_that_fails_is_told_and_neither_graded_nor_closed(desk: Desk):
    async with desk.serving("close_ticket") as serving:
        call = ("worlds", "call", serving.url)
        refusals = [
            ("update_ticket", '{"id": "T-99", "status": "open"}', "422 ToolError: there is no"),
            ("update_ticket", '{"id": 7, "status": "open"}', "400 InvalidArguments: id: "),
            ("nothing", "{}", "404 UnknownTool: no tool is named 'nothing'"),
        ]
        for tool, arguments, words in refusals:
            ended = await desk.run(*call, tool, "--args", arguments, "--grade", "--close")
            assert (ended.code, ended.out) == (AT_FAULT, "")
            assert ended.err.startswith(words)
        document = await desk.document(*call, "nothing", "--grade", code=AT_FAULT)
        assert document["error"]["type"] == "UnknownTool"
        assert len(json.loads(await desk.good(*call, "list_tickets"))) == 8


async def test_what_is_no_world_is_told_apart(desk: Desk):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for words in (("list_tickets",), ("--grade",), ("--close",)):
            ended = await desk.run("worlds", "call", url, *words)
            assert ended == Ended(AT_FAULT, "", "what answers there is no world: status 200.\n")


async def test_a_call_that_cannot_be_meant_is_wrong_usage(desk: Desk):
    url = "http://localhost:1"
    usages = [
        (url,),
        (url, "t", "--args", "{"),
        (url, "t", "--args", "[]"),
        (url, "t", "--args", '{"x": 1e999}'),
        ("localhost:1", "t"),
        ("https://localhost:1", "t"),
        ("http://localhost:99999", "t"),
        (url, "t", "--arg", "{}"),
    ]
    for usage in usages:
        assert (await desk.run("worlds", "call", *usage)).code == WRONG_USAGE, usage
    lost = await desk.run("worlds", "call", url, "t", "--grade")
    assert lost.code == UNREACHABLE
    assert "The world at http://localhost:1 could not be reached" in lost.err


async def test_a_tool_that_breaks_half_way_changes_nothing(desk: Desk):
    desk.write(
        "tools/handlers.py",
        "from wavetank.worlds import World, tool\n"
        "@tool\n"
        "def close_two(world: World) -> None:\n"
        "    print('closing')\n"
        "    world.update('crm_tickets', {'id': 'T-7'}, {'status': 'closed'})\n"
        "    world.update('crm_tickets', {'id': 'T-8'}, {'status': 'gone'})\n"
        "@tool\n"
        "def hide(world: World) -> None:\n"
        "    world.sql(\"CREATE TEMP VIEW crm_tickets AS SELECT 'T-7' AS id, 'closed' AS status\")\n",
    )
    async with desk.serving("close_ticket") as serving:
        call = ("worlds", "call", serving.url)

        broken = await desk.run(*call, "close_two")
        hidden = await desk.run(*call, "hide")

        assert broken.err.startswith("422 ConstraintError: crm_tickets.status: 'gone' is not")
        assert hidden.err == "500 InternalError: internal error\n"
        assert (await desk.document(*call, "--grade"))["grades"]["reward"] == 0


async def test_an_agent_by_mcp_and_the_author_by_hand_share_the_session(desk: Desk):
    async with desk.serving("close_ticket") as serving:
        async with Client(serving.start["mcp"]) as agent:
            arguments = {"id": "T-7", "status": "closed", "reason": "duplicate"}
            called = await agent.call_tool("update_ticket", arguments)

        assert not called.is_error
        assert (await desk.document("worlds", "call", serving.url, "--grade"))["grades"] == {
            "reward": 1,
            "rewards": {"ticket_closed": 1, "reason_recorded": 1},
        }


async def test_verifiers_of_all_kinds_grade_what_is_served_and_dry_run(desk: Desk):
    desk.write(
        "verifiers/one_call.py",
        "def verify(world, trajectory):\n    return len(trajectory.calls) == 1\n",
    )
    desk.write(
        "verifiers/none_left.json",
        {
            "mode": "all",
            "assertions": [{"entity": "crm_tickets", "where": {"id": "T-7"}, "count": 0}],
        },
    )
    desk.change("gateway-env.toml", '"reason_recorded"]', '"one_call", "none_left"]')

    dry = await desk.document("benchmarks", "dry-run", "crm", "--task", "close_ticket")
    async with desk.serving("close_ticket") as serving:
        done = await desk.document("worlds", "call", serving.url, "list_tickets", "--grade")

    assert dry["rewards"] == {"ticket_closed": 0, "one_call": 0, "none_left": 0}
    assert done["grades"]["rewards"] == {"ticket_closed": 0, "one_call": 1, "none_left": 0}


async def test_only_who_has_the_token_may_grade(desk: Desk):
    async with desk.serving("close_ticket") as serving:
        other = await command.wavetank(
            "worlds", "call", serving.url, "--grade", HOME=str(desk.folder / "other")
        )

        assert (other.code, other.out) == (AT_FAULT, "")
        assert other.err.startswith("401 Unauthorized: grading takes the token of")
        folder = desk.folder / ".local" / "state" / "wavetank" / "serving"
        assert [file.stat().st_mode & 0o777 for file in folder.iterdir()] == [0o600]
    assert list(folder.iterdir()) == []


async def test_the_same_seed_and_calls_leave_the_same_bytes_in_two_processes(desk: Desk):
    desk.write(
        "tools/handlers.py",
        "from wavetank.worlds import World, tool\n"
        "@tool\n"
        "def shuffle(world: World) -> None:\n"
        "    for row in world.find('crm_tickets'):\n"
        "        text = f'{world.random.random()} {world.now()}'\n"
        "        world.update('crm_tickets', {'id': row['id']}, {'subject': text})\n",
    )
    states = []
    for kept, seed in (("one", "7"), ("two", "7"), ("other", "8")):
        async with desk.serving("close_ticket", "--seed", seed, "-o", kept) as serving:
            await desk.good("worlds", "call", serving.url, "shuffle")
            await desk.good("worlds", "call", serving.url, "shuffle", "--close")
            await serving.end()
        unpack(desk.folder / kept / "snapshot.tar.zst", desk.folder / kept / "end")
        states.append((desk.folder / kept / "end" / "worlds" / "main.sqlite").read_bytes())

    assert states[0] == states[1] != states[2]


async def test_an_interrupted_session_is_graded_and_says_so_by_its_exit_code(desk: Desk):
    async with desk.serving("close_ticket") as serving:
        serving.process.terminate()

        code, end = await serving.end()

    assert (code, end["reward"], end["calls"]) == (INTERRUPTED, 0, 0)


async def test_a_port_that_is_taken_is_named(desk: Desk):
    async with desk.serving("close_ticket") as serving:
        port = serving.url.rpartition(":")[2]

        ended = await desk.run("worlds", "serve", "crm", "--task", "close_ticket", "--port", port)

        assert ended.code == AT_FAULT
        assert ended.out.startswith(f"fault: port {port}: it is taken by another program.")


async def test_a_task_is_appended_and_the_file_keeps_its_comments_and_order(desk: Desk):
    before = (desk.folder / "crm" / "gateway-env.toml").read_text()
    entry = '[[tasks]]\nid = "reopen"\nprompt = "Reopen T-3."\nverifiers = ["ticket_closed"]\n\n'

    out = await desk.good(
        *("worlds", "schema", "task", "add", "crm", "reopen"),
        *("--prompt", "Reopen T-3.", "--verifier", "ticket_closed"),
    )

    assert out == "Added task reopen to crm/gateway-env.toml.\n"
    after = (desk.folder / "crm" / "gateway-env.toml").read_text()
    assert after == before.replace("# How this", f"{entry}# How this")


async def test_a_task_that_cannot_be_is_refused_with_all_its_faults(desk: Desk):
    before = (desk.folder / "crm" / "gateway-env.toml").read_text()
    add = ("worlds", "schema", "task", "add", "crm")

    ended = await desk.run(
        *add, "close_ticket", "--prompt", " ", "--verifier", "nope", "--world", "slack=told"
    )

    assert ended.code == AT_FAULT
    assert ended.out == (
        "fault: close_ticket: the id is given already. Ids are unique.\n"
        "fault: close_ticket: prompt: this must not be empty.\n"
        "fault: close_ticket: verifiers[0]: no verifier is named 'nope'. "
        "Name one of: count_right, reason_recorded, ticket_closed.\n"
        "fault: close_ticket: worlds.slack: no world is linked as 'slack'. "
        "There is none to name.\n"
    )
    bad = await desk.run(*add, "1st", "--prompt", "x", "--verifier", "ticket_closed")
    assert (bad.code, bad.out.partition(":")[2][:30]) == (
        AT_FAULT,
        " 1st: id: '1st' is no name: le",
    )
    bare = await desk.run(*add, "bare", "--prompt", "x")
    assert bare.out.startswith("fault: bare: there is no verifier, here or of a linked world.")
    assert (await desk.run(*add, "x", "--prompt", "x", "--world", "slack")).code == WRONG_USAGE
    assert (await desk.run(*add, "x")).code == WRONG_USAGE
    assert (desk.folder / "crm" / "gateway-env.toml").read_text() == before


async def test_a_world_is_linked_and_its_verifiers_can_be_named(desk: Desk):
    await desk.good("benchmarks", "init", "chat")

    out = await desk.good("worlds", "schema", "link", "crm", "slack", "chat")
    await desk.good(
        *("worlds", "schema", "task", "add", "crm", "both", "--prompt", "Close T-7 in both."),
        *("--verifier", "ticket_closed", "--world", "slack=ticket_closed"),
    )

    assert out == "Linked chat to crm as slack: its tools are slack__<name>.\n"
    text = (desk.folder / "crm" / "gateway-env.toml").read_text()
    assert text.endswith('\n[run]\nk = 3\n\n[dependencies.slack]\nworld = "../chat"\n')
    assert 'worlds = {slack = ["ticket_closed"]}' in text
    found = await desk.document("benchmarks", "check", "crm")
    assert found["tools"][2:] == ["slack__list_tickets", "slack__update_ticket"]
    assert [each["name"] for each in found["verifiers"]][3:] == [
        "slack/count_right",
        "slack/reason_recorded",
        "slack/ticket_closed",
    ]


async def test_a_link_that_cannot_be_is_refused(desk: Desk):
    await desk.good("benchmarks", "init", "chat")
    await desk.good("worlds", "schema", "link", "crm", "slack", "chat")
    (desk.folder / "empty").mkdir()
    before = (desk.folder / "crm" / "gateway-env.toml").read_text()
    refusals = [
        (("crm", "slack", "chat"), "'slack' is linked already, to '../chat'."),
        (("crm", "SLACK", "chat"), "'slack' differs from another alias in case only."),
        (("crm", "main", "chat"), "the alias 'main' is taken by the database."),
        (("crm", "a b", "chat"), "'a b' is no alias: "),
        (("crm", "self", "crm"), "a world cannot be linked to itself: a cycle."),
        (("chat", "back", "crm"), "this links back to the world that links here as 'back'"),
        (("crm", "none", "empty"), "the file is missing."),
    ]
    for words, told in refusals:
        ended = await desk.run("worlds", "schema", "link", *words)
        assert ended.code == AT_FAULT
        assert told in ended.out, words
    assert (await desk.run("worlds", "schema", "link", "crm", "x", "none")).code == WRONG_USAGE
    assert (desk.folder / "crm" / "gateway-env.toml").read_text() == before


async def test_inferred_tables_are_told_and_can_be_pinned(desk: Desk):
    (desk.folder / "crm" / "schema" / "world.json").unlink()

    told = await desk.good("benchmarks", "check", "crm")
    await desk.good("worlds", "schema", "pin", "crm")

    assert (
        "inferred from data/initial.json: crm_accounts: key id; id string, name string.\n" in told
    )
    assert "To pin what was inferred:  wavetank worlds schema pin crm\n" in told
    assert "inferred" not in await desk.good("benchmarks", "validate", "crm")
    again = await desk.run("worlds", "schema", "pin", "crm")
    assert (again.code, again.out) == (
        AT_FAULT,
        "fault: schema/world.json: the world has a schema already: nothing is inferred.\n",
    )


ROW = {
    "id": "T-9",
    "account_id": "A-1",
    "subject": "x",
    "priority": "low",
    "status": "open",
    "opened_at": "2026-03-01T10:00:00Z",
}
HEADER = "id,account_id,subject,priority,status,close_reason,opened_at\n"
LINE = "T-9,A-1,x,low,open,,2026-03-01T10:00:00Z\n"


async def test_rows_are_added_from_csv_and_from_json_in_three_forms(desk: Desk):
    folder = desk.folder
    (folder / "crm_tickets.csv").write_text(f"\ufeff{HEADER}{LINE}")
    (folder / "list.json").write_text(json.dumps([{**ROW, "id": "T-10"}]))
    (folder / "both.json").write_text(
        json.dumps({"crm_accounts": [{"id": "A-9", "name": "New"}], "crm_tickets": []})
    )
    add = ("worlds", "data", "import", "crm")

    first = await desk.good(*add, "crm_tickets.csv")
    await desk.good(*add, "list.json", "--entity", "crm_tickets")
    both = await desk.document(*add, "both.json")

    assert first == ("Imported 1 row of crm_tickets into crm/data/initial.json: there are 9 now.\n")
    assert both == {
        "imported": {"crm_accounts": 1, "crm_tickets": 0},
        "rows": {"crm_accounts": 4, "crm_tickets": 10},
    }
    tickets = desk.data()["crm_tickets"]
    assert tickets[-2:] == [{**ROW, "close_reason": None}, {**ROW, "id": "T-10"}]
    replaced = await desk.good(*add, "list.json", "--entity", "crm_tickets", "--replace")
    assert replaced.endswith("there are 1 now.\n")
    assert len(desk.data()["crm_accounts"]) == 4


async def test_an_import_with_faults_changes_nothing_and_tells_row_and_column(desk: Desk):
    before = desk.data()
    lines = [
        LINE,
        LINE.replace("T-9", "T-7"),
        LINE.replace("A-1", "A-77").replace("T-9", "T-11"),
        LINE.replace("low", "lo").replace("2026-03-01T10:00:00Z", "today"),
        "T-12,A-1\n",
        LINE,
    ]
    (desk.folder / "bad.csv").write_text(HEADER + "".join(lines))

    ended = await desk.run("worlds", "data", "import", "crm", "bad.csv", "--entity", "crm_tickets")

    assert ended.code == AT_FAULT
    assert ended.out == (
        "fault: bad.csv: row 5: it has 2 cells, and there are 7 columns.\n"
        "fault: bad.csv: crm_tickets, row 4, column priority: 'lo' is not allowed. "
        "Name one of: 'low', 'normal', 'urgent'.\n"
        "fault: bad.csv: crm_tickets, row 4, column opened_at: 'today' does not fit; this must be "
        "a moment as ISO 8601 text, like '2026-01-31T09:00:00Z'.\n"
        "fault: bad.csv: crm_tickets, row 2: the key (id) = ('T-7') is already that of "
        "crm_tickets[6]. Keys are unique.\n"
        "fault: bad.csv: crm_tickets, row 6: the key (id) = ('T-9') is already that of "
        "crm_tickets[8]. Keys are unique.\n"
        "fault: bad.csv: crm_tickets, row 3, column account_id: there is no crm_accounts whose id "
        "is 'A-77'.\n"
    )
    assert desk.data() == before


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("x.csv", LINE, "x.csv: first line: crm_tickets has no field 'T-9'."),
        ("x.csv", "", "x.csv: first line: there is none. It names columns of crm_tickets: id,"),
        ("x.csv", f"{HEADER}\"T-9", "x.csv: line 2: this is not CSV: unexpected end of data."),
        ("x.json", "[{", "x.json: this is not JSON: "),
        ("x.json", "7", "x.json: this must be an object of entities or a list of rows, not 7."),
        ("x.json", '[{"id": NaN}]', "x.json: this is not JSON: NaN is no JSON number."),
        ("x.json", "[7]", "x.json: crm_tickets, row 1: a row must be an object, not 7."),
        ("x.json", '[{"ix": 1}]', "x.json: crm_tickets, row 1, column ix: crm_tickets has no fie"),
        (
            "x.json",
            json.dumps([{**ROW, "opened_at": 5}]),
            "x.json: crm_tickets, row 1, column opened_at: 5 does not fit; this must be a moment",
        ),
    ],
)  # fmt: skip
async def test_what_is_no_data_is_refused(desk: Desk, name: str, content: str, told: str):
    (desk.folder / name).write_text(content)

    ended = await desk.run("worlds", "data", "import", "crm", name, "--entity", "crm_tickets")

    assert ended.code == AT_FAULT
    assert f"fault: {told}" in ended.out


async def test_an_import_to_what_is_not_there_is_refused(desk: Desk):
    (desk.folder / "x.csv").write_text(HEADER + LINE)
    (desk.folder / "x.txt").write_text("x")

    unknown = await desk.run("worlds", "data", "import", "crm", "x.csv")
    other = await desk.run("worlds", "data", "import", "crm", "x.txt")

    assert (unknown.code, unknown.out) == (
        AT_FAULT,
        "fault: --entity: no entity is named 'x'. Name one of: crm_accounts, crm_tickets.\n",
    )
    assert other.code == WRONG_USAGE
    (desk.folder / "crm" / "schema" / "world.json").unlink()
    (desk.folder / "crm" / "data" / "initial.json").unlink()
    untyped = await desk.run("worlds", "data", "import", "crm", "x.csv")
    assert "the types of 'x' are not known: CSV needs a table" in untyped.out
    (desk.folder / "x.json").write_text(json.dumps({"a b": [{"id": 1}], "t": [{"id": 1}]}))
    named = await desk.run("worlds", "data", "import", "crm", "x.json")
    assert "fault: x.json: a b: 'a b' is no name here: " in named.out
    (desk.folder / "x.json").write_text(json.dumps({"t": [{"id": 1}]}))
    assert (await desk.run("worlds", "data", "import", "crm", "x.json")).code == GOOD


async def test_of_many_faults_the_first_20_are_told_and_the_rest_counted(desk: Desk):
    lines = (LINE.replace("T-9", f"B-{number}") for number in range(100_000))
    text = HEADER + "".join(lines)
    (desk.folder / "good.csv").write_text(text)
    (desk.folder / "bad.csv").write_text(text.replace("low", "lo"))
    add = ("worlds", "data", "import", "crm", "--entity", "crm_tickets")

    bad = await desk.run(*add, "bad.csv")
    good = await desk.good(*add, "good.csv")

    told = bad.out.splitlines()
    assert len(told) == 21
    assert told[19].startswith("fault: bad.csv: crm_tickets, row 20, column priority: 'lo' is not")
    assert told[20] == "fault: bad.csv: and 99,980 faults more. Nothing was imported."
    assert good.endswith("there are 100,008 now.\n")


async def test_what_handlers_print_does_not_get_into_the_answer(desk: Desk):
    handlers = desk.folder / "crm" / "tools" / "handlers.py"
    handlers.write_text(f"print('hello')\n{handlers.read_text()}")

    for words in (
        ("check", "crm"),
        ("validate", "crm"),
        ("dry-run", "crm", "--task", "close_ticket"),
    ):
        assert (await desk.document("benchmarks", *words))["ok"] is True


async def test_colours_are_for_terminals(desk: Desk):
    desk.write("verifiers/broken.sql", "SELECT")
    folder = desk.folder / "crm"

    piped = await desk.run("benchmarks", "check", folder)
    shown = await command.on_a_terminal("benchmarks", "check", folder)

    assert "\x1b" not in piped.out
    assert "\x1b[31mfault: verifiers/broken.sql" in shown.out
    assert shown.code == AT_FAULT


COMMANDS: list[Callable[[str], tuple[str, ...]]] = [
    lambda _: ("benchmarks", "check", "crm"),
    lambda _: ("benchmarks", "dry-run", "crm", "--task", "close_ticket"),
    lambda url: ("worlds", "call", url, "list_tickets", "--grade"),
]


async def test_check_dry_run_and_call_take_less_than_a_second_of_cpu(desk: Desk):
    async with desk.serving("close_ticket") as serving:
        for words in COMMANDS:
            assert await cpu_seconds(desk, command.PROGRAM, *words(serving.url)) < 1


async def test_help_takes_little_more_than_python_itself(desk: Desk):
    nothing = await cpu_seconds(desk, sys.executable, "-c", "pass")

    assert await cpu_seconds(desk, command.PROGRAM, "--help") < nothing + 0.3


async def cpu_seconds(desk: Desk, *words: str | Path) -> float:
    timed = await asyncio.create_subprocess_exec(
        *("bash", "-c", 'TIMEFORMAT="%U %S"; time "$@" >/dev/null', "time", *words),
        cwd=desk.folder,
        env=desk.environment,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await timed.communicate()
    assert timed.returncode == 0
    return sum(map(float, err.decode().split()[-2:]))


def leaves(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for each in group.list_commands(context):
        found = group.get_command(context, each)
        assert found is not None
        if isinstance(found, click.Group):
            yield from leaves(found, f"{name} {each}")
        else:
            yield f"{name} {each}", found


@pytest.mark.parametrize(("name", "found"), list(leaves(root, "wavetank")))
def test_every_command_has_json_and_an_example(name: str, found: click.Command):
    assert any("--json" in parameter.opts for parameter in found.params), name
    assert "Example:" in (found.epilog or ""), name
    assert all(isinstance(each, click.Argument) or each.help for each in found.params), name  # type: ignore[attr-defined]


async def test_a_world_of_another_host_is_not_shown_the_token_of_this_machine(desk: Desk) -> None:
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    async with desk.serving("close_ticket") as serving:
        port = serving.url.rpartition(":")[2]
        async with await asyncio.start_server(answer, "127.0.0.2", int(port)):
            await desk.run("worlds", "call", f"http://127.0.0.2:{port}", "--grade")

    (request,) = heard
    lines = [line.partition(b":") for line in request.lower().split(b"\r\n")]
    assert [value.strip() for name, _, value in lines if name == b"x-wavetank-token"] in ([], [b""])
