"""``wavetank worlds schema pin``: what was inferred from the data, as a schema."""

import json
from pathlib import Path

import click

from wavetank.bundles.world import Entity, linked_folders, read
from wavetank.bundles.world.schema import SCHEMA_FILE
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
from wavetank.core.errors import SpecError


@click.command(epilog="Example:  wavetank worlds schema pin ./crm-bench")
@folder_argument
@json_option
def pin(folder: Path, as_json: bool) -> None:
    """Write the tables that are inferred from the data of DIR to schema/world.json.

    From then on the data is held to them. References, enums and descriptions are yours to add. A
    world that has a schema is refused.
    """
    carry_out_here(lambda: _pin(folder, as_json=as_json), as_json=as_json)


def _pin(folder: Path, *, as_json: bool) -> int:
    world = read(folder, linked_folders(folder))
    if not world.main.inferred:
        if faults := [each for each in world.faults if not each.path.startswith("linked/")]:
            raise SpecError(faults)
        raise fault(SCHEMA_FILE, "the world has a schema already: nothing is inferred.")
    if faults := [each for each in world.faults if each.path.startswith("data/")]:
        raise SpecError(faults)
    entities = [_document(entity) for entity in world.main.entities]
    lines = json.dumps({"entities": entities}, indent=2, ensure_ascii=False)
    replace_file(folder / SCHEMA_FILE, f"{lines}\n")
    if as_json:
        render.print_json({"file": SCHEMA_FILE, "entities": entities})
    else:
        click.echo(f"Wrote {counted(len(entities), 'table')} to {folder / SCHEMA_FILE}.")
    return GOOD


def _document(entity: Entity) -> dict[str, object]:
    return {
        "name": entity.name,
        **({"key": list(entity.key)} if entity.key else {}),
        "fields": [
            {
                "name": column.name,
                "type": column.type.value,
                **({"nullable": True} if column.nullable else {}),
            }
            for column in entity.fields
        ],
    }
