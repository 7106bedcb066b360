"""How output looks: answers on stdout, progress on stderr; colours and bars on terminals only."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console, RenderableType
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

Document = Mapping[str, Any]

_PIPE_WIDTH = 10_000
"""A pipe has no width of its own: lines stay whole there, for grep."""

_STATE_STYLE = {
    "Complete": "green",
    "Failed": "red",
    "Suspended": "yellow",
    "Running": "cyan",
    "Waiting": "yellow",
}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def console(*, stderr: bool = False) -> Console:
    """Return a console as stdout, or stderr, is now."""
    made = Console(stderr=stderr, highlight=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, width=_PIPE_WIDTH)


def show(*parts: RenderableType) -> None:
    """Print the answer of a command; without trailing blanks where nobody looks."""
    out = console()
    if out.is_terminal:
        for part in parts:
            out.print(part, soft_wrap=isinstance(part, Text))
        return
    with out.capture() as captured:
        for part in parts:
            out.print(part)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def tell(text: str) -> None:
    """Print a line of progress or of trouble, on stderr."""
    click.echo(clean(text), err=True)


def clean(text: str) -> str:
    r"""Return a text that cannot steer a terminal: agents and bundles write what is shown here.

    >>> clean("\x1b[2J gone")
    '\\x1b[2J gone'
    """
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def print_json(document: object) -> None:
    """Print a document for programs."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_csv(columns: Sequence[str], rows: Sequence[Document]) -> None:
    """Print rows as CSV: these columns, then whatever else rows have, in the order it comes."""
    every = dict.fromkeys([*columns, *(name for row in rows for name in row)])
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(every), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    click.echo(text.getvalue(), nl=False)


def _cell(value: object) -> object:
    """Return a CSV cell; a text that a spreadsheet would run as a formula gets a quote first."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return "" if value is None else value


def number(value: float | None, places: int = 4) -> str:
    """Return a number for a table; what is undefined is a dash, never 0.

    >>> number(0.5), number(None)
    ('0.5000', '-')
    """
    return "-" if value is None else f"{value:.{places}f}"


def counted(number: int, what: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "fault"), counted(2000, "fault")
    ('1 fault', '2,000 faults')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def state(name: str) -> Text:
    """Return a Run's state in its colour."""
    return Text(name, style=_STATE_STYLE.get(name, ""))


def table(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """Return an empty table; the columns in ``numbers`` are set right."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        if column in numbers:
            made.add_column(column, justify="right", no_wrap=True)
        else:
            made.add_column(column, overflow="fold")
    return made


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal that something is waited for; give a function that tells why.

    What it tells stands beside the spinner; where nobody looks, it is a line when it changes.
    """
    err = console(stderr=True)
    if not err.is_terminal:
        yield _changes()
        return
    with err.status(Text(what)) as spinner:
        yield lambda why: spinner.update(Text(clean(f"{what}: {why}" if why else what)))


def _changes() -> Callable[[str], None]:
    told = {""}

    def say(why: str) -> None:
        if why not in told:
            told.add(why)
            tell(why)

    return say


@contextmanager
def transfer(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal while bytes travel; give a function that counts them."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(
        *columns, console=console(stderr=True), disable=not is_watched(), transient=True
    ) as bars:
        bar = bars.add_task(what, total=total)
        yield lambda count: bars.advance(bar, count)


def is_watched() -> bool:
    """Tell whether a person looks at the progress: bars only then."""
    return console(stderr=True).is_terminal
