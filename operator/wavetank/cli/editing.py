"""Changing the files of a bundle: whole or not at all, comments and order kept."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Comment, Item, Key, Table, Whitespace

from wavetank.bundles.world.config import CONFIG_FILE
from wavetank.bundles.world.files import read_text, read_toml
from wavetank.bundles.world.place import Place, Sink
from wavetank.cli.authoring import fault
from wavetank.core.errors import BugError, SpecError

Json = Mapping[str, object]


def replace_file(file: Path, text: str) -> None:
    """Write a file whole, or leave it as it was."""
    file.parent.mkdir(parents=True, exist_ok=True)
    target = file.resolve()
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(text.encode())
        if target.exists():
            part.chmod(target.stat().st_mode)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def append_task(folder: Path, task: Json) -> None:
    """Append a ``[[tasks]]`` entry to the bundle's file, after the last one.

    Raises:
        SpecError: When the file cannot be edited.
    """
    file = _File.read(folder)
    entry = tomlkit.table()
    for key, value in task.items():
        entry.add(key, _item(value))
    tasks = file.document.setdefault("tasks", tomlkit.aot())
    if not isinstance(tasks, AoT):
        words = "tasks stand in one inline list: write them as [[tasks]] tables first."
        raise fault(f"{CONFIG_FILE}: tasks", words)
    # What follows the last task, like a comment on [run], stays where it is: after the new one.
    if tasks.body:
        _move_tail(tasks.body[-1], entry)
    else:
        file.document.pop("tasks")
        file.start_block()
        file.document.append("tasks", tasks)
    tasks.append(entry)
    file.write({**file.plain, "tasks": [*file.plain.get("tasks", []), task]})


def add_dependency(folder: Path, alias: str, world: str) -> None:
    """Add ``[dependencies.<alias>]`` to the bundle's file, after the last one.

    Raises:
        SpecError: When the file cannot be edited.
    """
    file = _File.read(folder)
    entry = tomlkit.table()
    entry.add("world", world)
    links = file.document.get("dependencies")
    if links is None:
        file.start_block()
        links = tomlkit.table(is_super_table=True)
        links.append(alias, entry)
        file.document.append("dependencies", links)
    elif isinstance(links, Table):
        _move_tail(links, entry)
        links.append(alias, entry)
    else:
        words = "the links stand in one inline table: write them as [dependencies.<alias>] first."
        raise fault(f"{CONFIG_FILE}: dependencies", words)
    linked = {**file.plain.get("dependencies", {}), alias: {"world": world}}
    file.write({**file.plain, "dependencies": linked})


@dataclass
class _File:
    """A bundle's ``gateway-env.toml`` while it is edited."""

    path: Path
    document: tomlkit.TOMLDocument
    plain: dict[str, Any]
    """What it holds before the change."""
    newline: str

    @classmethod
    def read(cls, folder: Path) -> "_File":
        """Return the file for editing.

        Raises:
            SpecError: When it cannot be edited without changing more than is asked for.
        """
        sink = Sink()
        place = Place(sink, CONFIG_FILE)
        text = read_text(folder / CONFIG_FILE, place)
        plain = read_toml(folder / CONFIG_FILE, place) if text is not None else None
        if text is None or not isinstance(plain, dict):
            raise SpecError(sink.closed())
        newline = "\r\n" if "\r\n" in text else "\n"
        text = text.replace("\r\n", "\n")
        text += "" if text.endswith("\n") or not text else "\n"
        try:
            document = tomlkit.parse(text)
        except TOMLKitError as error:
            raise fault(CONFIG_FILE, f"this cannot be edited: {error}.") from error
        if document.as_string() != text:
            words = "its tables are scattered: put those of one kind, like [[tasks]], together."
            raise fault(CONFIG_FILE, f"this cannot be edited in its order: {words}")
        return cls(folder / CONFIG_FILE, document, plain, newline)

    def start_block(self) -> None:
        """End what is there with a blank line."""
        text = self.document.as_string()
        if text and not text.endswith("\n\n"):
            self.document.add(tomlkit.nl())

    def write(self, expected: Json) -> None:
        """Write the changed file.

        Raises:
            BugError: If it would hold anything but what is expected.
        """
        text = self.document.as_string().rstrip("\n") + "\n"
        if tomllib.loads(text) != expected:
            raise BugError(f"editing {self.path} would change more than was asked for")
        replace_file(self.path, text.replace("\n", self.newline))


def _item(value: object) -> Item:
    if isinstance(value, dict):
        table = tomlkit.inline_table()
        table.update(value)
        return table
    if isinstance(value, str) and "\n" in value and not ({"\\", '"'} & set(value)):
        return tomlkit.value(f'"""\n{value}"""')
    return tomlkit.item(value)


def _move_tail(last: Table, entry: Table) -> None:
    """Move blank lines and comments from the end of a table to the end of another."""
    body = _last_body(last.value)
    tail: list[Whitespace | Comment] = []
    while body and isinstance(found := body[-1][1], Whitespace | Comment):
        tail.append(found)
        body.pop()
    body.append((None, tomlkit.nl()))
    for each in reversed(tail):
        entry.add(each)


def _last_body(container: Container) -> list[tuple[Key | None, Item]]:
    body = container.body
    if body and isinstance(body[-1][1], Table):
        return _last_body(body[-1][1].value)
    return body
