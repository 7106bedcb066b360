"""The files around a world: its verifiers, solutions and scripts."""

from collections.abc import Collection, Mapping
from pathlib import Path

from wavetank.bundles.world import values
from wavetank.bundles.world.files import listed, read_json, read_text
from wavetank.bundles.world.model import Script, ToolCall, Verifier, VerifierKind
from wavetank.bundles.world.place import Place, name_one_of, shown

VERIFIERS = "verifiers"
SOLUTIONS = "solutions"
SCRIPTS = "scripts"

_LATER = {".json": "assertions", ".py": "python checks"}


def read_verifiers(root: Path, place: Place) -> Mapping[str, Verifier]:
    """Return the verifiers of a world by name; the kind is that of the file's ending."""
    found: dict[str, Verifier] = {}
    taken: dict[str, str] = {}
    for path in listed(root / VERIFIERS, place):
        at = Place(place.sink, f"{place.file}/{path.name}")
        if path.suffix not in (".sql", *_LATER):
            at.fault(f"{shown(path.name)} is no verifier. Name it <name>.sql.")
            continue
        if not values.check_name(at, path.stem):
            continue
        if path.stem in taken:
            at.fault(f"there is a {taken[path.stem]} already. One verifier has one file.")
            continue
        taken[path.stem] = path.name
        if path.suffix in _LATER:
            at.fault(
                f"{_LATER[path.suffix]} as verifiers cannot be graded yet. Write it as "
                f"{place.file}/{path.stem}.sql."
            )
            continue
        text = read_text(path, at)
        if text is not None and not text.strip():
            at.fault("the file is empty. Write one SQL statement that returns a number in 0..1.")
        found[path.stem] = Verifier(path.stem, VerifierKind.SQL, path)
    return found


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
