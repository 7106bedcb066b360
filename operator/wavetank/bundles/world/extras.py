"""The files around a world: its verifiers, solutions and scripts."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from wavetank.bundles.world import values
from wavetank.bundles.world.assertions import read_assertions
from wavetank.bundles.world.files import listed, read_json, read_text
from wavetank.bundles.world.model import Entity, Script, ToolCall, Verifier, VerifierKind
from wavetank.bundles.world.place import Place, name_one_of, shown
from wavetank.bundles.world.source import check_source

VERIFIERS = "verifiers"
SOLUTIONS = "solutions"
SCRIPTS = "scripts"

_KINDS = {
    ".sql": VerifierKind.SQL,
    ".json": VerifierKind.ASSERTIONS,
    ".py": VerifierKind.PYTHON,
}


def read_verifiers(root: Path, place: Place, entities: Sequence[Entity]) -> Mapping[str, Verifier]:
    """Return the verifiers of a world by name; the kind is that of the file's ending.

    Args:
        root: The bundle.
        place: Where the verifiers are.
        entities: What assertions may name; none when the schema could not be read.
    """
    found: dict[str, Verifier] = {}
    for path in listed(root / VERIFIERS, place):
        at = Place(place.sink, f"{place.file}/{path.name}")
        kind = _KINDS.get(path.suffix)
        if kind is None:
            at.fault(
                f"{shown(path.name)} is no verifier. Name it <name>.sql, <name>.json or <name>.py."
            )
        elif not values.check_name(at, path.stem):
            continue
        elif path.stem in found:
            other = found[path.stem].path.name
            at.fault(f"there is a {other} already. One verifier has one file.")
        else:
            found[path.stem] = _verifier(path, at, kind, entities)
    return found


def _verifier(path: Path, place: Place, kind: VerifierKind, entities: Sequence[Entity]) -> Verifier:
    if kind is VerifierKind.ASSERTIONS:
        return Verifier(path.stem, kind, path, read_assertions(path, place, entities))
    text = read_text(path, place)
    if text is None:
        return Verifier(path.stem, kind, path)
    if kind is VerifierKind.PYTHON:
        check_source(text, place)
    elif not text.strip():
        place.fault("the file is empty. Write one SQL statement that returns a number in 0..1.")
    return Verifier(path.stem, kind, path)


def read_solutions(root: Path, place: Place, tasks: Collection[str] | None) -> Mapping[str, Script]:
    """Return the scripts of a folder by task id.

    Args:
        root: The folder.
        place: Where it is.
        tasks: The ids that files may be named after; None when any may.
    """
    found: dict[str, Script] = {}
    for path in listed(root, place):
        at = Place(place.sink, f"{place.file}/{path.name}")
        if path.suffix != ".json":
            at.fault(f"{shown(path.name)} is no solution. Name it <task>.json.")
        elif tasks is not None and path.stem not in tasks:
            at.fault(f"no task is named {shown(path.stem)}. {name_one_of(tasks)}")
        elif (script := read_script(path, at)) is not None:
            found[path.stem] = script
    return found


def read_scripts(
    root: Path, place: Place, tasks: Collection[str] | None
) -> Mapping[str, Mapping[str, Script]]:
    """Return the scripts by their name and task id."""
    found: dict[str, Mapping[str, Script]] = {}
    for path in listed(root / SCRIPTS, place):
        at = Place(place.sink, f"{place.file}/{path.name}")
        if values.check_name(at, path.name):
            found[path.name] = read_solutions(path, at, tasks)
    return found


def read_script(path: Path, place: Place) -> Script | None:
    """Return one solution: a list of calls, the last item perhaps the final answer."""
    parsed = read_json(path, place)
    if parsed is None:
        return None
    calls: list[ToolCall] = []
    answer: str | None = None
    steps = values.items(place, parsed)
    for index, step in enumerate(steps):
        at = place.at(index)
        if isinstance(step, Mapping) and "final_answer" in step:
            answer = values.required_text(
                at, values.table(at, step, ("final_answer",)), "final_answer"
            )
            if index != len(steps) - 1:
                at.fault("the final answer must be the last step.")
        elif call := _call(at, step):
            calls.append(call)
    return Script(tuple(calls), answer)


def _call(place: Place, value: object) -> ToolCall | None:
    source = values.table(place, value, ("tool", "arguments"))
    if not isinstance(value, Mapping):
        return None
    tool = values.required_text(place, source, "tool")
    arguments = source.get("arguments", {})
    if not isinstance(arguments, dict):
        place.at("arguments").fault(f"this must be an object, not {shown(arguments)}.")
        return None
    return ToolCall(tool, arguments) if tool else None
