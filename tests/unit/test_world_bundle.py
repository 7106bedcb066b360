"""Reading world bundles: what is right is read, and everything that is wrong is told at once."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wavetank.bundles.world import (
    FIXED_NOW,
    Assertion,
    Assertions,
    Entity,
    Field,
    FieldType,
    Half,
    Mode,
    ReadWorld,
    Reference,
    RunDefaults,
    Script,
    Task,
    ToolCall,
    VerifierKey,
    VerifierKind,
    linked_folders,
    read,
)
from wavetank.core.errors import Severity
from wavetank.testing.bundles import CONFIG, DESK, SCHEMA, write_bundle, write_linked

ONE_TASK = '[world]\nname = "crm"\n[[tasks]]\nid = "a"\nprompt = "Do."\n'


def reading(tmp_path: Path, **files: object) -> ReadWorld:
    """Read the desk with files replaced; None leaves one out."""
    return read(write_bundle(tmp_path / "crm", {**DESK, **files}), {})


def told(world: ReadWorld) -> list[str]:
    return [str(finding) for finding in world.findings]


def with_schema(fields: list[object], **entity: object) -> Mapping[str, object]:
    return {
        "schema/world.json": {"entities": [{"name": "t", "fields": fields, **entity}]},
        "data/initial.json": None,
    }


def test_the_desk_is_read_without_a_finding(tmp_path: Path) -> None:
    world = reading(tmp_path)

    assert told(world) == []
    assert world.main.name == "crm"
    assert world.main.instructions == "You work at a support desk."
    assert world.main.now == FIXED_NOW
    assert world.main.entities == (
        Entity(
            "crm_accounts",
            (Field("id", FieldType.STRING), Field("name", FieldType.STRING)),
            key=("id",),
        ),
        Entity(
            "crm_tickets",
            (
                Field("id", FieldType.STRING),
                Field("status", FieldType.STRING, enum=("open", "pending", "closed")),
                Field("close_reason", FieldType.STRING, nullable=True),
                Field("account_id", FieldType.STRING, references=Reference("crm_accounts", "id")),
            ),
            key=("id",),
            description="Support tickets.",
        ),
    )
    assert world.main.rows["crm_tickets"][1] == {
        "id": "T-8",
        "status": "pending",
        "close_reason": None,
        "account_id": "A-1",
    }
    assert world.tasks == (
        Task(
            "close_ticket",
            "Close ticket T-7 and record the reason as 'duplicate'.",
            ("ticket_closed",),
        ),
    )
    assert world.solutions == {
        "close_ticket": Script(
            (ToolCall("update_ticket", {"id": "T-7", "status": "closed", "reason": "duplicate"}),),
            "Closed.",
        )
    }


def test_links_are_read_where_the_file_says(tmp_path: Path) -> None:
    main = write_linked(tmp_path)

    world = read(main, linked_folders(main))

    assert told(world) == []
    assert linked_folders(main) == {"slack": tmp_path / "slack"}
    assert world.tasks[0].graders == (
        VerifierKey("", "ticket_closed"),
        VerifierKey("slack", "message_posted"),
    )
    assert str(world.tasks[0].graders[1]) == "slack/message_posted"
    assert world.linked["slack"].inferred == (
        "messages: key id; id integer, channel string, text string.",
    )


def test_all_faults_come_at_once_with_place_value_and_remedy(tmp_path: Path) -> None:
    config = (
        '[world]\nname = "CRM"\nnam = "x"\n[[tasks]]\nid = "1a"\nprompt = ""\n'
        'verifiers = ["ticket_closd"]\n[[tasks]]\nid = "b"\nprompt = "Do."\n'
        'verifiers = ["ticket_closd"]\nworlds = { slak = ["x"] }\n'
    )
    data = {
        "crm_accounts": [{"id": "A-1", "name": 3}],
        "crm_ticket": [],
        "crm_tickets": [{"id": "T-1", "status": "opne", "account_id": "A-9", "color": "red"}],
    }

    world = reading(tmp_path, **{"gateway-env.toml": config, "data/initial.json": data})

    assert told(world) == [
        "gateway-env.toml: world: the key 'nam' is not known. "
        "Name one of: name, description, instructions, now.",
        "gateway-env.toml: world.name: 'CRM' cannot name a World: lower-case letters, digits, '-' "
        "and '.', at most 63 characters, with a letter or digit at both ends.",
        "data/initial.json: crm_accounts[0].name: 3 does not fit; this must be a string.",
        "data/initial.json: crm_ticket: no entity is named 'crm_ticket'. "
        "Name one of: crm_accounts, crm_tickets.",
        "data/initial.json: crm_tickets[0].color: crm_tickets has no field 'color'. "
        "Name one of: id, status, close_reason, account_id.",
        "data/initial.json: crm_tickets[0].status: 'opne' is not allowed. "
        "Name one of: 'open', 'pending', 'closed'.",
        "gateway-env.toml: tasks[0].id: '1a' is no name: letters, digits, '_' and '-', not "
        "starting with a digit or '-', at most 128 characters.",
        "gateway-env.toml: tasks[0].prompt: this must not be empty.",
        "gateway-env.toml: tasks[1].verifiers[0]: no verifier is named 'ticket_closd'. "
        "Name one of: ticket_closed.",
        "gateway-env.toml: tasks[1].worlds.slak: no world is linked as 'slak'. "
        "There is none to name.",
        "solutions/close_ticket.json: no task is named 'close_ticket'. Name one of: b.",
    ]
    assert {finding.severity for finding in world.findings} == {Severity.FAULT}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"gateway-env.toml": None},
            "gateway-env.toml: the file is missing. A world bundle starts with it: [world] and its "
            "name.",
        ),
        (
            {"gateway-env.toml": "[world"},
            "gateway-env.toml: this is not TOML: Expected ']' at the end of a table declaration "
            "(at end of document).",
        ),
        (
            {"gateway-env.toml": CONFIG.replace("[world]", "[world]\nnow = 3")},
            "gateway-env.toml: world.now: 3 is no moment. Write it like 2026-01-31T09:00:00Z; "
            "without a zone it is UTC.",
        ),
        (
            {"gateway-env.toml": CONFIG + '[schema]\nfile = "../world.json"\n'},
            "gateway-env.toml: schema.file: there is no file '../world.json' in the bundle.",
        ),
        (
            {"gateway-env.toml": CONFIG + '[dependencies.slack]\nworld = "../slack"\n'},
            "gateway-env.toml: dependencies.slack: the world '../slack' is not there. Name a "
            "folder, relative to this one, or link a World of the cluster under this alias.",
        ),
        (
            {"gateway-env.toml": CONFIG + '[dependencies.main]\nworld = "../slack"\n'},
            "gateway-env.toml: dependencies.main: the alias 'main' is taken by the database. "
            "Choose another.",
        ),
        (
            {"gateway-env.toml": CONFIG + CONFIG.partition("\n\n")[2]},
            "gateway-env.toml: tasks[1].id: the id 'close_ticket' is given twice. Ids are unique.",
        ),
        (
            {"gateway-env.toml": CONFIG.replace('["ticket_closed"]', "[]")},
            "gateway-env.toml: tasks[0]: there is no verifier, here or of a linked world. Name at "
            "least one.",
        ),
        (
            {"gateway-env.toml": CONFIG + "timeout_seconds = 0\n"},
            "gateway-env.toml: tasks[0].timeout_seconds: this must be a whole number of at least "
            "1, not 0.",
        ),
        (
            {"gateway-env.toml": CONFIG + "[run]\nk = true\n"},
            "gateway-env.toml: run.k: this must be a whole number of at least 1, not True.",
        ),
        (
            {"data/initial.json": "{"},
            "data/initial.json: this is not JSON: Expecting property name enclosed in double "
            "quotes: line 1 column 2 (char 1).",
        ),
        (
            {"data/initial.json": '{"crm_accounts": [], "crm_accounts": []}'},
            "data/initial.json: this is not JSON: the key 'crm_accounts' is given twice in one "
            "object.",
        ),
        (
            {"data/initial.json": '{"crm_accounts": [{"id": NaN}]}'},
            "data/initial.json: this is not JSON: NaN is no JSON number.",
        ),
        (
            {"data/initial.json": b"\xff"},
            "data/initial.json: byte 0 is not UTF-8. Save the file as UTF-8.",
        ),
        (
            {"data/initial.json": {"crm_accounts": [{"id": "A", "name": "a"}] * 2}},
            "data/initial.json: crm_accounts[1]: the key (id) = ('A') is already that of "
            "crm_accounts[0]. Keys are unique.",
        ),
        (
            {
                "data/initial.json": {
                    "crm_tickets": [{"id": "T", "status": "open", "account_id": "A"}]
                }
            },
            "data/initial.json: crm_tickets[0].account_id: there is no crm_accounts whose id is "
            "'A'.",
        ),
        (
            {"data/initial.json": {"crm_accounts": [{"id": "A"}]}},
            "data/initial.json: crm_accounts[0].name: the value is missing, and 'name' is not "
            "nullable.",
        ),
        (
            {"schema/world.json": None, "data/initial.json": None},
            "schema/world.json: there is neither this file nor data/initial.json. A world has at "
            "least one table.",
        ),
        (
            {"schema/world.json": None, "data/initial.json": {"t": []}},
            "data/initial.json: t: the columns of a table without rows cannot be inferred. "
            "Describe it in schema/world.json, or give it a row.",
        ),
        (
            {"verifiers/ticket_closed.py": "def verify(): ..."},
            "verifiers/ticket_closed.sql: there is a ticket_closed.py already. One verifier has "
            "one file.",
        ),
        (
            {"verifiers/other.json": "{}"},
            "verifiers/other.json: assertions: there is none. Name at least one row that must be "
            "there.",
        ),
        (
            {"verifiers/ticket_closed.json": "{}"},
            "verifiers/ticket_closed.sql: there is a ticket_closed.json already. One verifier has "
            "one file.",
        ),
        (
            {"verifiers/other.py": "def verify(world, trajectory)\n    return 1\n"},
            "verifiers/other.py: this is not Python: line 1: expected ':'.",
        ),
        (
            {"verifiers/other.py": "\0"},
            "verifiers/other.py: this is not Python: source code string cannot contain null bytes.",
        ),
        (
            {"verifiers/other.py": "def check(world, trajectory): ...\n"},
            "verifiers/other.py: there is no function 'verify'. Write def verify(world, "
            "trajectory), and no async one.",
        ),
        (
            {"verifiers/other.py": "async def verify(world, trajectory): ...\n"},
            "verifiers/other.py: there is no function 'verify'. Write def verify(world, "
            "trajectory), and no async one.",
        ),
        (
            {"verifiers/other.py": "def verify(world): ...\n"},
            "verifiers/other.py: 'verify' does not take two arguments. Write def verify(world, "
            "trajectory).",
        ),
        (
            {"verifiers/other.py": "def verify(world, trajectory, *, strict): ...\n"},
            "verifiers/other.py: 'verify' does not take two arguments. Write def verify(world, "
            "trajectory).",
        ),
        (
            {"verifiers/notes.txt": "x"},
            "verifiers/notes.txt: 'notes.txt' is no verifier. Name it <name>.sql, "
            "<name>.json or <name>.py.",
        ),
        (
            {"verifiers/ticket_closed.sql": " \n"},
            "verifiers/ticket_closed.sql: the file is empty. Write one SQL statement that returns "
            "a number in 0..1.",
        ),
        (
            {"solutions/close_ticket.json": [{"final_answer": "x"}, {"tool": "a"}]},
            "solutions/close_ticket.json: [0]: the final answer must be the last step.",
        ),
        (
            {"scripts/lazy/close_ticket.json": [{"tool": "a", "args": {}}]},
            "scripts/lazy/close_ticket.json: [0]: the key 'args' is not known. Name one of: tool, "
            "arguments.",
        ),
        (
            {"connector.toml": "[vendor]\n"},
            "connector.toml: vendor: the key 'name' is missing.",
        ),
        (
            with_schema([{"name": "id", "type": "text"}]),
            "schema/world.json: entities[0].fields[0].type: no type is named 'text'. Name one of: "
            "string, integer, number, boolean, datetime, json.",
        ),
        (
            with_schema([{"name": "rowid", "type": "string"}]),
            "schema/world.json: entities[0].fields[0].name: the name 'rowid' is taken by the "
            "database. Choose another.",
        ),
        (
            with_schema([{"name": "a", "type": "string"}, {"name": "A", "type": "string"}]),
            "schema/world.json: entities[0].fields[1].name: 'A' is named twice in this entity.",
        ),
        (
            with_schema([{"name": "a", "type": "string"}], key=["b"]),
            "schema/world.json: entities[0].key[0]: no field is named 'b'. Name one of: a.",
        ),
        (
            with_schema([{"name": "a", "type": "string", "nullable": True}], key=["a"]),
            "schema/world.json: entities[0].key[0]: 'a' is nullable or json, which no key field "
            "can be.",
        ),
        (
            with_schema([{"name": "a", "type": "string", "references": "t.a"}]),
            "schema/world.json: entities[0].fields.a.references: 't.a' is not the key of t, so it "
            'does not name one row. Set "key": ["a"] there, or leave the reference out.',
        ),
        (
            with_schema([{"name": "a", "type": "string", "references": "u.a"}]),
            "schema/world.json: entities[0].fields.a.references: no entity is named 'u'. Name one "
            "of: t.",
        ),
        (
            with_schema([{"name": "a", "type": "integer", "enum": [1, True]}]),
            "schema/world.json: entities[0].fields[0].enum[1]: True does not fit; this must be a "
            "whole number of at most 64 bits.",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, Mapping) else "",
)
def test_what_is_wrong_is_told(tmp_path: Path, files: Mapping[str, object], expected: str) -> None:
    world = reading(tmp_path, **files)

    assert expected in told(world)


def test_a_world_without_handlers_is_warned_about(tmp_path: Path) -> None:
    world = reading(tmp_path, **{"tools/handlers.py": None})

    assert world.faults == ()
    assert told(world) == ["tools/handlers.py: there is no such file, so there are no tools."]


def test_where_only_the_agent_half_is_there_nothing_of_the_others_is_missed(
    tmp_path: Path,
) -> None:
    files = {**DESK, "verifiers/ticket_closed.sql": None, "solutions/close_ticket.json": None}

    world = read(write_bundle(tmp_path, files), {}, {Half.AGENT})

    assert told(world) == []
    assert world.tasks[0].verifiers == ("ticket_closed",)


def test_a_benchmarks_own_tasks_replace_those_of_the_world(tmp_path: Path) -> None:
    own = {"tasks": [{"id": "other", "prompt": "Do.", "verifiers": ["ticket_closed"]}]}

    world = reading(tmp_path, **{"benchmark.json": own})

    assert told(world) == []
    assert [task.id for task in world.tasks] == ["other"]


def test_the_fault_of_a_benchmarks_own_task_names_its_place(tmp_path: Path) -> None:
    own = {"tasks": [{"id": "other", "prompt": "Do.", "verifiers": ["nope"]}]}

    world = reading(tmp_path, **{"benchmark.json": own})

    assert told(world) == [
        "benchmark.json: tasks[0].verifiers[0]: no verifier is named 'nope'. "
        "Name one of: ticket_closed."
    ]


def test_a_world_that_links_back_is_a_cycle(tmp_path: Path) -> None:
    main = write_linked(tmp_path)
    write_bundle(
        tmp_path / "slack",
        {"gateway-env.toml": '[world]\nname = "slack"\n[dependencies.crm]\nworld = "../crm"\n'},
    )

    world = read(main, linked_folders(main))

    assert told(world) == [
        "linked/slack/gateway-env.toml: dependencies.crm: this links back to the world that links "
        "here as 'slack': a cycle."
    ]


def test_links_of_links_are_warned_about(tmp_path: Path) -> None:
    main = write_linked(tmp_path)
    write_bundle(
        tmp_path / "slack",
        {"gateway-env.toml": '[world]\nname = "slack"\n[dependencies.x]\nworld = "../x"\n'},
    )

    world = read(main, linked_folders(main))

    assert world.faults == ()
    assert told(world) == [
        "linked/slack/gateway-env.toml: dependencies.x: links of links are not followed: nothing "
        "of it is there in this world."
    ]


def test_types_are_inferred_from_all_values_of_a_column(tmp_path: Path) -> None:
    rows = [
        {
            "id": 1,
            "n": 1,
            "when": "2026-01-31T09:00:00Z",
            "day": "2026-01-31",
            "any": [1],
            "b": True,
        },
        {"id": 2, "n": 1.5, "when": "2026-01-31T09:00:00+01:00", "day": "x", "any": 3},
    ]

    world = reading(tmp_path, **{"schema/world.json": None, "data/initial.json": {"t": rows}})

    assert world.main.inferred == (
        "t: key id; id integer, n number, when datetime, day string, any json, b boolean or null.",
    )
    assert world.main.rows["t"][0]["n"] == 1.0


def test_the_moment_of_a_world_is_utc(tmp_path: Path) -> None:
    config = CONFIG.replace("[world]", "[world]\nnow = 2026-03-01T10:00:00+01:00")

    world = reading(tmp_path, **{"gateway-env.toml": config})

    assert world.main.now == datetime(2026, 3, 1, 9, tzinfo=UTC)


def test_what_a_run_takes_by_default_is_read(tmp_path: Path) -> None:
    run = '[run]\nmodels = ["openai/gpt-5-mini"]\nk = 3\nagent = "oracle"\n'

    world = reading(tmp_path, **{"gateway-env.toml": CONFIG + run})

    assert world.run == RunDefaults(("openai/gpt-5-mini",), 3, "oracle")


def test_of_a_file_with_many_faults_two_hundred_are_listed_and_the_rest_counted(
    tmp_path: Path,
) -> None:
    data = {"crm_accounts": [{"id": f"A-{n}", "name": n} for n in range(250)]}

    world = reading(tmp_path, **{"data/initial.json": data, "schema/world.json": SCHEMA})

    assert len(world.findings) == 201
    assert told(world)[-1] == "data/initial.json: and 50 findings more in this file."


@pytest.mark.parametrize(
    "arguments",
    [
        "world, trajectory",
        "*given",
        "world, trajectory, k=1",
        "w, t=None, /",
        "w, *rest, strict=True",
    ],
)
def test_a_python_check_may_take_its_two_arguments_in_any_way(
    tmp_path: Path, arguments: str
) -> None:
    source = f"def verify({arguments}):\n    return 1\n"

    assert told(reading(tmp_path, **{"verifiers/other.py": source})) == []


def test_a_verifier_is_of_the_kind_of_its_ending(tmp_path: Path) -> None:
    asserted = {"assertions": [{"entity": "crm_tickets", "where": {}, "count": 2}]}
    world = reading(
        tmp_path,
        **{
            "verifiers/two_tickets.json": asserted,
            "verifiers/any.py": "def verify(world, trajectory):\n    return 1\n",
        },
    )

    assert told(world) == []
    assert {name: each.kind for name, each in world.main.verifiers.items()} == {
        "any": VerifierKind.PYTHON,
        "ticket_closed": VerifierKind.SQL,
        "two_tickets": VerifierKind.ASSERTIONS,
    }
    assert world.main.verifiers["two_tickets"].assertions == Assertions(
        Mode.ALL, (Assertion("crm_tickets", (), (), 2, 2),)
    )
