"""Whatever is wrong with a bundle, `check` and `validate` tell it, all of it, with exit code 1."""

import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import click
import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavetank.cli.main import root
from wavetank.testing import command
from wavetank.testing.bundles import CHAT, CONFIG, DATA, DESK, HANDLERS, LINKED_CONFIG, write_bundle

GOOD, AT_FAULT = 0, 1

VERIFIERS: Mapping[str, tuple[str, str]] = {
    "two_statements": (
        "SELECT 1.0; SELECT 0.0",
        "VerifierFailed on the untouched state: You can only execute one statement at a time.",
    ),
    "write": (
        "DELETE FROM crm_tickets",
        "VerifierFailed on the untouched state: not authorized; DELETE crm_tickets is refused",
    ),
    "two_columns": ("SELECT 1.0, 0.0", "RewardInvalid on the untouched state: 2 columns, not one"),
    "textual": ("SELECT 'yes'", "RewardInvalid on the untouched state: not a number in 0..1: 'yes'"),
    "too_much": ("SELECT 1.5", "RewardInvalid on the untouched state: not a number in 0..1: 1.5"),
    "loop": (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) FROM n",
        "VerifierTimeout on the untouched state: no answer within 10 s",
    ),
    "attach": (
        "ATTACH 'x.db' AS x",
        "VerifierFailed on the untouched state: not authorized; ATTACH x.db is refused",
    ),
    "pragma": (
        "PRAGMA user_version = 3",
        "VerifierFailed on the untouched state: not authorized; PRAGMA user_version 3 is refused",
    ),
    "extension": (
        "SELECT load_extension('x')",
        "VerifierFailed on the untouched state: not authorized to use function: load_extension",
    ),
    "broken": ("SELECT 1.0 FROM", "VerifierFailed on the untouched state: incomplete input"),
    "no_table": ("SELECT 1.0 FROM nope", "VerifierFailed on the untouched state: no such table: nope"),
}  # fmt: skip
MISSING: Mapping[str, tuple[str, str]] = {
    "no_row": (
        "SELECT 1.0 FROM crm_tickets WHERE 0",
        "RewardMissing on the untouched state: the statement answered no row.",
    ),
    "null": ("SELECT NULL", "RewardMissing on the untouched state: the statement answered NULL."),
}


async def test_every_verifier_that_cannot_grade_is_named_in_one_go(tmp_path: Path):
    written = {**VERIFIERS, **MISSING}
    files = {f"verifiers/{name}.sql": statement for name, (statement, _) in written.items()}
    folder = write_bundle(tmp_path / "crm", {**DESK, **files})

    ended = await command.wavetank("benchmarks", "check", folder, HOME=str(tmp_path))

    assert ended.code == AT_FAULT
    told = ended.out.splitlines()
    for severity, verifiers in (("fault", VERIFIERS), ("warning", MISSING)):
        for name, (_, words) in verifiers.items():
            start = f"{severity}: verifiers/{name}.sql: {words}"
            assert any(line.startswith(start) for line in told), start
    assert told[-1].endswith("11 faults, 2 warnings.")
    scores = dict(re.findall(r"^verifiers\.(\w+)\.initial_score  (.*)$", ended.out, re.MULTILINE))
    assert scores == {
        **dict.fromkeys(("two_statements", "write", "attach", "pragma"), "null  VerifierFailed"),
        **dict.fromkeys(("extension", "broken", "no_table"), "null  VerifierFailed"),
        **dict.fromkeys(("two_columns", "textual", "too_much"), "null  RewardInvalid"),
        **dict.fromkeys(("no_row", "null"), "null  RewardMissing"),
        "loop": "null  VerifierTimeout",
        "ticket_closed": "0.0",
    }


def changed(name: str, key: str, value: object) -> dict[str, object]:
    """The data with one value of an entity's first row changed."""
    first, *others = DATA[name]  # type: ignore[misc]
    return {**DATA, name: [{**first, key: value}, *others]}  # type: ignore[dict-item]


