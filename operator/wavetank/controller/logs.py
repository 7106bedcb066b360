"""One line per event: what happened, then facts as ``key=value``, or the same as JSON.

Messages never hold values, so that they can be counted; facts never hold prompts, keys or tokens,
and what looks like one in a foreign library's message is blotted out.
"""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from enum import StrEnum


class LogFormat(StrEnum):
    """How log lines look."""

    TEXT = "text"
    JSON = "json"


class EventLogger:
    """Writes events with facts to the standard library's logger of one module."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, event: str, **facts: object) -> None:
        """Tell what only a developer wants to know."""
        self._write(logging.DEBUG, event, facts)

    def info(self, event: str, **facts: object) -> None:
        """Tell what an administrator may want to know."""
        self._write(logging.INFO, event, facts)

    def warning(self, event: str, **facts: object) -> None:
        """Tell of trouble that will be tried again."""
        self._write(logging.WARNING, event, facts)

    def error(self, event: str, **facts: object) -> None:
        """Tell of trouble that somebody should look at."""
        self._write(logging.ERROR, event, facts)

    def exception(self, event: str, **facts: object) -> None:
        """Tell of a bug, with the traceback of the exception that is being handled."""
        self._write(logging.ERROR, event, facts, traceback=True)

    def _write(
        self, level: int, event: str, facts: dict[str, object], *, traceback: bool = False
    ) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, extra={"facts": facts}, exc_info=traceback)


def get_logger(name: str) -> EventLogger:
    """Return the logger of a module; pass ``__name__``."""
    return EventLogger(logging.getLogger(name))


def set_up(log_format: LogFormat, level: str) -> None:
    """Send all logs to standard output in one format.

    Args:
        log_format: Text for people, JSON for collectors.
        level: A name of :mod:`logging`, such as ``INFO``.
    """
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter() if log_format is LogFormat.JSON else TextFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # kopf tells of every event that it hands over, httpx of every request: their warnings matter.
    for name in ("kopf", "aiohttp.access", "asyncio", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelName(level)))


_SECRETS = re.compile(r"(?i)(bearer\s+)\S+|eyJ[\w-]{8,}\.[\w-]+\.[\w-]+|\b(?:sk|pk)-[\w-]{16,}")


def without_secrets(text: str) -> str:
    """Blot out what looks like a token or a provider's key.

    >>> without_secrets("Authorization: Bearer abc.def")
    'Authorization: Bearer ***'
    """
    return _SECRETS.sub(lambda match: f"{match.group(1) or ''}***", text)


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        entry = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **{key: _plain(value) for key, value in _facts(record).items()},
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return without_secrets(json.dumps(entry, ensure_ascii=False))


class TextFormatter(logging.Formatter):
    """Moment, level, event, then ``key=value``; a traceback follows on its own lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        facts = "".join(f" {key}={_quoted(value)}" for key, value in _facts(record).items())
        line = f"{_moment(record)} {record.levelname.lower():7} {record.getMessage()}{facts}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return without_secrets(line)


def _facts(record: logging.LogRecord) -> dict[str, object]:
    facts = getattr(record, "facts", {})
    return facts if isinstance(facts, dict) else {}


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(value: object) -> object:
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def _quoted(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if re.search(r'[\s"=]', text) or not text else text
