"""``wavetank benchmarks init``: a small benchmark that works, to be changed into one's own."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from wavetank.cli import render
from wavetank.cli.authoring import GOOD, carry_out_here, counted, fault, json_option
from wavetank.cli.packing import slug_of

_NAME_LENGTH = 63
"""Longest [world] name."""


@click.command(epilog="Example:  wavetank benchmarks init ./crm-bench")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--kind", type=click.Choice(["world"]), default="world", help="Kind. Default: world.")
@json_option
def init(folder: Path, kind: str, as_json: bool) -> None:
    """Write a small working benchmark into DIR, which must be new or empty.

    It has two tables, two tools, two tasks, their verifiers and solutions, and passes `validate`.
    """
    carry_out_here(lambda: _init(folder, kind, as_json=as_json), as_json=as_json)


def _init(folder: Path, kind: str, *, as_json: bool) -> int:
    if folder.exists():
        if not folder.is_dir():
            raise fault(str(folder), "this is a file. Name a folder that is new or empty.")
        if held := sorted(path.name for path in folder.iterdir()):
            shown = ", ".join(held[:3]) + (", ..." if len(held) > 3 else "")
            words = f"the folder is not empty: it holds {shown}. Name one that is new or empty."
            raise fault(str(folder), words)
    name = slug_of(folder.resolve().name)[:_NAME_LENGTH].strip("-") or "bench"
    written = _copy(files("wavetank.cli") / "templates" / kind, folder, name)
    if as_json:
        render.print_json({"folder": str(folder), "name": name, "files": written})
        return GOOD
    click.echo(f"Wrote benchmark {name} to {folder}: {counted(len(written), 'file')}.")
    for path in written:
        click.echo(f"  {path}")
    click.echo(f"Next:  wavetank benchmarks validate {folder}")
    return GOOD


def _copy(source: Traversable, target: Path, name: str, prefix: str = "") -> list[str]:
    """Copy a template; return the paths written."""
    target.mkdir(parents=True, exist_ok=True)
    written: list[str] = []
    for each in sorted(source.iterdir(), key=lambda entry: entry.name):
        if each.is_dir():
            if each.name != "__pycache__":
                written += _copy(each, target / each.name, name, f"{prefix}{each.name}/")
            continue
        text = each.read_text().replace('name = "NAME"', f'name = "{name}"')
        (target / each.name).write_text(text)
        written.append(prefix + each.name)
    return written
