"""Reading a world bundle and the worlds it is linked to, with everything that is wrong."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from wavetank.bundles.world import extras
from wavetank.bundles.world.config import (
    CONFIG_FILE,
    CONNECTOR_FILE,
    Config,
    alias_problem,
    read_config,
    read_connector,
)
from wavetank.bundles.world.data import DATA_FILE, check_rows, read_data
from wavetank.bundles.world.files import inside, resolved
from wavetank.bundles.world.infer import infer, sentences
from wavetank.bundles.world.model import (
    ALL_HALVES,
    Entity,
    Half,
    ReadWorld,
    Task,
    WorldBundle,
)
from wavetank.bundles.world.place import Place, Sink, name_one_of, shown
from wavetank.bundles.world.schema import SCHEMA_FILE, read_schema
from wavetank.bundles.world.tasks import OVERLAY_FILE, PlacedTask, read_overlay, read_tasks

HANDLERS_FILE = "tools/handlers.py"
_FOLDERS = ("schema", "data", "tools")

_MAX_LINKS = 10
"""SQLite attaches at most 10 databases to one connection, and all worlds share a transaction."""


def read(
    main: Path, linked: Mapping[str, Path], halves: Collection[Half] = ALL_HALVES
) -> ReadWorld:
    """Read and check a world with its links; never raises for what people wrote.

    Args:
        main: Folder of the benchmark's own world.
        linked: Folders of the linked worlds by alias.
        halves: The halves that are there. Without the grader half no verifier file is missed,
            without the solutions half no solution is read.

    Returns:
        What could be read, with every finding at once, in the order of the files.
    """
    sink = Sink()
    config = read_config(main, Place(sink, CONFIG_FILE))
    own = _world(sink, main, "", config, halves)
    links = {
        alias: _linked_world(sink, alias, folder, main, halves)
        for alias, folder in sorted(linked.items())
    }
    _check_links(sink, config, linked)
    placed, overlaid = _tasks(sink, main, config)
    for place, task in placed:
        check_task(place, task, own, links, Half.GRADER in halves)
    tasks = tuple(task for _, task in placed)
    # A world may bring solutions for the tasks of Benchmarks that it does not know.
    known = None if overlaid or not tasks else [task.id for task in tasks]
    with_solutions = Half.SOLUTIONS in halves
    return ReadWorld(
        main=own,
        linked=links,
        tasks=tasks,
        solutions=extras.read_solutions(
            main / extras.SOLUTIONS, Place(sink, extras.SOLUTIONS), known
        )
        if with_solutions
        else {},
        scripts=extras.read_scripts(main, Place(sink, extras.SCRIPTS), known)
        if with_solutions
        else {},
        run=config.run,
        findings=sink.closed(),
    )


def linked_folders(main: Path) -> Mapping[str, Path]:
    """Return where the links of a local bundle point, by alias; nothing if it cannot be read."""
    config = read_config(main, Place(Sink(), CONFIG_FILE))
    found = {alias: resolved(main, world) for alias, world in config.dependencies.items()}
    return {alias: folder for alias, folder in found.items() if folder}


def _world(
    sink: Sink, root: Path, alias: str, config: Config, halves: Collection[Half]
) -> WorldBundle:
    prefix = f"linked/{alias}/" if alias else ""
    for name in _FOLDERS:
        if (root / name).exists() and not (root / name).is_dir():
            Place(sink, prefix + name).fault("this is a file; it must be a folder.")
    entities, world = _entities(sink, root, prefix, config)
    handlers = root / HANDLERS_FILE
    if not handlers.is_file():
        Place(sink, prefix + HANDLERS_FILE).warn("there is no such file, so there are no tools.")
    grader = Half.GRADER in halves
    return replace(
        world,
        alias=alias,
        name=config.name,
        description=config.description,
        instructions=config.instructions,
        now=config.now,
        entities=entities,
        handlers=handlers if handlers.is_file() else None,
        verifiers=extras.read_verifiers(root, Place(sink, prefix + extras.VERIFIERS), entities)
        if grader
        else {},
        dependencies=config.dependencies,
        connector=read_connector(root, Place(sink, prefix + CONNECTOR_FILE)),
    )


def _entities(
    sink: Sink, root: Path, prefix: str, config: Config
) -> tuple[tuple[Entity, ...], WorldBundle]:
    """Return the entities, and a world that has its rows and what was inferred."""
    schema = _schema_path(sink, root, prefix, config)
    data_place = Place(sink, prefix + DATA_FILE)
    has_data = (root / DATA_FILE).exists()
    data = read_data(root / DATA_FILE, data_place) if has_data else {}
    world = WorldBundle(root)
    if schema:
        entities = read_schema(root / schema, Place(sink, prefix + schema))
    elif has_data:
        entities = infer(data_place, data or {})
        world = replace(world, inferred=sentences(entities))
    else:
        entities = ()
        Place(sink, prefix + SCHEMA_FILE).fault(
            f"there is neither this file nor {DATA_FILE}. A world has at least one table."
        )
    if not entities or data is None:
        return entities, world
    return entities, replace(world, rows=check_rows(data_place, data, entities))


def _schema_path(sink: Sink, root: Path, prefix: str, config: Config) -> str | None:
    given = config.schema_file
    if given is None:
        return SCHEMA_FILE if (root / SCHEMA_FILE).exists() else None
    place = Place(sink, prefix + CONFIG_FILE, "schema.file")
    if inside(root, given):
        return given
    place.fault(f"there is no file {shown(given)} in the bundle.")
    return None


def _linked_world(
    sink: Sink, alias: str, folder: Path, main: Path, halves: Collection[Half]
) -> WorldBundle:
    place = Place(sink, f"linked/{alias}/{CONFIG_FILE}")
    config = read_config(folder, place)
    for other, world in config.dependencies.items():
        at = place.at("dependencies").at(other)
        if resolved(folder, world) == main.resolve():
            at.fault(f"this links back to the world that links here as {shown(alias)}: a cycle.")
        else:
            at.warn("links of links are not followed: nothing of it is there in this world.")
    # Its tasks are its own affair; they may use links that this world does not have.
    return _world(sink, folder, alias, config, halves)


def _check_links(sink: Sink, config: Config, linked: Mapping[str, Path]) -> None:
    place = Place(sink, CONFIG_FILE).at("dependencies")
    for alias, world in config.dependencies.items():
        if alias not in linked:
            place.at(alias).fault(
                f"the world {shown(world)} is not there. Name a folder, relative to this one, or "
                "link a World of the cluster under this alias."
            )
    seen: set[str] = set()
    for alias in sorted(linked):
        wrong = alias_problem(alias)
        if wrong:
            place.at(alias).fault(wrong)
        elif alias.lower() in seen:
            place.at(alias).fault(f"{shown(alias)} differs from another alias in case only.")
        seen.add(alias.lower())
    if len(linked) > _MAX_LINKS:
        place.fault(f"there are {len(linked)} links; at most {_MAX_LINKS} are possible.")


def _tasks(sink: Sink, main: Path, config: Config) -> tuple[tuple[PlacedTask, ...], bool]:
    """Return the tasks, and whether a Benchmark brought them."""
    if (main / OVERLAY_FILE).exists():
        return read_overlay(main / OVERLAY_FILE, Place(sink, OVERLAY_FILE)), True
    given = config.tasks
    place = Place(sink, CONFIG_FILE).at("tasks")
    return (() if given is None else read_tasks(place, given)), False


def check_task(
    place: Place,
    task: Task,
    own: WorldBundle,
    links: Mapping[str, WorldBundle],
    with_verifiers: bool = True,
) -> None:
    """Report verifiers and links that a task names and that are not there."""
    _check_verifiers(place.at("verifiers"), task.verifiers, own, with_verifiers)
    for alias, names in task.worlds.items():
        at = place.at("worlds").at(alias)
        if alias not in links:
            at.fault(f"no world is linked as {shown(alias)}. {name_one_of(links)}")
            continue
        _check_verifiers(at, names, links[alias], with_verifiers)


def _check_verifiers(
    place: Place, names: tuple[str, ...], world: WorldBundle, with_verifiers: bool
) -> None:
    if not with_verifiers:
        return
    for index, name in enumerate(names):
        if name not in world.verifiers:
            place.at(index).fault(
                f"no verifier is named {shown(name)}. {name_one_of(world.verifiers)}"
            )
