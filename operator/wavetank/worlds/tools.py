"""The tools of a session: the ``@tool`` functions of its world and of the linked ones."""

import importlib.machinery
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pydantic

from wavetank.bundles.world import ReadWorld, WorldBundle
from wavetank.core.errors import Finding, Severity
from wavetank.worlds.boundary import Escaped, guarded
from wavetank.worlds.docstrings import parse
from wavetank.worlds.schemas import Arguments, SignatureProblem
from wavetank.worlds.world import TOOL_MARK

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What the providers of models take as a tool's name."""
_HANDLERS = "tools/handlers.py"


@dataclass(frozen=True)
class Tool:
    """One tool as the agent sees it."""

    name: str
    """``update_ticket``; of a linked world ``slack__post_message``."""
    alias: str
    """The linked world's alias; empty for the benchmark's own world."""
    description: str
    arguments: Arguments
    function: Callable[..., object]


@dataclass(frozen=True)
class Toolset:
    """All tools of a session, and what is wrong with the handlers."""

    tools: Mapping[str, Tool]
    """By name: first the world's own in the file's order, then the linked ones."""
    findings: tuple[Finding, ...] = ()


def load(read: ReadWorld) -> Toolset:
    """Import the handlers of a world and its links and return their tools.

    This runs people's code. What escapes from it becomes a finding.
    """
    tools: dict[str, Tool] = {}
    findings: list[Finding] = []
    for world in read.worlds:
        for found in _tools_of(world):
            if isinstance(found, Finding):
                findings.append(found)
            elif found.name in tools:
                findings.append(_fault(world, f"there is a tool {found.name!r} already."))
            else:
                tools[found.name] = found
    return Toolset(tools, tuple(findings))


def _tools_of(world: WorldBundle) -> Iterator[Tool | Finding]:
    if world.handlers is None:
        return
    path = world.handlers
    module = guarded(lambda: imported(path, f"wavetank_handlers_{world.alias or 'main'}"))
    if isinstance(module, Escaped):
        yield _fault(world, f"importing it raised {line_in(path, module)}{module.last_line}")
        return
    marked = [
        each
        for each in vars(module.value).values()
        if inspect.isfunction(each) and hasattr(each, TOOL_MARK)
    ]
    if not marked:
        yield Finding(
            Severity.WARNING,
            _place(world),
            "no function is marked with @tool, so there are no tools.",
        )
    for function in dict.fromkeys(marked):
        yield _tool(world, function)


def _tool(world: WorldBundle, function: Callable[..., object]) -> Tool | Finding:
    own = function.__name__
    name = f"{world.alias}__{own}" if world.alias else own
    if not _NAME.fullmatch(name):
        return _fault(
            world, f"{name!r} is no name of a tool: at most 64 of letters, digits, '_', '-'."
        )
    described = parse(function.__doc__)
    try:
        arguments = Arguments(function, described)
    except SignatureProblem as problem:
        return _fault(world, f"the tool '{own}' cannot be called: {problem}")
    except (pydantic.errors.PydanticUserError, TypeError) as error:
        first = str(error).splitlines()[0]
        return _fault(world, f"the arguments of '{own}' have no JSON Schema: {first}")
    return Tool(name, world.alias, described.text, arguments, function)


def imported(path: Path, name: str) -> ModuleType:
    """Run the module in a file of people's and return it."""
    # Compiled from the source, so that no __pycache__ is left in the author's bundle.
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = ModuleType(name)
    module.__file__ = str(path)
    # Annotations are looked up by the module's name.
    sys.modules[name] = module
    exec(loader.source_to_code(loader.get_data(str(path)), str(path)), vars(module))  # noqa: S102
    return module


def line_in(path: Path, escaped: Escaped) -> str:
    """Return "at line 3: " for the last line of a file that the traceback went through."""
    line = escaped.error.lineno if isinstance(escaped.error, SyntaxError) else None
    trace = escaped.error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"at line {line}: " if line else ""


def _place(world: WorldBundle) -> str:
    return f"linked/{world.alias}/{_HANDLERS}" if world.alias else _HANDLERS


def _fault(world: WorldBundle, message: str) -> Finding:
    return Finding(Severity.FAULT, _place(world), message[:1000])
