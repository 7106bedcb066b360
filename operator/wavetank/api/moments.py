"""RFC 3339 text and seconds since the epoch, both ways."""

from datetime import UTC, datetime


def seconds(text: str | None) -> float | None:
    """Return the seconds since the epoch of an RFC 3339 moment; None for none or for nonsense.

    >>> seconds("1970-01-01T00:01:00Z")
    60.0
    """
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def rfc3339(moment: float) -> str:
    """Return a moment as Kubernetes writes it, in whole seconds.

    >>> rfc3339(60.5)
    '1970-01-01T00:01:00Z'
    """
    return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
