"""Every page's code blocks are run, or held against what they are about.

| block | is |
| - | - |
| pycon | run as a doctest, a page's blocks one after the other |
| yaml | read; objects of Wavetank's kinds by their models |
| json, toml | read |
| sql | run on SQLite's grammar (EXPLAIN), unknown tables allowed |
| python | compiled |
| console | each line split as a shell does; its program, make target or command exists |
| text and none | shown to people only |
"""

import doctest
import json
import re
import shlex
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from wavetank.api import kinds
from wavetank.cli.main import root

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "charts/**/*.md")
    for path in ROOT.glob(pattern)
)
KINDS = {"World": kinds.World, "Benchmark": kinds.Benchmark, "Run": kinds.Run}
PROGRAMS = {
    "make",
    "kubectl",
    "helm",
    "wavetank",
    "python",
    "python3",
    "git",
    "cd",
    "curl",
    "apt-get",
}
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in BLOCK.finditer(text):
        indent = match[1]
        body = "".join(line.removeprefix(indent) for line in match[3].splitlines(keepends=True))
        yield Block(page, text.count("\n", 0, match.start()) + 1, match[2], body)


def every(*languages: str) -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.language in languages]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_blocks_are_of_known_languages():
    known = {"pycon", "yaml", "json", "toml", "sql", "python", "console", "text", ""}

    assert {block.language for page in PAGES for block in blocks(page)} <= known


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_examples_in_python_say_what_is_true(page: Path):
    text = "".join(block.text + "\n" for block in blocks(page) if block.language == "pycon")
    examples = doctest.DocTestParser().get_doctest(text, {}, named(page), named(page), 0)

    assert doctest.DocTestRunner().run(examples).failed == 0


@pytest.mark.parametrize("block", every("yaml"), ids=str)
def test_manifests_are_of_their_kinds(block: Block):
    for document in yaml.safe_load_all(block.text):
        if isinstance(document, dict) and document.get("apiVersion") == kinds.API_VERSION:
            kinds.read(KINDS[document["kind"]], document)  # type: ignore[type-var]


@pytest.mark.parametrize("block", every("json", "toml", "python"), ids=str)
def test_files_can_be_read(block: Block):
    readers: dict[str, Any] = {
        "json": json.loads,
        "toml": tomllib.loads,
        "python": lambda text: compile(text, str(block), "exec"),
    }

    readers[block.language](block.text)


@pytest.mark.parametrize("block", every("sql"), ids=str)
def test_statements_are_of_sqlites_grammar(block: Block):
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute(f"EXPLAIN {block.text}")
        except sqlite3.OperationalError as error:
            # A statement that is not understood never comes so far as its tables.
            if "no such table" not in str(error):
                raise


@pytest.mark.parametrize("block", every("console"), ids=str)
def test_commands_exist(block: Block):
    for words in commands(block):
        assert words[0] in PROGRAMS or words[0].startswith(".venv/bin/"), words
        if words[0] == "make":
            makefile = (ROOT / "Makefile").read_text()
            assert all(re.search(rf"^{name}:", makefile, re.MULTILINE) for name in words[1:]), words
        if words[0].startswith("python") and words[1] != "-m":
            assert (ROOT / words[1]).exists(), words
        if Path(words[0]).name == "wavetank":
            assert_is_understood(words)


def assert_is_understood(words: list[str]) -> None:
    """Fail unless the command line has this command, with these options and arguments."""
    end = next(
        (place for place, word in enumerate(words) if word in ("|", ">", "&", "&&")), len(words)
    )
    command: click.Command | None = root
    rest = words[1:end]
    context, name = click.Context(root, info_name="wavetank"), "wavetank"
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        command = command.get_command(context, name)
        assert command is not None, words
    try:
        command.make_context(name, rest, parent=context)
    except click.exceptions.Exit:
        pass  # --help, --version
    except click.BadParameter as error:
        # Readers have other folders than the ones that pages name.
        if "does not exist" not in error.message:
            raise


def commands(block: Block) -> Iterator[list[str]]:
    """The commands of a block, without the variables set before them.

    With a prompt somewhere, what stands without one is output.
    """
    lines = block.text.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    for line in lines:
        words = shlex.split(line, comments=True)
        words = [word for word in words if not re.fullmatch(r"[A-Z_]+=.*", word)]
        if words:
            yield words


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path):
    for target in LINK.findall(page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), target


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = BLOCK.sub("", page.read_text())
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_pictures_are_those_that_the_script_draws(tmp_path: Path):
    images = ROOT / "docs" / "images"

    subprocess.run([sys.executable, images / "draw.py", tmp_path], check=True)

    drawn = {path.name: path.read_text() for path in tmp_path.glob("*.svg")}
    kept = {path.name: path.read_text() for path in images.glob("*.svg")}
    assert drawn == kept, "run: python docs/images/draw.py"
