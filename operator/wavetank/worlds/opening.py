"""From a bundle's folders to what a session is opened on, or everything that forbids it."""

from collections.abc import Collection, Mapping
from pathlib import Path

from wavetank.bundles.world import ALL_HALVES, Half, linked_folders, read
from wavetank.bundles.world.place import name_one_of
from wavetank.core.errors import Finding, Severity, SpecError
from wavetank.worlds.session import Opening
from wavetank.worlds.tools import load


def open_folders(
    main: Path,
    linked: Mapping[str, Path],
    task_id: str,
    seed: int = 0,
    halves: Collection[Half] = ALL_HALVES,
) -> Opening:
    """Read a world and its links and import their tools.

    Raises:
        SpecError: With every fault of the bundle and of its handlers, or when it has no such task.
    """
    world = read(main, linked, halves)
    faults = list(world.faults)
    task = world.task(task_id)
    if task is None:
        known = name_one_of(each.id for each in world.tasks)
        faults.append(Finding(Severity.FAULT, "tasks", f"no task is named {task_id!r}. {known}"))
    # Handlers are people's code: not run at all for a bundle that is at fault.
    if faults or task is None:
        raise SpecError(faults)
    toolset = load(world)
    if broken := [each for each in toolset.findings if each.severity is Severity.FAULT]:
        raise SpecError(broken)
    return Opening(world, task, toolset, seed)


def open_local(main: Path, task_id: str, seed: int = 0) -> Opening:
    """Open a bundle on this machine, its links where its file says.

    Raises:
        SpecError: As ``open_folders``.
    """
    return open_folders(main, linked_folders(main), task_id, seed)
