"""Rows out of a JSON or CSV file, held against a world's tables."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wavetank.bundles.world import Entity, Field, FieldType
from wavetank.bundles.world.data import DATA_FILE, check_rows
from wavetank.bundles.world.files import parse_json, read_json, read_text
from wavetank.bundles.world.infer import infer
from wavetank.bundles.world.place import Place, Sink, name_one_of, shown
from wavetank.core.errors import Finding, Severity, SpecError

Row = dict[str, object]
Data = Mapping[str, list[Row]]

_SHOWN = 20
"""Faults told of one import; the rest is counted."""
_IN_DATA = re.compile(r"[^:]+: (?P<entity>\w+)\[(?P<index>\d+)\](?:\.(?P<column>.+))?", re.DOTALL)


@dataclass
class Faults(Sink):
    """Collects the first faults of an import, told by row and column of the imported file."""

    file: str = ""
    before: Mapping[str, int] = field(default_factory=dict)
    """How many rows of an entity stand before the imported ones."""
    numbers: Sequence[int] = ()
    """Which rows of the file the imported ones are, if some were left out."""
    count: int = 0

    def add(self, file: str, finding: Finding) -> None:
        """Keep one of the first faults, count the others."""
        if finding.severity is not Severity.FAULT:
            return
        self.count += 1
        if self.count <= _SHOWN:
            self.findings.append(Finding(Severity.FAULT, self._where(finding), finding.message))

    def raise_any(self) -> None:
        """Raise what was found, if anything was.

        Raises:
            SpecError: With the first faults, and how many more there are.
        """
        if self.count > _SHOWN:
            rest = f"and {self.count - _SHOWN:,} faults more. Nothing was imported."
            raise SpecError([*self.findings, Finding(Severity.FAULT, self.file, rest)])
        if self.count:
            raise SpecError(self.findings)

    def _where(self, finding: Finding) -> str:
        found = _IN_DATA.fullmatch(finding.path)
        if found is None:
            _, _, name = finding.path.partition(f"{DATA_FILE}: ")
            return f"{self.file}: {name}" if name and name not in self.before else finding.path
        entity, row = found["entity"], int(found["index"])
        before = self.before.get(entity, 0)
        column = f", column {found['column']}" if found["column"] else ""
        if row < before:
            return f"{DATA_FILE}: {entity}, row {row + 1}{column}"
        number = self.numbers[row - before] if self.numbers else row - before + 1
        return f"{self.file}: {entity}, row {number}{column}"


def rows_of_json(file: Path, entity: str | None, faults: Faults) -> Data:
    """Return the rows of a JSON file: an object of entities, or one entity's list.

    Raises:
        SpecError: When the file is neither.
    """
    place = Place(faults, faults.file)
    value = read_json(file, place)
    faults.raise_any()
    if isinstance(value, list):
        value = {entity or file.stem: value}
    elif isinstance(value, dict) and entity is not None:
        value = {entity: value.get(entity, value)}
    if not isinstance(value, dict):
        place.fault(f"this must be an object of entities or a list of rows, not {shown(value)}.")
        faults.raise_any()
        return {}
    for name, rows in value.items():
        if not isinstance(rows, list):
            place.at(name).fault(f"this must be a list of rows, not {shown(rows)}.")
    faults.raise_any()
    return value


def rows_of_csv(file: Path, entity: Entity, faults: Faults) -> list[Row]:
    """Return the rows of a CSV file whose first line names columns; an empty cell is null.

    What is no row at all is reported and left out; what does not fit its column is left as text,
    which ``check_all`` refuses.

    Raises:
        SpecError: When no rows can be read from the file.
    """
    text = read_text(file, Place(faults, faults.file))
    faults.raise_any()
    reader = csv.reader(io.StringIO((text or "").removeprefix("\ufeff"), newline=""), strict=True)
    rows: list[Row] = []
    numbers: list[int] = []
    try:
        columns = _columns(next(reader, []), entity, faults)
        for number, cells in enumerate(filter(None, reader), start=1):
            row = _row(cells, columns, faults, number)
            if row is not None:
                rows.append(row)
                numbers.append(number)
    except csv.Error as error:
        Place(faults, f"{faults.file}: line {reader.line_num}").fault(f"this is not CSV: {error}.")
        faults.raise_any()
    faults.numbers = numbers
    return rows


def _columns(header: Sequence[str], entity: Entity, faults: Faults) -> list[Field]:
    names = [each.name for each in entity.fields]
    place = Place(faults, f"{faults.file}: first line")
    if not header:
        place.fault(f"there is none. It names columns of {entity.name}: {', '.join(names)}.")
    for number, name in enumerate(header):
        if name not in names:
            place.fault(f"{entity.name} has no field {shown(name)}. {name_one_of(names)}")
        elif name in header[:number]:
            place.fault(f"{shown(name)} is named twice.")
    faults.raise_any()
    found = {each.name: each for each in entity.fields}
    return [found[name] for name in header]


def _row(cells: Sequence[str], columns: Sequence[Field], faults: Faults, number: int) -> Row | None:
    place = Place(faults, f"{faults.file}: row {number}")
    if len(cells) != len(columns):
        place.fault(f"it has {len(cells)} cells, and there are {len(columns)} columns.")
        return None
    row: Row = {}
    good = True
    for cell, column in zip(cells, columns, strict=True):
        try:
            row[column.name] = _value(cell, column)
        except (ValueError, RecursionError):
            row[column.name] = cell
            if column.type is FieldType.JSON:  # any text would do there
                place.at(f"column {column.name}").fault(f"{shown(cell)} is not JSON.")
                good = False
    return row if good else None


def _value(cell: str, column: Field) -> object:
    if not cell:
        return "" if column.type is FieldType.STRING and not column.nullable else None
    return _READERS[column.type](cell)


def _boolean(cell: str) -> bool:
    if cell.lower() not in ("true", "false"):
        raise ValueError(cell)
    return cell.lower() == "true"


def _integer(cell: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,30}", cell):
        raise ValueError(cell)
    return int(cell)


def _number(cell: str) -> float:
    if not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?", cell):
        raise ValueError(cell)
    return float(cell)


_READERS: Mapping[FieldType, Callable[[str], object]] = {
    FieldType.STRING: str,
    FieldType.DATETIME: str,
    FieldType.INTEGER: _integer,
    FieldType.NUMBER: _number,
    FieldType.BOOLEAN: _boolean,
    FieldType.JSON: parse_json,
}


def merged(before: Data, imported: Data, *, replace: bool) -> dict[str, list[Row]]:
    """Return the data with the imported rows after those that are there, or in their place."""
    found = {name: list(rows) for name, rows in before.items()}
    for name, rows in imported.items():
        found[name] = [*([] if replace else found.get(name, [])), *rows]
    return found


def check_all(data: Data, entities: Sequence[Entity] | None, faults: Faults) -> tuple[Entity, ...]:
    """Hold all rows against the tables; return these, inferred where there is no schema.

    Raises:
        SpecError: With the first faults, and how many more there are.
    """
    place = Place(faults, DATA_FILE)
    tables = infer(place, data) if entities is None else tuple(entities)
    check_rows(place, data, tables)
    faults.raise_any()
    return tables