WRONG: Mapping[str, tuple[Mapping[str, object], str]] = {
    "a verifier's file is missing": (
        {"verifiers/ticket_closed.sql": None, "verifiers/other.sql": "SELECT 0.0"},
        "gateway-env.toml: tasks[0].verifiers[0]: no verifier is named 'ticket_closed'. "
        "Name one of: other.",
    ),
    "two files of one verifier": (
        {"verifiers/ticket_closed.py": "def verify(world, trajectory): return 0.0"},
        "verifiers/ticket_closed.sql: there is a ticket_closed.py already.",
    ),
    "a task's id is given twice": (
        {"gateway-env.toml": CONFIG + CONFIG.partition("\n\n")[2]},
        "gateway-env.toml: tasks[1].id: the id 'close_ticket' is given twice.",
    ),
    "a task's id is none": (
        {"gateway-env.toml": CONFIG.replace('"close_ticket"', '"1 close"')},
        "gateway-env.toml: tasks[0].id: '1 close' is no name",
    ),
    "an alias is not linked": (
        {"gateway-env.toml": CONFIG + 'worlds = { slack = ["told"] }\n'},
        "gateway-env.toml: tasks[0].worlds.slack: no world is linked as 'slack'.",
    ),
    "a linked folder is not there": (
        {"gateway-env.toml": CONFIG + '[dependencies.slack]\nworld = "../nowhere"\n'},
        "gateway-env.toml: dependencies.slack: the world '../nowhere' is not there.",
    ),
    "a key is not known": (
        {"gateway-env.toml": CONFIG.replace("prompt =", 'promt = "x"\nprompt =')},
        "gateway-env.toml: tasks[0]: the key 'promt' is not known.",
    ),
    "the file is no TOML": ({"gateway-env.toml": "[world"}, "gateway-env.toml: this is not TOML"),
    "a column is not known": (
        {"data/initial.json": changed("crm_tickets", "stat", "open")},
        "data/initial.json: crm_tickets[0].stat: crm_tickets has no field 'stat'.",
    ),
    "a value is of another type": (
        {"data/initial.json": changed("crm_accounts", "name", 7)},
        "data/initial.json: crm_accounts[0].name: 7 does not fit; this must be a string.",
    ),
    "a reference leads nowhere": (
        {"data/initial.json": changed("crm_tickets", "account_id", "A-9")},
        "data/initial.json: crm_tickets[0].account_id: there is no crm_accounts whose id is 'A-9'.",
    ),
    "a key is there twice": (
        {"data/initial.json": changed("crm_tickets", "id", "T-8")},
        "data/initial.json: crm_tickets[1]: the key (id) = ('T-8') is already that of",
    ),
    "a tool has no types": (
        {"tools/handlers.py": HANDLERS.replace("id: str, status", "id, status")},
        "tools/handlers.py: the tool 'update_ticket' cannot be called: ",
    ),
    "handlers raise when they are imported": (
        {"tools/handlers.py": "x = 1\nraise ValueError('no')\n"},
        "tools/handlers.py: importing it raised at line 2: ValueError: no",
    ),
    "handlers end the process": (
        {"tools/handlers.py": "import os\nos._exit(0)\n"},
        "tools/handlers.py: importing it did not end: its process ended by itself.",
    ),
    "a task passes untouched": (
        {"verifiers/ticket_closed.sql": "SELECT 1.0"},
        "gateway-env.toml: tasks: TrivialTask: 'close_ticket' has the reward 1 before the agent",
    ),
    "a solution is of no task": (
        {"solutions/other.json": []},
        "solutions/other.json: no task is named 'other'. Name one of: close_ticket.",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_bundle_is_refused_when(name: str, tmp_path: Path):
    change, told = WRONG[name]
    folder = write_bundle(tmp_path / "crm", {**DESK, **change})

    for command_name in ("check", "validate"):
        code, out = called("benchmarks", command_name, str(folder))

        assert code == AT_FAULT
        assert f"fault: {told}" in out


def test_all_faults_of_a_bundle_are_told_in_one_go(tmp_path: Path):
    names = (
        "a key is not known",
        "a reference leads nowhere",
        "handlers raise when they are imported",
        "two files of one verifier",
        "a solution is of no task",
    )
    files = {path: content for name in names for path, content in WRONG[name][0].items()}
    broken = {"verifiers/broken.sql": "SELECT", "schema/world.json": {"entities": [], "x": 1}}
    folder = write_bundle(tmp_path / "crm", {**DESK, **files})

    code, out = called("benchmarks", "check", str(folder))

    assert code == AT_FAULT
    assert [name for name in names if f"fault: {WRONG[name][1]}" not in out] == []
    write_bundle(folder, broken)
    _, out = called("benchmarks", "check", str(folder))
    assert "fault: schema/world.json: the key 'x' is not known." in out


def test_a_solution_that_does_not_solve_is_told_with_what_it_met(tmp_path: Path):
    steps = [{"tool": "update_ticket", "arguments": {"id": "T-99", "status": "closed"}}]
    folder = write_bundle(tmp_path / "crm", {**DESK, "solutions/close_ticket.json": steps})

    code, out = called("benchmarks", "validate", str(folder))

    assert code == AT_FAULT
    assert (
        "fault: solutions/close_ticket.json: the solution does not reach the reward 1: "
        "ticket_closed is 0; replay: call 1 of 1, update_ticket: 422 ToolError: "
        "there is no ticket T-99.\n"
    ) in out


def test_a_path_that_no_bundle_may_hold_is_told_by_validate(tmp_path: Path):
    folder = write_bundle(tmp_path / "crm", DESK)
    (folder / "link").symlink_to(tmp_path)

    code, out = called("benchmarks", "validate", str(folder))

    assert code == AT_FAULT
    assert "link" in out


def called(*words: str) -> tuple[int, str]:
    """Call a command within this process; return its exit code and what it prints on stdout."""
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(StringIO()):
        try:
            root.main(list(words), prog_name="wavetank", standalone_mode=False)
        except SystemExit as ended:
            return int(ended.code or 0), out.getvalue()
        except click.ClickException as refused:
            return refused.exit_code, out.getvalue()
    return 0, out.getvalue()


# --- any bundle ---------------------------------------------------------------------------------

WORDS = ["", "id", "x", "crm_tickets", "ticket_closed", "../slack", "\0", "é", "a" * 300, "T-7"]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner),
    max_leaves=6,
)
PROGRAMS = [
    "",
    "x = (",
    "raise SystemExit(3)",
    "import os; os._exit(1)",
    "@tool\ndef f(): pass",
    "\0",
]
STATEMENTS = [
    "",
    "SELECT",
    "SELECT 1",
    "SELECT 1; SELECT",
    "\0",
    "SELECT x'00'",
    "PRAGMA page_size",
]


