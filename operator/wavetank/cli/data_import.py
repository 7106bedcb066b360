"""``wavetank worlds data import``: rows into ``data/initial.json``, all of them or none."""

import json
from pathlib import Path

import click

from wavetank.bundles.world import Entity
from wavetank.bundles.world.config import CONFIG_FILE, read_config
from wavetank.bundles.world.data import DATA_FILE, read_data
from wavetank.bundles.world.files import MAX_BYTES
from wavetank.bundles.world.infer import infer
from wavetank.bundles.world.place import Place, Sink, name_one_of
from wavetank.bundles.world.schema import SCHEMA_FILE, read_schema
from wavetank.bundles.world.values import items
from wavetank.cli import render
from wavetank.cli.authoring import (
    GOOD,
    carry_out_here,
    counted,
    fault,
    folder_argument,
    json_option,
)
from wavetank.cli.editing import replace_file
from wavetank.cli.importing import Data, Faults, Row, check_all, merged, rows_of_csv, rows_of_json
from wavetank.core.errors import SpecError


@click.command(
    epilog="Example:  wavetank worlds data import ./crm-bench tickets.csv --entity crm_tickets"
)
@folder_argument
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--entity", metavar="NAME", help="Whose rows they are. Default: the file's name.")
@click.option("--replace", is_flag=True, help="Instead of the rows that are there.")
@json_option
def data_import(folder: Path, file: Path, entity: str | None, replace: bool, as_json: bool) -> None:
    """Add the rows of FILE to the data of the world in DIR.

    FILE is .json (an object of entities, or a list of rows) or .csv (its first line names columns;
    an empty cell is null). All rows are held against the schema first; with a fault nothing is
    written.
    """
    if file.suffix not in (".json", ".csv"):
        raise click.BadParameter("it must end in .json or .csv.", param_hint="FILE")
    carry_out_here(
        lambda: _import(folder, file, entity, replace=replace, as_json=as_json), as_json=as_json
    )


def _import(folder: Path, file: Path, entity: str | None, *, replace: bool, as_json: bool) -> int:
    before, schema = _before(folder), _schema(folder)
    faults = Faults(file=file.name)
    if file.suffix == ".csv":
        table = _table(entity or file.stem, schema, before)
        imported: Data = {table.name: rows_of_csv(file, table, faults)}
    else:
        imported = rows_of_json(file, entity, faults)
    replaced = set(imported) if replace else set()
    faults.before = {name: len(rows) for name, rows in before.items() if name not in replaced}
    data = merged(before, imported, replace=replace)
    check_all(data, schema, faults)
    text = _text(data)
    if len(text.encode()) > MAX_BYTES:
        raise fault(DATA_FILE, f"it would have more than {MAX_BYTES:,} bytes, which nobody reads.")
    replace_file(folder / DATA_FILE, text)
    if as_json:
        render.print_json(
            {
                "imported": {name: len(rows) for name, rows in imported.items()},
                "rows": {name: len(rows) for name, rows in data.items()},
            }
        )
        return GOOD
    for name, rows in imported.items():
        what = f"{counted(len(rows), 'row')} of {name}"
        click.echo(f"Imported {what} into {folder / DATA_FILE}: there are {len(data[name]):,} now.")
    return GOOD


def _schema(folder: Path) -> tuple[Entity, ...] | None:
    """Return the tables of the world's schema; None when it has none."""
    sink = Sink()
    config = read_config(folder, Place(sink, CONFIG_FILE))
    path = config.schema_file or SCHEMA_FILE
    found = None
    if config.schema_file is not None or (folder / path).exists():
        found = read_schema(folder / path, Place(sink, path))
    if sink.findings:
        raise SpecError(sink.closed())
    return found


def _before(folder: Path) -> dict[str, list[Row]]:
    """Return the data that is there, as it stands in its file."""
    if not (folder / DATA_FILE).exists():
        return {}
    sink = Sink()
    place = Place(sink, DATA_FILE)
    data = read_data(folder / DATA_FILE, place) or {}
    found: dict[str, list[Row]] = {}
    for name, rows in data.items():
        found[name] = list(items(place.at(name), rows))  # type: ignore[arg-type]
    if sink.findings:
        raise SpecError(sink.closed())
    return found


def _table(name: str, schema: tuple[Entity, ...] | None, before: Data) -> Entity:
    """Return the table that the rows of a CSV file are of."""
    tables = infer(Place(Sink(), DATA_FILE), before) if schema is None else schema
    found = next((each for each in tables if each.name == name), None)
    if found is not None:
        return found
    if schema is None:
        words = (
            f"the types of {name!r} are not known: CSV needs a table in schema/world.json, or with "
            "rows in data/initial.json."
        )
        raise fault(name, words)
    words = f"no entity is named {name!r}. {name_one_of(each.name for each in tables)}"
    raise fault("--entity", words)


def _text(data: Data) -> str:
    """Return the data as JSON, a line for each row, so that changes can be read line by line."""
    parts = []
    for name, rows in data.items():
        lines = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in rows)
        parts.append(
            f"  {json.dumps(name)}: [\n{lines}\n  ]" if rows else f"  {json.dumps(name)}: []"
        )
    return "{\n" + ",\n".join(parts) + "\n}\n"
