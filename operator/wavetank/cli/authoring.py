"""What the commands for authors share: they work on a folder, offline, and tell all faults at once."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import click
from rich.text import Text

from wavetank.cli import render
from wavetank.core.errors import Finding, Severity, SpecError

GOOD = 0
AT_FAULT = 1
WRONG_USAGE = 2
UNREACHABLE = 3
INTERRUPTED = 130

folder_argument = click.argument(
    "folder", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def carry_out_here(step: Callable[[], int], *, as_json: bool) -> NoReturn:
    """Run a command and leave with its exit code; faults become words, or a document, and 1."""
    sys.exit(_code_of(step, as_json=as_json))


def _code_of(step: Callable[[], int], *, as_json: bool) -> int:
    try:
        return step()
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
    except SpecError as error:
        if as_json:
            render.print_json({"ok": False, "findings": findings_document(error.findings)})
        else:
            show_findings(error.findings)
        return AT_FAULT
    except BrokenPipeError:
        raise  # click ends quietly
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise click.ClickException(f"{where}{error.strerror or error}") from error


def fault(path: str, message: str) -> SpecError:
    """Return a refusal with one fault."""
    return SpecError([Finding(Severity.FAULT, path, message)])


def show_findings(findings: Sequence[Finding]) -> None:
    """Print findings, a line each."""
    for finding in findings:
        style = "red" if finding.severity is Severity.FAULT else "yellow"
        render.show(Text(render.clean(f"{finding.severity}: {finding}"), style))


def findings_document(findings: Sequence[Finding]) -> list[dict[str, str]]:
    """Return findings for programs."""
    return [
        {"severity": each.severity.value, "path": each.path, "message": each.message}
        for each in findings
    ]


def counted(number: int, what: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "fault"), counted(2, "fault")
    ('1 fault', '2 faults')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def plain_number(value: float | None) -> float | int | None:
    """Return a score as people write it: 1, not 1.0.

    >>> plain_number(1.0), plain_number(0.5)
    (1, 0.5)
    """
    return int(value) if value is not None and value.is_integer() else value


def one_line(document: object) -> str:
    """Return a document as one line of JSON."""
    return json.dumps(document, ensure_ascii=False)
