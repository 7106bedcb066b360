"""Examples 02 and 03 against agents that do too much, too little, or the wrong thing."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from wavetank.bundles.world import linked_folders
from wavetank.worlds.grading.local import EndState, grade_apart
from wavetank.worlds.local import write_session
from wavetank.worlds.opening import open_local
from wavetank.worlds.session import CallResult, Session

pytestmark = pytest.mark.component

EXAMPLES = Path(__file__).parents[2] / "examples"
CALENDAR = EXAMPLES / "02-calendar" / "calendar-bench"
WAREHOUSE = EXAMPLES / "03-warehouse" / "warehouse-bench"
Call = tuple[str, dict[str, Any]]


async def scores(
    bundle: Path, folder: Path, task: str, calls: Sequence[Call], answer: str | None = None
) -> list[float | None]:
    """Play calls in a session of the task and return its verifiers' scores."""
    session = Session(open_local(bundle, task), folder, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    session.start()
    for name, arguments in calls:
        assert isinstance(await session.call(name, arguments), CallResult)
    await session.stop()
    session.dump(folder / "worlds")
    write_session(folder, task, answer, len(calls))
    state = EndState(task=task, folder=folder)
    [graded] = grade_apart(bundle, linked_folders(bundle), [state])
    return [score.value for score in graded.scores]


def move(event: str, starts_at: str, **more: int) -> Call:
    return "move_event", {"id": event, "starts_at": starts_at, **more}


def review(starts_at: str, minutes: int = 30, invited: Sequence[str] = ("P-3", "P-4")) -> Call:
    given = {"organizer": "P-2", "starts_at": starts_at, "minutes": minutes}
    return "create_event", {"title": "Budget review", "invited": list(invited), **given}


def decline(event: str, person: str = "P-5") -> Call:
    return "respond", {"event": event, "person": person, "response": "declined"}


def cancel(event: str) -> Call:
    return "cancel_event", {"id": event}


def mail(subject: str, *to: str) -> Call:
    addresses = [f"{name}@northwind.example" for name in to]
    return "mail__send_message", {"to": addresses, "subject": subject, "body": "He is away."}


ILL = [cancel("E-25"), cancel("E-28")]
TOLD = [mail("Hiring panel", "nadia", "tom"), mail("The vendor call is off", "maya")]


@pytest.mark.parametrize(
    ("task", "calls", "expected"),
    [
        ("move_sync", [move("E-6", "2026-03-24T14:30:00Z")], [1, 1]),
        ("move_sync", [move("E-6", "2026-03-24T14:30:00Z", minutes=60)], [0, 1]),
        ("move_sync", [move("E-7", "2026-03-24T14:30:00Z")], [0, 0]),
        ("first_slot", [review("2026-03-25T13:30:00Z")], [1, 1]),
        ("first_slot", [review("2026-03-25T13:40:00Z")], [0.5, 1]),
        ("first_slot", [review("2026-03-25T12:30:00Z")], [0, 1]),
        ("first_slot", [review("2026-03-25T14:00:00Z")], [0, 1]),
        ("first_slot", [review("2026-03-25T13:30:00Z", minutes=15)], [0, 1]),
        ("first_slot", [review("2026-03-25T13:30:00Z", invited=["P-3"])], [0, 1]),
        ("first_slot", [review("2026-03-25T13:30:00Z"), cancel("E-15")], [1, 0]),
        ("first_slot", [review("2026-03-25T13:30:00Z")] * 2, [0, 0]),
        ("decline_day", [decline(f"E-{n}") for n in (16, 17, 19, 18)], [1, 0]),
        ("decline_day", [decline("E-16", "P-6")], [0, 0]),
        ("larger_room", [("set_room", {"id": "E-20", "room": None})], [0, 1]),
        ("sick_day", [*ILL, *TOLD], [1, 1, 1, 1]),
        ("sick_day", [*ILL, cancel("E-29"), *TOLD], [1, 0, 1, 1]),
        ("sick_day", [*ILL, *TOLD, TOLD[1]], [1, 1, 0.5, 0]),
        ("sick_day", [*ILL, TOLD[0], mail("Vendor call", "maya", "jonas")], [1, 1, 0.5, 0]),
    ],
    ids=[
        *("sync", "sync made longer", "another sync"),
        *("slot", "later slot", "before New York works", "while Kolkata is busy", "too short"),
        *("one is missing", "makes room by cancelling", "entered twice"),
        *("declines a cancelled one too", "declines for another", "takes the room away"),
        *("ill", "cancels Saturday too", "tells twice", "tells Jonas too"),
    ],
)
async def test_the_calendar(tmp_path: Path, task: str, calls: list[Call], expected: list[float]):
    assert await scores(CALENDAR, tmp_path, task, calls) == expected


def book(item: int, place: int, qty: int, reason: str | None = None) -> Call:
    return "book", {"item": item, "bin": place, "qty": qty, "reason": reason}


def reverse(*movements: int) -> list[Call]:
    return [("reverse", {"movement": movement}) for movement in movements]


def order(**packs: int) -> list[Call]:
    return [("place_order", {"item": int(n[1:]), "packs": each}) for n, each in packs.items()]


DUE = {"i133": 1, "i197": 1, "i245": 1, "i309": 2, "i373": 1}


@pytest.mark.parametrize(
    ("task", "calls", "expected"),
    [
        ("book_delivery", [book(217, 31, 48), book(217, 32, 48)], [1, 0]),
        ("book_delivery", [book(217, 31, 24), book(217, 31, 24)], [0, 1]),
        ("clear_bin", [book(249, 88, -22), book(249, 89, 22)], [0.25, 0]),
        ("reverse_doubles", reverse(46704, 46753, 46796), [1, 1]),
        ("reverse_doubles", reverse(46704, 46741), [0, 1]),
        ("reverse_doubles", reverse(46704, 46753, 46796, 46781), [1, 0]),
        ("reorder", order(**DUE), [1, 1]),
        ("reorder", order(**DUE, i421=1), [pytest.approx(5 / 6), 1]),
        ("reorder", order(**{**DUE, "i309": 3}), [pytest.approx(4 / 5), 1]),
    ],
    ids=[
        *("booked twice", "in two parts", "booked instead of moved"),
        *("the first entries", "both entries", "another supplier's too"),
        *("ordered", "what is on its way too", "a pack too many"),
    ],
)
async def test_the_warehouse(tmp_path: Path, task: str, calls: list[Call], expected: list[float]):
    assert await scores(WAREHOUSE, tmp_path, task, calls) == expected
