"""How deeply arguments may be nested: what comes from an agent must not break a parser's stack."""

DEPTH = 64
"""Far more than any tool needs, far less than what breaks."""


def is_too_deep(value: object) -> bool:
    """Return whether lists and objects are nested more than ``DEPTH`` levels deep.

    >>> is_too_deep([[]])
    False
    """
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
