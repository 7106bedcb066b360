"""docs/getting-started.md and the skill of the same name, done step by step."""

import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest

from wavetank.testing.command import PROGRAM

PAGE = (Path(__file__).parents[2] / "docs" / "getting-started.md").read_text()
SKILL = (files("wavetank.cli") / "skills" / "benchmarks-getting-started.md").read_text()

BLOCK = re.compile(r"(?:^`([^`\n]+)`:\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class File:
    path: str
    text: str


@dataclass(frozen=True)
class Command:
    line: str
    output: str
    """What the page says it prints; empty when it says nothing."""


def steps(text: str) -> Iterator[File | Command]:
    for path, language, body in BLOCK.findall(text):
        if path:
            yield File(path, body)
        elif language == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                line, _, output = part.partition("\n")
                yield Command(line, output)


def test_the_skill_has_the_steps_of_the_page():
    assert list(steps(SKILL)) == list(steps(PAGE))


def test_the_skill_is_what_the_command_prints():
    command = [PROGRAM, "worlds", "skill", "benchmarks-getting-started"]

    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == SKILL


@pytest.fixture
def port() -> str:
    """A free one, in place of the page's 8080."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def test_every_step_does_what_the_page_says(tmp_path: Path, port: str):
    environment = {**os.environ, "HOME": str(tmp_path / "home")}
    background: list[subprocess.Popen[str]] = []
    for step in steps(PAGE):
        if isinstance(step, File):
            (tmp_path / step.path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / step.path).write_text(step.text)
            continue
        words = shlex.split(step.line.replace("8080", port))
        assert words[0] == "wavetank"
        if words[-1] == "&":
            process = subprocess.Popen(
                [PROGRAM, *words[1:-1]],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            background.append(process)
            assert process.stdout is not None
            process.stdout.readline()  # it is ready when it says so
            continue
        done = subprocess.run(
            [PROGRAM, *words[1:]], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, (step.line, done.stdout, done.stderr)
        if step.output:
            assert done.stdout == step.output
    for process in background:
        process.communicate(timeout=30)
    assert [process.returncode for process in background] == [0]
