"""1 for the earliest slot, 0.5 for a later one that suits all three, else 0."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

PEOPLE = ("P-2", "P-3", "P-4")
EARLIEST = datetime.fromisoformat("2026-03-25T13:30:00+00:00")


def verify(world, trajectory):
    reviews = world.find("cal_events", title="Budget review", status="confirmed")
    if len(reviews) != 1:
        return 0.0
    review = reviews[0]
    invited = {each["person_id"] for each in world.find("cal_invitations", event_id=review["id"])}
    start, end = moments(review)
    if (
        (review["organizer"], review["room"]) != ("P-2", None)
        or invited != set(PEOPLE)
        or end - start != timedelta(minutes=30)
        or start.date().isoformat() != "2026-03-25"
        or not all(suits(world, person, review) for person in PEOPLE)
    ):
        return 0.0
    return 1.0 if start == EARLIEST else 0.5


def suits(world, id, review):
    person = world.find_one("cal_people", id=id)
    zone = ZoneInfo(person["zone"])
    start, end = (moment.astimezone(zone) for moment in moments(review))
    works = f"{start:%H:%M}" >= person["work_starts"] and f"{end:%H:%M}" <= person["work_ends"]
    return works and start.date() == end.date() and not busy(world, id, review)


def busy(world, id, review):
    # A join, since a world that an agent has filled is too large to be looked at row by row.
    statement = """SELECT COUNT(*) AS number
        FROM cal_events JOIN cal_invitations ON event_id = id
        WHERE person_id = ? AND response <> 'declined' AND status = 'confirmed' AND id <> ?
          AND starts_at < ? AND ends_at > ?"""
    given = (id, review["id"], review["ends_at"], review["starts_at"])
    return world.sql(statement, given)[0]["number"] > 0


def moments(event):
    return (datetime.fromisoformat(event[name]) for name in ("starts_at", "ends_at"))
