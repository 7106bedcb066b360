"""What arguments must be so that no parser, database or record stumbles over them."""

import json

DEPTH = 64
"""Levels of nesting: far more than any tool needs, far less than what breaks a stack."""


def refusal(value: object) -> str | None:
    """Return why a parsed JSON value cannot be taken, or None when it can.

    >>> refusal({"id": "T-7"}) is None
    True
    """
    if _is_too_deep(value):
        return f"it is nested more than {DEPTH} levels deep."
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:  # half a character as an escape; 1e999
        return f"it holds what JSON cannot carry: {error}."
    return None


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(DEPTH + 1):
        level = [
            child
            for each in level
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True
