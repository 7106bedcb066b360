"""The calendar's tools. Moments go in with any offset and are kept in UTC."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from wavetank.worlds import ToolError, World, tool

Minutes = Annotated[int, Field(ge=5, le=480)]


@tool
def list_people(world: World) -> list[dict]:
    """List everybody with their time zone and working hours in that zone."""
    return world.find("cal_people")


@tool
def list_rooms(world: World, city: str | None = None) -> list[dict]:
    """List the rooms.

    Args:
        city: Only rooms there, like Berlin.
    """
    return world.find("cal_rooms", **({} if city is None else {"city": city}))


@tool
def list_events(
    world: World,
    after: str,
    before: str,
    person: str | None = None,
    room: str | None = None,
    title: str | None = None,
) -> list[dict]:
    """List the events that overlap a span of time, the earliest first; cancelled ones too.

    Args:
        after: Where the span begins, with an offset, like 2026-03-24T00:00:00+01:00.
        before: Where it ends.
        person: Only events that this person is invited to, like P-3, with the response.
        room: Only events in this room, like R-2.
        title: Only events whose title holds this text; capital letters do not matter.
    """
    if person is not None:
        _person(world, person)
    found = []
    for event in _overlapping(world, _moment(after), _moment(before)):
        response = _response(world, event["id"], person)
        if (
            (person is None or response is not None)
            and (room is None or event["room"] == room)
            and (title is None or title.casefold() in event["title"].casefold())
        ):
            found.append(event if person is None else {**event, "response": response})
    return found


@tool
def get_event(world: World, id: str) -> dict:
    """Show an event with who is invited.

    Args:
        id: The event, like E-12.
    """
    invited = world.find("cal_invitations", event_id=id)
    shown = [{"person_id": each["person_id"], "response": each["response"]} for each in invited]
    return {**_event(world, id), "invited": shown}


@tool
def local_time(world: World, moment: str, zone: str) -> str:
    """Tell what the clocks of a zone show at a moment.

    Args:
        moment: With an offset, like 2026-03-24T08:00:00Z.
        zone: Like Europe/Berlin.
    """
    try:
        return _moment(moment).astimezone(ZoneInfo(zone)).isoformat()
    except (KeyError, ValueError) as error:
        raise ToolError(f"there is no zone {zone}") from error


@tool
def create_event(
    world: World,
    title: str,
    organizer: str,
    starts_at: str,
    minutes: Minutes,
    invited: list[str],
) -> dict:
    """Put an event into the calendar. It has no room yet. The organizer is invited too.

    Args:
        title: What people see.
        organizer: Like P-3.
        starts_at: With an offset, like 2026-03-24T09:30:00+01:00.
        minutes: How long it is.
        invited: The others, like P-1 and P-4.
    """
    people = list(dict.fromkeys([organizer, *invited]))
    for person in people:
        _person(world, person)
    start = _moment(starts_at)
    number = world.sql("SELECT count(*) + 1 AS number FROM cal_events")[0]["number"]
    event = {
        "id": f"E-{number}",
        "title": title,
        "organizer": organizer,
        **_span(start, start + timedelta(minutes=minutes)),
        "room": None,
        "status": "confirmed",
        "updated_at": world.now(),
    }
    world.insert("cal_events", event)
    for person in people:
        answer = "accepted" if person == organizer else "none"
        row = {"event_id": event["id"], "person_id": person, "response": answer}
        world.insert("cal_invitations", {**row, "updated_at": event["updated_at"]})
    return get_event(world, event["id"])


@tool
def move_event(world: World, id: str, starts_at: str, minutes: Minutes | None = None) -> dict:
    """Move an event to another time.

    Args:
        id: The event, like E-12.
        starts_at: With an offset, like 2026-03-24T09:30:00+01:00.
        minutes: How long it is from now on; as long as before when not given.
    """
    event, start = _event(world, id), _moment(starts_at)
    length = _moment(event["ends_at"]) - _moment(event["starts_at"])
    if minutes is not None:
        length = timedelta(minutes=minutes)
    return _change(world, event, _span(start, start + length))


@tool
def set_room(world: World, id: str, room: str | None) -> dict:
    """Give an event another room, or none.

    Args:
        id: The event, like E-12.
        room: Like R-2; null for none.
    """
    return _change(world, _event(world, id), {"room": room})


@tool
def cancel_event(world: World, id: str) -> dict:
    """Cancel an event. Nobody is told of it.

    Args:
        id: The event, like E-12.
    """
    return _change(world, _event(world, id), {"status": "cancelled"})


@tool
def respond(
    world: World, event: str, person: str, response: Literal["none", "accepted", "declined"]
) -> dict:
    """Answer an invitation for somebody.

    Args:
        event: Like E-12.
        person: Like P-3.
        response: What they answer.
    """
    if _response(world, event, person) is None:
        raise ToolError(f"{person} is not invited to {event}")
    changes = {"response": response, "updated_at": world.now()}
    return world.update("cal_invitations", {"event_id": event, "person_id": person}, changes)[0]


def _event(world: World, id: str) -> dict:
    event = world.find_one("cal_events", id=id)
    if event is None:
        raise ToolError(f"there is no event {id}")
    return event


def _person(world: World, id: str) -> dict:
    person = world.find_one("cal_people", id=id)
    if person is None:
        raise ToolError(f"there is nobody with the id {id}; list_people shows who is")
    return person


def _response(world: World, event: str, person: str | None) -> str | None:
    found = world.find_one("cal_invitations", event_id=event, person_id=person)
    return found and found["response"]


def _change(world: World, event: dict, changes: dict) -> dict:
    if event["status"] == "cancelled":
        raise ToolError(f"{event['id']} is cancelled")
    _require_free(world, {**event, **changes})
    return world.update("cal_events", {"id": event["id"]}, {**changes, "updated_at": world.now()})[
        0
    ]


def _require_free(world: World, event: dict) -> None:
    """Refuse a room that another event has at the time."""
    room = event["room"]
    if room is None or event["status"] == "cancelled":
        return
    if world.find_one("cal_rooms", id=room) is None:
        raise ToolError(f"there is no room {room}; list_rooms shows them")
    for other in _overlapping(world, _moment(event["starts_at"]), _moment(event["ends_at"])):
        if (other["room"], other["status"]) == (room, "confirmed") and other["id"] != event["id"]:
            raise ToolError(f"{room} is taken by {other['id']} at that time")


def _overlapping(world: World, after: datetime, before: datetime) -> list[dict]:
    # All moments are kept as one form of text, so their order is that of time.
    span = _span(after, before)
    found = [
        event
        for event in world.find("cal_events")
        if event["starts_at"] < span["ends_at"] and event["ends_at"] > span["starts_at"]
    ]
    return sorted(found, key=lambda event: event["starts_at"])


def _span(start: datetime, end: datetime) -> dict:
    return {"starts_at": _text(start), "ends_at": _text(end)}


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ToolError(f"'{text}' is no moment; write 2026-03-24T09:30:00+01:00") from error
    if moment.tzinfo is None:
        raise ToolError(f"'{text}' has no offset; write 2026-03-24T09:30:00+01:00")
    return moment.astimezone(UTC)
