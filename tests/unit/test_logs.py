"""What a log line looks like, and what never gets into one."""

import json
import logging

import pytest

from wavetank.controller.logs import JsonFormatter, TextFormatter, get_logger, without_secrets

TOKEN = "eyJhbGciOiJFZERTQSJ9.eyJncmFudHMiOltdfQ.c2lnbmF0dXJl"


@pytest.fixture
def records() -> list[logging.LogRecord]:
    """What the logger ``a.module`` was given."""
    kept: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            record.created = 0.0
            kept.append(record)

    logger = logging.getLogger("a.module")
    logger.handlers, logger.propagate = [Keep()], False
    logger.setLevel(logging.INFO)
    return kept


def test_a_line_of_text_has_moment_level_event_and_facts(
    records: list[logging.LogRecord],
) -> None:
    get_logger("a.module").info("run planned", run="bench/crm", tasks=5, problem="no quota")

    assert TextFormatter().format(records[0]) == (
        '1970-01-01T00:00:00.000Z info    run planned run=bench/crm tasks=5 problem="no quota"'
    )


def test_a_line_of_json_has_the_same(records: list[logging.LogRecord]) -> None:
    get_logger("a.module").warning("run planned", run="bench/crm", tasks=5, where=("a", "b"))

    assert json.loads(JsonFormatter().format(records[0])) == {
        "time": "1970-01-01T00:00:00.000Z",
        "level": "warning",
        "logger": "a.module",
        "event": "run planned",
        "run": "bench/crm",
        "tasks": 5,
        "where": "('a', 'b')",
    }


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()], ids=["text", "json"])
def test_a_bugs_traceback_is_logged_without_the_token_in_it(
    formatter: logging.Formatter, records: list[logging.LogRecord]
) -> None:
    def refuse() -> None:
        raise ValueError(f"refused: {TOKEN}")

    try:
        refuse()
    except ValueError:
        get_logger("a.module").exception("look failed", key="Run bench/crm")

    line = formatter.format(records[0])

    assert "Traceback" in line
    assert "ValueError: refused: ***" in line
    assert TOKEN not in line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        (f"X-Wavetank-Token: {TOKEN}", "X-Wavetank-Token: ***"),
        ("key sk-proj-abcdefghijklmnop1234 used", "key *** used"),
        ("task-close_ticket of pod crm-3f2a1b-0-a1", "task-close_ticket of pod crm-3f2a1b-0-a1"),
    ],
    ids=["bearer", "token", "provider's key", "nothing secret"],
)
def test_what_looks_like_a_secret_is_blotted_out(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_below_its_level_nothing_is_logged(records: list[logging.LogRecord]) -> None:
    get_logger("a.module").debug("details")

    assert records == []
