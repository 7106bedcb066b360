"""What of a harbor tree or a verifiers package could be tasks on a world, by its files alone.

Nothing of it is run. A world task acts through tools on tables, and is graded on their end state or
on the agent's last message; so what decides is what a task's graders look at.
"""

import ast
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wavetank.cli.authoring import fault

_MOST_BYTES = 1_000_000
"""Of a file that is read: graders are small."""
_SHOWN = 3

_PATH = re.compile(r"(?<![\w.:/$}])/(?:[\w.-]+/)*[\w.-]*\w")
_OF_THE_GRADER = re.compile(
    r"/(tests|logs|oracle|solution|bin|sbin|usr|etc|dev|proc|tmp|opt|lib|var)(/|$)"
)
"""Places of harbor's own and of the system: not what an agent leaves behind."""
_COPIES = re.compile(r"^\s*(COPY|ADD)\s", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Judged:
    """One task, or one kind of tasks, and whether a world could hold it."""

    name: str
    expressible: bool
    reason: str


def of_harbor(root: Path) -> list[Judged]:
    """Return the tasks of a harbor tree: the folder itself, or those below it.

    Raises:
        SpecError: When there is none.
    """
    folders = [root] if (root / "task.toml").is_file() else _tasks_below(root)
    if not folders:
        words = "it holds no harbor task: none of its folders has a task.toml."
        raise fault(str(root), words)
    return [_of_harbor_task(folder) for folder in folders]


def _tasks_below(root: Path) -> list[Path]:
    found = [*root.glob("*/task.toml"), *root.glob("tasks/*/task.toml")]
    return sorted(file.parent for file in found if file.is_file())


def _of_harbor_task(folder: Path) -> Judged:
    name = folder.resolve().name

    def no(reason: str) -> Judged:
        return Judged(name, expressible=False, reason=reason)

    config = _toml(folder / "task.toml")
    if config is None:
        return no("its task.toml is no TOML.")
    missing = [each for each in ("instruction.md", "tests/test.sh") if not _is_file(folder, each)]
    if missing:
        return no(f"it is not whole: it has no {' and no '.join(missing)}.")
    environment = folder / "environment"
    if compose := sorted(environment.glob("docker-compose.y*ml")):
        return no(f"it starts several containers ({compose[0].name}); a world has none.")
    paths = _graded_paths(folder / "tests")
    if not paths:
        return no("its tests run programs in a container; a world has tables only.")
    if len(paths) > 1 or not paths[0].endswith((".txt", ".md")):
        return no(f"its tests look at files of a container ({_listed(paths)}); a world has tables.")
    files = [path for path in environment.rglob("*") if path.is_file()]
    if any(path.name != "Dockerfile" or _COPIES.search(_text(path)) for path in files):
        return no("its container holds files that the agent needs; a world has tables only.")
    words = (
        f"its tests read one text, {paths[0]}, and its container holds no files of its own: ask for "
        "the text as the last message, and grade final_answer of _session."
    )
    return Judged(name, expressible=True, reason=words)


def _graded_paths(tests: Path) -> list[str]:
    """Return the places in a container that tests name, without those of harbor's own."""
    found: dict[str, None] = {}
    for file in sorted(path for path in tests.rglob("*") if path.is_file()):
        for path in _PATH.findall(_text(file)):
            if not _OF_THE_GRADER.match(path):
                found.setdefault(path)
    # A folder is told by what is in it.
    return [path for path in found if not any(other.startswith(f"{path}/") for other in found)]


def of_verifiers(root: Path) -> list[Judged]:
    """Return the kinds of tasks of a verifiers package: its tasks themselves are made by running it.

    Raises:
        SpecError: When it is no such package, or none of its modules has a reward.
    """
    config = _toml(root / "pyproject.toml")
    project = config.get("project") if config else None
    needs = project.get("dependencies") if isinstance(project, dict) else None
    if not any(re.match(r"verifiers\b", str(need)) for need in needs or ()):
        words = "it is no verifiers package: its pyproject.toml does not depend on verifiers."
        raise fault(str(root), words)
    classes = [each for file in _modules(root) for each in _classes(file)]
    has_user = any(_bases(each) & {"SingleAgentEnv", "Env", "MultiTurnEnv"} for each in classes)
    judged = [
        _of_rewards(each.name, each, rewards, has_user=has_user)
        for each in classes
        if (rewards := list(_rewards(each)))
    ]
    if not judged:
        words = "none of its classes has a method marked as @reward."
        raise fault(str(root), words)
    return judged


def _of_rewards(
    name: str, task: ast.ClassDef, rewards: Sequence[ast.AST], *, has_user: bool
) -> Judged:
    names = {
        word for reward in rewards for node in ast.walk(reward) if (word := _word(node)) is not None
    }
    listed = _listed([str(getattr(reward, "name", "")) for reward in rewards])
    if names & {"runtime", "sandbox"}:
        words = f"its rewards ({listed}) look into the agent's runtime; a world has tables only."
        return Judged(name, expressible=False, reason=words)
    if any("judge" in word.lower() for word in names):
        words = f"its rewards ({listed}) ask a model; a world's verifiers reach nothing."
        return Judged(name, expressible=False, reason=words)
    if has_user:
        words = (
            "its environment speaks between the agent's messages; a world's session has one prompt."
        )
        return Judged(name, expressible=False, reason=words)
    tools = any(getattr(each, "name", "") == "toolsets" for each in task.body)
    words = f"its rewards ({listed}) read what the agent said: a Python check of the last message"
    words += ", with its toolsets as tools/handlers.py." if tools else "."
    return Judged(name, expressible=True, reason=words)


def _modules(root: Path) -> Iterator[Path]:
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).parts
        if not any(part.startswith(".") or part in ("tests", "build") for part in parts):
            yield file


def _classes(file: Path) -> list[ast.ClassDef]:
    try:
        tree = ast.parse(_text(file))
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def _rewards(task: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in task.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = {_last_word(each) for each in node.decorator_list}
            if "reward" in marks:
                yield node


def _bases(node: ast.ClassDef) -> set[str]:
    return {_last_word(base) for base in node.bases}


def _last_word(node: ast.AST) -> str:
    """Return ``reward`` for ``reward``, ``vf.reward`` and ``vf.reward(weight=1)``."""
    if isinstance(node, ast.Call):
        return _last_word(node.func)
    if isinstance(node, ast.Subscript):
        return _last_word(node.value)
    return _word(node) or ""


def _word(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return str(name)
    return None


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _is_file(folder: Path, path: str) -> bool:
    return (folder / path).is_file()


def _toml(file: Path) -> dict[str, object] | None:
    try:
        return tomllib.loads(file.read_text())
    except (OSError, ValueError, RecursionError):
        return None


def _text(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(_MOST_BYTES).decode(errors="replace")
