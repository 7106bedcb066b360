"""The tasks, from ``[[tasks]]`` or from a Benchmark's own ``benchmark.json``."""

from collections.abc import Mapping
from pathlib import Path

from wavetank.bundles.world import values
from wavetank.bundles.world.files import read_json
from wavetank.bundles.world.model import Task
from wavetank.bundles.world.place import Place, shown

OVERLAY_FILE = "benchmark.json"

_TASK_KEYS = (
    "id",
    "prompt",
    "verifiers",
    "worlds",
    "category",
    "difficulty",
    "tags",
    "timeout_seconds",
    "max_steps",
)


PlacedTask = tuple[Place, Task]
"""A task and where it stands."""


def read_tasks(place: Place, value: object) -> tuple[PlacedTask, ...]:
    """Return the tasks of a list that could be read, in its order."""
    found: list[PlacedTask] = []
    for index, entry in enumerate(values.items(place, value)):
        at = place.at(index)
        task = _task(at, entry)
        if task and any(each.id == task.id for _, each in found):
            at.at("id").fault(f"the id {shown(task.id)} is given twice. Ids are unique.")
        elif task:
            found.append((at, task))
    return tuple(found)


def read_overlay(path: Path, place: Place) -> tuple[PlacedTask, ...]:
    """Return a Benchmark's own tasks, which replace those of its world."""
    parsed = read_json(path, place)
    if parsed is None:
        return ()
    source = values.table(place, parsed, ("tasks",))
    return read_tasks(place.at("tasks"), source.get("tasks", []))


def _task(place: Place, value: object) -> Task | None:
    source = values.table(place, value, _TASK_KEYS)
    if not isinstance(value, Mapping):
        return None
    task_id = values.name(place, source, "id")
    task = Task(
        id=task_id or "",
        prompt=values.required_text(place, source, "prompt"),
        verifiers=_verifiers(place, source, "verifiers"),
        worlds=_worlds(place.at("worlds"), source.get("worlds", {})),
        category=values.text(place, source, "category") or None,
        difficulty=values.text(place, source, "difficulty") or None,
        tags=values.texts(place, source, "tags"),
        timeout_seconds=values.count(place, source, "timeout_seconds"),
        max_steps=values.count(place, source, "max_steps"),
    )
    if not task.graders and not _names_any(source):
        place.fault("there is no verifier, here or of a linked world. Name at least one.")
    return task if task_id else None


def _names_any(source: values.Table) -> bool:
    """Return whether verifiers are named, be it badly, so that one finding is enough."""
    worlds = source.get("worlds")
    listed = worlds.values() if isinstance(worlds, Mapping) else [worlds]
    return bool(source.get("verifiers")) or any(bool(names) for names in listed)


def _worlds(place: Place, value: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        place.fault(f"this must be a table of aliases and their verifiers, not {shown(value)}.")
        return {}
    return {alias: _verifiers(place, value, alias) for alias in value}


def _verifiers(place: Place, source: values.Table, key: str) -> tuple[str, ...]:
    at = place.at(key)
    return tuple(name for name in values.texts(place, source, key) if values.check_name(at, name))
