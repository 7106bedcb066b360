"""Taking typed values out of parsed TOML and JSON: a wrong one becomes a finding and its default."""

import re
from collections.abc import Mapping, Sequence

from wavetank.bundles.world.place import Place, name_one_of, shown

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
"""Task ids and the names of verifiers and scripts."""
NAME_LENGTH = 128

Table = Mapping[str, object]


def table(place: Place, value: object, known: Sequence[str]) -> Table:
    """Return a table, reporting every key that is not known; empty when it is none."""
    if not isinstance(value, Mapping):
        place.fault(f"this must be a table of keys, not {shown(value)}.")
        return {}
    for key in value:
        if key not in known:
            place.fault(f"the key {shown(key)} is not known. {name_one_of(known)}")
    return value


def items(place: Place, value: object) -> Sequence[object]:
    """Return a list; empty, with a finding, when it is none."""
    if isinstance(value, list):
        return value
    place.fault(f"this must be a list, not {shown(value)}.")
    return ()


def text(place: Place, source: Table, key: str) -> str:
    """Return an optional string; empty when it is not given."""
    if key not in source:
        return ""
    value = source[key]
    if not isinstance(value, str) or not is_text(value):
        place.at(key).fault(f"this must be a string, not {shown(value)}.")
        return ""
    return value


def required_text(place: Place, source: Table, key: str) -> str:
    """Return a string that must be given and not be blank; empty with a finding."""
    if key not in source:
        place.fault(f"the key '{key}' is missing.")
        return ""
    value = text(place, source, key)
    if value.strip() == "" and isinstance(source[key], str):
        place.at(key).fault("this must not be empty.")
    return value


def name(place: Place, source: Table, key: str) -> str | None:
    """Return a required name (see ``NAME``), or None with a finding."""
    if not (value := required_text(place, source, key)):
        return None
    return value if check_name(place.at(key), value) else None


def check_name(place: Place, value: str) -> bool:
    """Report a name that breaks the rule for names; return whether it keeps it."""
    if NAME.fullmatch(value) and len(value) <= NAME_LENGTH:
        return True
    place.fault(
        f"{shown(value)} is no name: letters, digits, '_' and '-', not starting with a digit or "
        f"'-', at most {NAME_LENGTH} characters."
    )
    return False


def texts(place: Place, source: Table, key: str) -> tuple[str, ...]:
    """Return an optional list of different strings, leaving out with a finding what is none."""
    if key not in source:
        return ()
    found: list[str] = []
    for index, value in enumerate(items(place.at(key), source[key])):
        here = place.at(key).at(index)
        if not isinstance(value, str) or not value.strip() or not is_text(value):
            here.fault(f"this must be a string that is not empty, not {shown(value)}.")
        elif value in found:
            here.fault(f"{shown(value)} is named twice.")
        else:
            found.append(value)
    return tuple(found)


def count(place: Place, source: Table, key: str) -> int | None:
    """Return an optional whole number of at least 1; None when it is not given or is none."""
    if key not in source:
        return None
    value = source[key]
    # 2**31 - 1: what the API's int32 fields carry.
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31:
        return value
    place.at(key).fault(f"this must be a whole number of at least 1, not {shown(value)}.")
    return None


def is_text(value: str) -> bool:
    """Return False for text with lone surrogates or NUL, which break databases and wires."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
