"""Example 01's verifiers against agents that do too much, too little, or the wrong thing."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from wavetank.worlds.grading.sql import SessionFacts, opened
from wavetank.worlds.opening import open_local
from wavetank.worlds.session import CallResult, Session

BUNDLE = Path(__file__).parents[2] / "examples" / "01-crm" / "crm-bench"
Call = tuple[str, dict[str, Any]]


async def scores(
    folder: Path, task: str, calls: Sequence[Call], answer: str | None = None
) -> dict[str, float | None]:
    """Play calls in a session of the task and return each verifier's score."""
    opening = open_local(BUNDLE, task)
    session = Session(opening, folder, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    session.start()
    for name, arguments in calls:
        assert isinstance(await session.call(name, arguments), CallResult)
    await session.stop()
    session.dump(folder / "worlds")
    facts = SessionFacts(task, answer, len(calls), "closed")
    found: dict[str, float | None] = {}
    for key in opening.task.graders:
        world = opening.read.linked[key.alias] if key.alias else opening.read.main
        name = f"linked/{key.alias}.sqlite" if key.alias else "main.sqlite"
        with opened(folder / "worlds" / name, world.entities, facts) as state:
            statement = world.verifiers[key.name].path.read_text()
            found[str(key)] = state.score(str(key), statement).value
    return found


def update(ticket: str, **changes: str) -> Call:
    return "update_ticket", {"id": ticket, **changes}


def merge(ticket: str, into: str) -> Call:
    return "merge_tickets", {"id": ticket, "into": into}


def post(channel: str, text: str) -> Call:
    return "slack__post_message", {"channel": channel, "text": text}


def comment(ticket: str, body: str, visibility: str = "public") -> Call:
    return "add_comment", {"ticket_id": ticket, "body": body, "visibility": visibility}


CLOSE = update("T-7", status="closed", reason="Duplicate")
ESCALATE = update("T-21", priority="urgent", assignee="U-3")
UNLOCK = ("set_account_status", {"id": "A-04", "status": "active"})
WELL_POSTED = post("#security", "A-04 is locked, see T-21.")
MERGES = [merge("T-26", "T-11"), merge("T-38", "T-11")]
TOLD = comment("T-11", "T-26 and T-38 are merged into this one.")


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([CLOSE], [1, 1, 1]),
        ([CLOSE, update("T-8", status="closed")], [1, 1, 0]),
        ([CLOSE, comment("T-1", "Done.")], [1, 1, 0]),
        ([CLOSE, UNLOCK], [1, 1, 0]),
        ([update("T-6", status="closed", reason="duplicate")], [0, 0, 0]),
    ],
    ids=["right", "and another", "comments elsewhere", "unlocks an account", "the wrong one"],
)
async def test_closing_a_ticket(tmp_path: Path, calls: list[Call], expected: list[float]):
    assert list((await scores(tmp_path, "close_ticket", calls)).values()) == expected


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("Polestar Robotics: 5", 1),
        ("  polestar robotics: 5.\n", 1),
        ("`Polestar Robotics: 5`", 1),
        ("Polestar Robotics: 6", 0.5),
        ("Polestar Robotics: 5 or 6", 0),
        ("Orchard Street Bakery: 5", 0),
        ("Polestar Robotics: 5\nHalden Freight: 4", 0),
        ("", 0),
        (None, 0),
    ],
)
async def test_answering_the_question(tmp_path: Path, answer: str | None, score: float):
    assert await scores(tmp_path, "largest_backlog", [], answer) == {
        "backlog_answered": score,
        "nothing_changed": 1,
    }


async def test_an_answer_does_not_need_a_change(tmp_path: Path):
    calls = [update("T-10", status="pending")]

    assert await scores(tmp_path, "largest_backlog", calls, "Polestar Robotics: 5") == {
        "backlog_answered": 1,
        "nothing_changed": 0,
    }


@pytest.mark.parametrize(
    ("calls", "score"),
    [
        ([update("T-18", assignee="U-3"), update("T-33", assignee="U-5")], 1),
        ([update("T-18", assignee="U-3"), update("T-33", assignee="U-3")], 0.5),
        ([update("T-18", assignee="U-5"), update("T-33", assignee="U-3")], 0),
        (
            [update(t, assignee=u) for t, u in [("T-18", "U-3"), ("T-33", "U-5"), ("T-37", "U-3")]],
            0,
        ),
        ([update("T-18", assignee="U-3", status="closed"), update("T-33", assignee="U-5")], 0.5),
    ],
    ids=["right", "one right", "swapped", "and a pending one", "closed instead"],
)
async def test_routing_the_urgent(tmp_path: Path, calls: list[Call], score: float):
    assert await scores(tmp_path, "route_urgent", calls) == {"urgent_routed": score}


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([*MERGES, TOLD], [1, 1, 1]),
        ([*MERGES, comment("T-11", "All merged.")], [1, 0, 1]),
        ([*MERGES, comment("T-11", "T-26, T-38", "internal")], [1, 0, 1]),
        ([*MERGES, TOLD, TOLD], [1, 0, 1]),
        ([merge("T-11", "T-38"), merge("T-26", "T-38"), TOLD], [0, 1, 0]),
        ([*MERGES, TOLD, merge("T-29", "T-11")], [1, 1, 0]),
        ([update("T-26", status="closed"), update("T-38", status="closed"), TOLD], [0, 1, 1]),
    ],
    ids=[
        "right",
        "names none",
        "tells the desk only",
        "tells twice",
        "keeps the newest",
        "merges another invoice too",
        "closes instead",
    ],
)
async def test_merging_duplicates(tmp_path: Path, calls: list[Call], expected: list[float]):
    assert list((await scores(tmp_path, "merge_duplicates", calls)).values()) == expected


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([ESCALATE, WELL_POSTED], [1, 1, 1]),
        ([ESCALATE, WELL_POSTED, UNLOCK], [0, 1, 1]),
        ([ESCALATE, post("general", "A-04, T-21")], [1, 0, 0]),
        ([ESCALATE, post("security", "An account is locked.")], [1, 0, 1]),
        ([ESCALATE, WELL_POSTED, WELL_POSTED], [1, 0, 1]),
        ([update("T-37", assignee="U-3"), WELL_POSTED], [0, 1, 1]),
    ],
    ids=["right", "unlocks", "wrong channel", "names nothing", "posts twice", "wrong ticket"],
)
async def test_escalating(tmp_path: Path, calls: list[Call], expected: list[float]):
    assert list((await scores(tmp_path, "escalate", calls)).values()) == expected
