"""From a function with a docstring to a tool with a schema."""

from pathlib import Path

import pytest

from wavetank.bundles.world import JsonValue, linked_folders, read
from wavetank.testing.bundles import CHAT, DESK, LINKED_CONFIG, write_bundle
from wavetank.worlds.docstrings import Described, parse
from wavetank.worlds.tools import Toolset, load

HEAD = "from typing import Annotated, Literal\nfrom wavetank.worlds import World, tool\n\n\n"


def loaded(tmp_path: Path, code: str) -> Toolset:
    return load(read(write_bundle(tmp_path, {**DESK, "tools/handlers.py": HEAD + code}), {}))


def told(toolset: Toolset) -> list[str]:
    return [str(finding) for finding in toolset.findings]


def schema_of(tmp_path: Path, parameters: str) -> JsonValue:
    toolset = loaded(tmp_path, f"@tool\ndef act(world: World, {parameters}) -> None:\n    ...\n")
    assert told(toolset) == []
    return toolset.tools["act"].arguments.schema


def test_parameters_become_a_closed_schema(tmp_path: Path) -> None:
    assert schema_of(tmp_path, "id: str, n: int = 3, *, tags: list[str] | None = None") == {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "n": {"type": "integer", "default": 3},
            "tags": {
                "anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}],
                "default": None,
            },
        },
        "required": ["id"],
        "additionalProperties": False,
    }


def test_names_that_pydantic_uses_itself_are_names_like_others(tmp_path: Path) -> None:
    schema = schema_of(tmp_path, "schema: str, json: str, copy: str, _x: str, model_config: str")

    assert isinstance(schema, dict)
    assert schema["required"] == ["schema", "json", "copy", "_x", "model_config"]


def test_a_tool_without_arguments_takes_an_empty_object(tmp_path: Path) -> None:
    assert schema_of(tmp_path, "") == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", "3"),
        ("int", 3.5),
        ("int", True),
        ("str", 3),
        ("bool", 1),
        ("float", "1.5"),
        ('Literal["a"]', "b"),
        ("list[int]", "12"),
        ("str", None),
    ],
)
def test_nothing_is_silently_converted(tmp_path: Path, kind: str, value: JsonValue) -> None:
    toolset = loaded(tmp_path, f"@tool\ndef act(world: World, x: {kind}) -> None:\n    ...\n")

    with pytest.raises(ValueError, match="validation error"):
        toolset.tools["act"].arguments.validated({"x": value})


def test_models_within_arguments_are_strict_too(tmp_path: Path) -> None:
    code = (
        "import pydantic\n"
        "class Change(pydantic.BaseModel):\n    n: int\n"
        "@tool\ndef act(world: World, change: Change) -> None:\n    ...\n"
    )
    arguments = loaded(tmp_path, code).tools["act"].arguments

    assert arguments.validated({"change": {"n": 3}})
    with pytest.raises(ValueError, match=r"change\.n"):
        arguments.validated({"change": {"n": "3"}})


def test_annotations_may_be_postponed(tmp_path: Path) -> None:
    code = "from __future__ import annotations\n" + HEAD
    code += "@tool\ndef act(world: World, n: Literal[1, 2]) -> None: ...\n"
    files = {**DESK, "tools/handlers.py": code}

    toolset = load(read(write_bundle(tmp_path, files), {}))

    assert told(toolset) == []
    assert list(toolset.tools) == ["act"]


def test_a_default_is_left_to_the_function(tmp_path: Path) -> None:
    toolset = loaded(tmp_path, "@tool\ndef act(world: World, x: int = 3) -> None:\n    ...\n")

    assert toolset.tools["act"].arguments.validated({}) == {}


def test_only_marked_functions_are_tools_in_the_files_order(tmp_path: Path) -> None:
    code = (
        "@tool\ndef second(world: World) -> None: ...\n"
        "def helper(world: World) -> None: ...\n"
        "@tool\nasync def first(world: World) -> None: ...\n"
        "alias = second\n"
    )

    assert list(loaded(tmp_path, code).tools) == ["second", "first"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0\n", "importing it raised at line 5: ZeroDivisionError: division by zero"),
        ("def (:\n", "importing it raised at line 5: SyntaxError: invalid syntax"),
        ("raise SystemExit(3)\n", "importing it raised at line 5: SystemExit: 3"),
        (
            "@tool\ndef act(world: World, x) -> None: ...\n",
            "the tool 'act' cannot be called: the parameter 'x' has no type. Annotate it.",
        ),
        (
            "@tool\ndef act() -> None: ...\n",
            "the tool 'act' cannot be called: it has no parameter. The first one takes the World.",
        ),
        (
            "@tool\ndef act(world: World, *names: str) -> None: ...\n",
            "the tool 'act' cannot be called: the parameter 'names' has no fixed name. Name each "
            "argument.",
        ),
        (
            "@tool\ndef act(world: World, x: 'Nothing') -> None: ...\n",
            "the tool 'act' cannot be called: its annotations cannot be read: name 'Nothing' is "
            "not defined.",
        ),
        (
            f"@tool\ndef {'a' * 65}(world: World) -> None: ...\n",
            f"'{'a' * 65}' is no name of a tool: at most 64 of letters, digits, '_', '-'.",
        ),
        ("", "no function is marked with @tool, so there are no tools."),
    ],
    ids=["raises", "syntax", "exits", "no type", "no world", "star", "unknown", "long", "none"],
)
def test_what_is_no_tool_is_told(tmp_path: Path, code: str, message: str) -> None:
    assert told(loaded(tmp_path, code)) == [f"tools/handlers.py: {message}"]


def test_a_type_without_a_schema_is_told(tmp_path: Path) -> None:
    toolset = loaded(tmp_path, "@tool\ndef act(world: World, x: World) -> None: ...\n")

    assert told(toolset)[0].startswith("tools/handlers.py: the arguments of 'act' have no JSON")


def test_linked_tools_carry_their_alias(tmp_path: Path) -> None:
    long = CHAT | {"tools/handlers.py": f"{HEAD}@tool\ndef {'a' * 58}(world: World) -> None: ...\n"}
    main = write_bundle(tmp_path / "crm", {**DESK, "gateway-env.toml": LINKED_CONFIG})
    write_bundle(tmp_path / "slack", long)

    toolset = load(read(main, linked_folders(main)))

    assert told(toolset) == [
        f"linked/slack/tools/handlers.py: 'slack__{'a' * 58}' is no name of a tool: at most 64 of "
        "letters, digits, '_', '-'."
    ]
    assert list(toolset.tools) == ["update_ticket", "list_tickets"]


def test_importing_leaves_nothing_in_the_authors_folder(tmp_path: Path) -> None:
    loaded(tmp_path, "@tool\ndef act(world: World) -> None: ...\n")

    assert [path.name for path in (tmp_path / "tools").iterdir()] == ["handlers.py"]


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        (None, Described()),
        ("Close it.", Described("Close it.")),
        (
            """Close it.

            For good.

            Args:
                id: The ticket,
                    like T-7.
                reason (str): Why: in one word.

            Returns:
                The ticket: closed.
            """,
            Described(
                "Close it.\n\nFor good.",
                {"id": "The ticket, like T-7.", "reason": "Why: in one word."},
            ),
        ),
    ],
)
def test_docstrings_are_read(docstring: str | None, expected: Described) -> None:
    assert parse(docstring) == expected
