"""The one place of the operator that asks for the time."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the moment, in UTC."""
    return datetime.now(UTC)