def content_of(path: str) -> st.SearchStrategy[object]:
    if path.endswith(".py"):
        return st.sampled_from(PROGRAMS) | st.text(max_size=30)
    if path.endswith(".sql"):
        return st.sampled_from(STATEMENTS) | st.text(max_size=30)
    if path.endswith(".toml"):
        lines = CONFIG.splitlines()
        return st.permutations(lines).map(lambda those: "\n".join(those[: len(lines) // 2]))
    return VALUES | st.binary(max_size=20)


@hypothesis.settings(max_examples=200)
@given(st.data())
def test_no_bundle_makes_check_fail_in_another_way_than_by_telling(data: st.DataObject):
    files: dict[str, Any] = dict(data.draw(st.sampled_from([DESK, LINKED])))
    for path in data.draw(st.lists(st.sampled_from([*LINKED, *MORE]), max_size=4, unique=True)):
        files[path] = data.draw(st.none() | content_of(path))
    with tempfile.TemporaryDirectory() as name:
        write_bundle(Path(name) / "slack", CHAT)
        folder = write_bundle(Path(name) / "crm", files)

        code, out = called("benchmarks", "check", str(folder))

    assert "Traceback" not in out
    has_faults = re.search(r"^fault: ", out, re.MULTILINE) is not None
    assert code == (AT_FAULT if has_faults else GOOD)


LINKED: Mapping[str, object] = {**DESK, "gateway-env.toml": LINKED_CONFIG}
MORE = [
    "verifiers/more.sql",
    "verifiers/more.json",
    "verifiers/more.py",
    "connector.toml",
    "scripts/a/b.json",
]


# --- editing ------------------------------------------------------------------------------------


def tomls() -> Iterator[str]:
    task = '[[tasks]]\nid = "a" # why\nprompt = "p"\nverifiers = ["ticket_closed"]\n'
    world = '[world]\nname = "crm"\n'
    yield f"# top\n{world}\n{task}\n# How to run\n[run]\nk = 3 # three\n"
    yield f"{world}{task}".rstrip("\n")
    yield f"{world}\n[run]\nk = 3\n"
    yield f"[run]\nk = 3\n\n{world}\n"
    yield f"{world}\n{task}\n[dependencies.chat]\nworld = '../slack'\n\n[run]\nk = 3\n"
    yield f"{task}\n{world}\n[dependencies]\nchat = {{ world = '../slack' }} # here\n\n[run]\nk = 3\n"
    yield f'dependencies.chat.world = "../slack"\n{world}'
    yield f"{world}\n{task}\n# the end".replace("\n", "\r\n")


@pytest.mark.parametrize("before", list(tomls()))
@pytest.mark.parametrize("what", ["task", "link"])
def test_an_edit_adds_its_lines_and_keeps_all_others(what: str, before: str, tmp_path: Path):
    write_bundle(tmp_path / "slack", CHAT)
    folder = write_bundle(tmp_path / "crm", {**DESK, "gateway-env.toml": before.encode()})
    if what == "task":
        add = ("task", "add", str(folder), "b", "--prompt", "two\nlines", "--verifier")
        words = ("worlds", "schema", *add, "ticket_closed")
    else:
        words = ("worlds", "schema", "link", str(folder), "more", str(tmp_path / "slack"))

    assert called(*words)[0] == GOOD

    after = (folder / "gateway-env.toml").read_bytes().decode()
    assert ("\r\n" in after) == ("\r\n" in before)
    rest = iter(after.splitlines())
    assert all(line in rest for line in before.splitlines() if line)
    document = tomllib.loads(after)
    if what == "task":
        assert document["tasks"][-1] == {
            "id": "b",
            "prompt": "two\nlines",
            "verifiers": ["ticket_closed"],
        }
    else:
        assert document["dependencies"]["more"] == {"world": "../slack"}


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (
            '[world]\nname = "crm"\n[[tasks]]\nid = "a"\n[run]\n[[tasks]]\nid = "b"\n',
            "are scattered",
        ),
        ('world = { name = "crm" }\ndependencies = {}\n', "stand in one inline table"),
        ("[world", "this is not TOML"),
    ],
)
def test_a_file_that_cannot_be_edited_in_its_order_is_refused(
    before: str, told: str, tmp_path: Path
):
    write_bundle(tmp_path / "slack", CHAT)
    folder = write_bundle(tmp_path / "crm", {**DESK, "gateway-env.toml": before})

    code, out = called("worlds", "schema", "link", str(folder), "more", str(tmp_path / "slack"))

    assert code == AT_FAULT
    assert told in out
    assert (folder / "gateway-env.toml").read_text() == before
