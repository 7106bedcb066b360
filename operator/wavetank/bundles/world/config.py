"""``gateway-env.toml``, but for its tasks, and ``connector.toml``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from wavetank.bundles.world import values
from wavetank.bundles.world.columns import is_moment
from wavetank.bundles.world.files import read_toml
from wavetank.bundles.world.model import FIXED_NOW, Connector, RunDefaults
from wavetank.bundles.world.place import Place, shown

CONFIG_FILE = "gateway-env.toml"
CONNECTOR_FILE = "connector.toml"

_SECTIONS = ("world", "schema", "dependencies", "tasks", "run")
_WORLD_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
"""What Kubernetes takes as an object's name: a pushed world is an object of that name."""
_ALIAS = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,30}")
_SQLITE_SCHEMAS = ("main", "temp")


@dataclass(frozen=True)
class Config:
    """What ``gateway-env.toml`` says of the world; its tasks as they stand there."""

    name: str = ""
    description: str = ""
    instructions: str = ""
    now: datetime = FIXED_NOW
    schema_file: str | None = None
    """Where ``[schema] file`` points; None when it is not given."""
    dependencies: Mapping[str, str] = field(default_factory=dict)
    run: RunDefaults = field(default_factory=RunDefaults)
    tasks: object = None
    """As it stands in the file; None when there is none."""


def read_config(root: Path, place: Place) -> Config:
    """Return what the file says; defaults, with findings, where it says nothing usable."""
    if not (root / CONFIG_FILE).exists():
        place.fault("the file is missing. A world bundle starts with it: [world] and its name.")
        return Config()
    parsed = read_toml(root / CONFIG_FILE, place)
    if parsed is None:
        return Config()
    source = values.table(place, parsed, _SECTIONS)
    if "world" not in source:
        place.fault("the table [world] is missing. Give it at least a name.")
    at = place.at("world")
    world = values.table(
        at, source.get("world", {}), ("name", "description", "instructions", "now")
    )
    return Config(
        name=_world_name(at, world) if "world" in source else "",
        description=values.text(at, world, "description"),
        instructions=values.text(at, world, "instructions"),
        now=_now(at, world),
        schema_file=_schema_file(place, source),
        dependencies=_dependencies(place.at("dependencies"), source.get("dependencies", {})),
        run=_run(place.at("run"), source.get("run", {})),
        tasks=source.get("tasks"),
    )


def read_connector(root: Path, place: Place) -> Connector | None:
    """Return ``connector.toml``'s vendor; None when there is no such file or no name in it."""
    if not (root / CONNECTOR_FILE).exists():
        return None
    if (parsed := read_toml(root / CONNECTOR_FILE, place)) is None:
        return None
    source = values.table(place, parsed, ("vendor",))
    at = place.at("vendor")
    vendor = values.table(at, source.get("vendor", {}), ("name", "docs_url"))
    name = values.required_text(at, vendor, "name")
    return Connector(name, values.text(at, vendor, "docs_url") or None) if name else None


def alias_problem(alias: str) -> str | None:
    """Return what is wrong with a link's alias, or None.

    >>> alias_problem("slack") is None
    True
    """
    if alias.lower() in _SQLITE_SCHEMAS:
        return f"the alias {shown(alias)} is taken by the database. Choose another."
    if _ALIAS.fullmatch(alias) and "__" not in alias:
        return None
    return (
        f"{shown(alias)} is no alias: a letter, then letters, digits, '_' and '-', no '__', "
        "at most 31 characters."
    )


def _world_name(place: Place, world: values.Table) -> str:
    name = values.required_text(place, world, "name")
    if name.strip() and not _WORLD_NAME.fullmatch(name):
        place.at("name").fault(
            f"{shown(name)} cannot name a World: lower-case letters, digits, '-' and '.', at most "
            "63 characters, with a letter or digit at both ends."
        )
    return name


def _now(place: Place, world: values.Table) -> datetime:
    value = world.get("now", FIXED_NOW)
    if isinstance(value, str) and is_moment(value):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        place.at("now").fault(
            f"{shown(value)} is no moment. Write it like 2026-01-31T09:00:00Z; without a zone it "
            "is UTC."
        )
        return FIXED_NOW
    # Room on both ends for zones and for sessions that ask often.
    if not 2 <= value.year <= 9000:
        place.at("now").fault(f"the year {value.year} is out of range. Take one from 2 to 9000.")
        return FIXED_NOW
    moment = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return moment - timedelta(microseconds=moment.microsecond)


def _schema_file(place: Place, source: values.Table) -> str | None:
    if "schema" not in source:
        return None
    at = place.at("schema")
    return values.required_text(at, values.table(at, source["schema"], ("file",)), "file") or None


def _dependencies(place: Place, value: object) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for alias, entry in values.table(
        place, value, tuple(value) if isinstance(value, Mapping) else ()
    ).items():
        at = place.at(alias)
        if wrong := alias_problem(alias):
            at.fault(wrong)
            continue
        world = values.required_text(at, values.table(at, entry, ("world",)), "world")
        if world:
            found[alias] = world
    return found


def _run(place: Place, value: object) -> RunDefaults:
    source = values.table(place, value, ("models", "k", "agent"))
    return RunDefaults(
        models=values.texts(place, source, "models"),
        k=values.count(place, source, "k"),
        agent=values.text(place, source, "agent") or None,
    )
