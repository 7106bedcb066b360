"""The time of this machine, for records and deadlines; tools never see it."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the moment, UTC."""
    return datetime.now(UTC)
