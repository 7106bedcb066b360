"""What a push finds wrong before it asks the cluster anything, and which worlds it would bring."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from wavetank.cli.packing import pieces_of
from wavetank.core.errors import SpecError
from wavetank.kube.objects import Manifest
from wavetank.testing.api_server import (
    Answer,
    ScriptedApiServer,
    gives,
    refuses,
    scripted_api_server,
)
from wavetank.testing.bundles import write_bundle
from wavetank.testing.command import wavetank

pytestmark = pytest.mark.component

SCHEMA = {
    "entities": [{"name": "notes", "key": ["id"], "fields": [{"name": "id", "type": "string"}]}]
}


def world(name: str, *more: str) -> Mapping[str, object]:
    """The files of a small world; ``more`` are lines of its gateway-env.toml."""
    lines = ["[world]", f'name = "{name}"', *more]
    return {
        "gateway-env.toml": "\n".join(lines) + "\n",
        "schema/world.json": SCHEMA,
        "verifiers/noted.sql": "SELECT COUNT(*) > 0 FROM notes",
    }


def link(alias: str, folder: str) -> str:
    return f'[dependencies.{alias}]\nworld = "{folder}"'


TASK = '[[tasks]]\nid = "note"\nprompt = "Note it."\nverifiers = ["noted"]'


@pytest.fixture
async def server() -> AsyncIterator[ScriptedApiServer]:
    async with scripted_api_server() as running:
        yield running


# --- which worlds -----------------------------------------------------------------------------


def brought(folder: Path, name: str | None = None) -> list[tuple[str, dict[str, str], bool]]:
    return [(p.name, p.links, p.has_tasks) for p in pieces_of(folder, name)]


def test_links_come_before_what_is_linked_to_them(tmp_path: Path) -> None:
    write_bundle(tmp_path / "desk", world("help-desk", link("chat", "../chat"), TASK))
    write_bundle(tmp_path / "chat", world("chat", link("files", "../files")))
    write_bundle(tmp_path / "files", world("files"))

    assert brought(tmp_path / "desk") == [
        ("files", {}, False),
        ("chat", {"files": "files"}, False),
        ("help-desk", {"chat": "chat"}, True),
    ]


def test_a_world_that_is_linked_to_twice_comes_once(tmp_path: Path) -> None:
    links = (link("left", "../chat"), link("right", "../chat"))
    write_bundle(tmp_path / "desk", world("desk", *links))
    write_bundle(tmp_path / "chat", world("chat"))

    assert brought(tmp_path / "desk") == [
        ("chat", {}, False),
        ("desk", {"left": "chat", "right": "chat"}, False),
    ]


def test_worlds_in_a_ring_come_once_each(tmp_path: Path) -> None:
    for own, other in (("a", "b"), ("b", "c"), ("c", "a")):
        write_bundle(tmp_path / own, world(own, link(other, f"../{other}")))

    assert [name for name, _, _ in brought(tmp_path / "a")] == ["c", "b", "a"]


def test_a_given_name_is_the_benchmarks_own(tmp_path: Path) -> None:
    write_bundle(tmp_path / "desk", world("desk", link("chat", "../chat")))
    write_bundle(tmp_path / "chat", world("chat"))

    assert [name for name, _, _ in brought(tmp_path / "desk", "mine")] == ["chat", "mine"]


def test_two_worlds_of_one_name_are_refused(tmp_path: Path) -> None:
    write_bundle(tmp_path / "desk", world("desk", link("chat", "../chat")))
    write_bundle(tmp_path / "chat", world("desk"))

    with pytest.raises(SpecError) as refused:
        pieces_of(tmp_path / "desk", None)

    words = "another of these worlds is named 'desk' too: change [world] name, or give --name"
    assert [(f.path, f.message.startswith(words)) for f in refused.value.findings] == [
        (str(tmp_path / "chat" / "gateway-env.toml"), True),
        (str(tmp_path / "desk" / "gateway-env.toml"), True),
    ]


# --- what is wrong ----------------------------------------------------------------------------


async def push(folder: Path, server: ScriptedApiServer, *more: str) -> tuple[int, str, str]:
    config = server.kubeconfig(folder.parent)
    words = ("benchmarks", "push", folder.name, "-n", "bench", "--kubeconfig", config)
    ended = await wavetank(*words, *more, cwd=folder.parent)
    return ended.code, ended.out, ended.err


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """A bundle with faults in itself, in a linked world, and in its tree."""
    task = '[[tasks]]\nid = "note"\nprompt = "Note it."\nverifiers = ["nted"]'
    write_bundle(tmp_path / "desk", world("desk", link("chat", "../chat"), task))
    write_bundle(tmp_path / "chat", {**world("chat"), "data/initial.json": "{"})
    (tmp_path / "desk" / "tools").symlink_to("/etc")
    return tmp_path / "desk"


async def test_all_faults_are_told_and_nothing_is_asked_of_the_cluster(
    faulty: Path, server: ScriptedApiServer
) -> None:
    code, out, err = await push(faulty, server)

    assert (code, err, server.asked) == (1, "3 faults in desk: nothing was written.\n", [])
    assert out == (
        "fault: linked/chat/data/initial.json: this is not JSON: "
        "Expecting property name enclosed in double quotes: line 1 column 2 (char 1).\n"
        "fault: gateway-env.toml: tasks[0].verifiers[0]: no verifier is named 'nted'. "
        "Name one of: noted.\n"
        "fault: desk/tools: is a symbolic link: put the file itself here\n"
    )


async def test_faults_as_json(faulty: Path, server: ScriptedApiServer) -> None:
    code, out, err = await push(faulty, server, "--json")

    document = json.loads(out)
    assert (code, err, document["ready"]) == (1, "", False)
    assert [finding["path"] for finding in document["findings"]] == [
        "linked/chat/data/initial.json",
        "gateway-env.toml: tasks[0].verifiers[0]",
        "desk/tools",
    ]


async def test_a_folder_that_holds_no_world_is_refused(
    tmp_path: Path, server: ScriptedApiServer
) -> None:
    folder = tmp_path / "desk"
    folder.mkdir()

    assert await push(folder, server) == (
        1,
        "",
        "desk: it holds no benchmark: a world has gateway-env.toml at its root.\n",
    )
    assert await push(folder, server, "--kind", "world") == (
        1,
        "",
        "desk: it holds no world: a world has gateway-env.toml at its root.\n",
    )


# --- names that are taken ---------------------------------------------------------------------


def held(kind: str, name: str, spec: Manifest) -> Answer:
    return gives({"kind": kind, "metadata": {"name": name, "generation": 1}, "spec": spec})


async def test_what_was_not_pushed_is_not_replaced(
    tmp_path: Path, server: ScriptedApiServer
) -> None:
    write_bundle(tmp_path / "desk", world("desk", TASK))
    inline = {"inline": [{"path": "gateway-env.toml", "content": ""}]}
    server.will(
        gives({}),  # the namespace
        held("World", "desk", {"source": inline}),
        held("Benchmark", "desk", {"world": {"worldRef": {"name": "other"}}}),
    )

    code, out, err = await push(tmp_path / "desk", server)

    assert (code, out, [asked.method for asked in server.asked]) == (1, "", ["GET"] * 3)
    assert err == (
        "World desk: bench has a World of this name that was not pushed: its source is inline. "
        "Delete it, or give this one another name: --name, or [world] name in "
        "desk/gateway-env.toml.\n"
        "Benchmark desk: bench has a Benchmark of this name that was not pushed: it has another "
        "world, or tasks of its own. Delete it, or give --name.\n"
    )


async def test_a_benchmark_of_another_kind_is_not_replaced(
    tmp_path: Path, server: ScriptedApiServer
) -> None:
    write_bundle(tmp_path / "desk", world("desk", TASK))
    server.will(
        gives({}), refuses(404, "NotFound"), held("Benchmark", "desk", {"harbor": {"image": "x"}})
    )

    code, _, err = await push(tmp_path / "desk", server)

    assert (code, [asked.method for asked in server.asked]) == (1, ["GET"] * 3)
    assert err.startswith("Benchmark desk: bench has a Benchmark of this name that was not pushed")
