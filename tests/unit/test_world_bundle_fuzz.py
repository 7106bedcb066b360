"""Reading never raises, whatever people wrote; and what has no fault can be served."""

import copy
import json
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wavetank.api.wire import WireFinding
from wavetank.bundles.world import ReadWorld, linked_folders, read
from wavetank.testing.bundles import CHAT, DESK, LINKED_CONFIG, write_bundle
from wavetank.worlds import database

WORDS = [
    "id", "name", "key", "fields", "type", "enum", "nullable", "references", "string", "json",
    "integer", "crm_accounts", "crm_accounts.id", "crm_tickets", "rowid", "_session", "main",
    "slack", "../slack", "..", "/", "\0", "\ud800", "a" * 200, "A-1", "2026-01-01", "ticket_closed",
    "entity", "where", "expect", "count", "min", "mode", "contains", "matches", "in", "gt", "status",
]  # fmt: skip
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, -(2**63) - 1, 10**400, 0, 1])
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
LINKED: Mapping[str, object] = {
    **DESK,
    "gateway-env.toml": LINKED_CONFIG,
    "verifiers/asserted.json": {
        "mode": "all",
        "assertions": [
            {
                "entity": "crm_tickets",
                "where": {"id": "T-7"},
                "expect": {"status": {"in": ["open"]}},
            },
            {"entity": "crm_accounts", "where": {}, "count": {"min": 1}},
        ],
    },
    "verifiers/checked.py": "def verify(world, trajectory):\n    return True\n",
}


@given(st.data())
def test_a_bundle_with_mutated_documents_is_read(data: st.DataObject) -> None:
    files: dict[str, Any] = copy.deepcopy(dict(LINKED))
    files["gateway-env.toml"] = tomllib.loads(LINKED_CONFIG)
    for _ in range(data.draw(st.integers(1, 4))):
        name = data.draw(st.sampled_from(["gateway-env.toml", *_documents()]))
        files[name] = _mutated(data, files[name])
    files["gateway-env.toml"] = _as_toml(files["gateway-env.toml"])

    check(files)


@given(
    st.dictionaries(
        st.sampled_from(
            [*LINKED, "benchmark.json", "connector.toml", "verifiers/é.sql", "scripts"]
        ),
        st.binary(max_size=40) | st.text(max_size=40) | VALUES,
        max_size=4,
    )
)
def test_a_bundle_with_any_content_in_its_files_is_read(files: Mapping[str, Any]) -> None:
    check({**LINKED, **files})


@given(
    st.fixed_dictionaries({"gateway-env.toml": st.just(DESK["gateway-env.toml"])}),
    st.dictionaries(
        st.sampled_from(["data/initial.json", "schema/world.json", "benchmark.json"]), VALUES
    ),
)
def test_a_bundle_of_arbitrary_documents_is_read(
    config: Mapping[str, Any], files: Mapping[str, Any]
) -> None:
    check({**config, **files})


def test_a_document_nested_too_deeply_is_a_fault() -> None:
    deep = "[" * 100_000

    check({**LINKED, "data/initial.json": deep, "schema/world.json": deep})


def test_files_and_folders_in_each_others_place_are_faults() -> None:
    for path in LINKED:
        files = {each: content for each, content in LINKED.items() if each != path}

        assert check({**files, f"{path}/file": "x"}).findings

    for folder in ("schema", "data", "tools", "verifiers", "solutions", "scripts"):
        files = {each: text for each, text in LINKED.items() if not each.startswith(folder)}

        assert check({**files, folder: "x"}).findings


def check(files: Mapping[str, Any]) -> ReadWorld:
    folder = Path(tempfile.mkdtemp())
    try:
        write_bundle(folder / "slack", CHAT)
        main = write_bundle(folder / "crm", _encodable(files))
        world = read(main, linked_folders(main))
        for finding in world.findings:
            WireFinding(
                severity=finding.severity, path=finding.path, message=finding.message
            ).model_dump_json()
        if not world.faults:
            database.create(world.worlds).end()
        return world
    finally:
        shutil.rmtree(folder)


def _documents() -> list[str]:
    return [path for path in LINKED if path.endswith(".json")]


def _encodable(files: Mapping[str, Any]) -> dict[str, object]:
    found: dict[str, object] = {}
    for path, content in files.items():
        if isinstance(content, str):
            found[path] = content.encode("utf-8", "surrogatepass")
        else:
            found[path] = content
    return found


def _mutated(data: st.DataObject, value: object) -> object:
    """Replace, remove or add something somewhere below a value."""
    if isinstance(value, dict) and value and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: _mutated(data, value[key])}
    if isinstance(value, list) and value and data.draw(st.booleans()):
        index = data.draw(st.integers(0, len(value) - 1))
        return [*value[:index], _mutated(data, value[index]), *value[index + 1 :]]
    match data.draw(st.integers(0, 2)), value:
        case 0, dict():
            return {**value, data.draw(st.sampled_from(WORDS)): data.draw(VALUES)}
        case 1, dict() if value:
            gone = data.draw(st.sampled_from(sorted(value)))
            return {key: each for key, each in value.items() if key != gone}
        case 0, list():
            return [*value, data.draw(st.sampled_from(value) if value else VALUES)]
        case _:
            return data.draw(VALUES)


def _as_toml(value: object) -> str:
    """Return a TOML document as near to a value as TOML can be."""
    if not isinstance(value, dict):
        return json.dumps(value)
    return "".join(f"{json.dumps(key)} = {_inline(each)}\n" for key, each in value.items())


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(each) for each in value) + "]"
    if value is None:
        return '"null"'
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value)
