"""The support desk's tools."""

from typing import Annotated, Literal

from pydantic import Field

from wavetank.worlds import ToolError, World, tool

Status = Literal["open", "pending", "closed"]
Priority = Literal["low", "normal", "high", "urgent"]
Limit = Annotated[int, Field(ge=1, le=50)]


@tool
def list_accounts(
    world: World, status: Literal["active", "locked", "suspended"] | None = None
) -> list[dict]:
    """List the customers' accounts.

    Args:
        status: Only accounts of this status.
    """
    return world.find("crm_accounts", **_given(status=status))


@tool
def get_account(world: World, id: str) -> dict:
    """Show an account with the ids of its tickets that are not closed.

    Args:
        id: The account, like A-04.
    """
    account = world.find_one("crm_accounts", id=id)
    if account is None:
        raise ToolError(f"there is no account {id}")
    tickets = [t["id"] for t in world.find("crm_tickets", account_id=id) if t["status"] != "closed"]
    return {**account, "tickets": tickets}


@tool
def list_staff(world: World) -> list[dict]:
    """List the people of the support desk with their teams."""
    return world.find("crm_staff")


@tool
def list_tickets(
    world: World,
    status: Status | None = None,
    priority: Priority | None = None,
    account_id: str | None = None,
    offset: Annotated[int, Field(ge=0)] = 0,
    limit: Limit = 20,
) -> dict:
    """List tickets, the oldest first, without their texts.

    Args:
        status: Only tickets of this status.
        priority: Only tickets of this priority.
        account_id: Only tickets of this account, like A-04.
        offset: How many to skip.
        limit: How many to show at most.
    """
    found = world.find(
        "crm_tickets", **_given(status=status, priority=priority, account_id=account_id)
    )
    found.sort(key=lambda ticket: ticket["opened_at"])
    return {"total": len(found), "tickets": [_short(t) for t in found[offset : offset + limit]]}


@tool
def search_tickets(world: World, text: str, limit: Limit = 20) -> list[dict]:
    """Find tickets whose subject or body holds a text; capital letters do not matter.

    Args:
        text: What to look for, like an invoice number.
        limit: How many to show at most.
    """
    wanted = text.casefold()
    found = [
        ticket
        for ticket in world.find("crm_tickets")
        if wanted in f"{ticket['subject']}\n{ticket['body']}".casefold()
    ]
    return [_short(ticket) for ticket in found[:limit]]


@tool
def get_ticket(world: World, id: str) -> dict:
    """Show a ticket with its text and comments.

    Args:
        id: The ticket, like T-7.
    """
    return {**_ticket(world, id), "comments": world.find("crm_comments", ticket_id=id)}


@tool
def update_ticket(
    world: World,
    id: str,
    status: Status | None = None,
    priority: Priority | None = None,
    assignee: str | None = None,
    reason: str | None = None,
) -> dict:
    """Change a ticket. What is not given stays as it is.

    Args:
        id: The ticket, like T-7.
        status: Its new status.
        priority: Its new priority.
        assignee: Who works on it from now on, like U-3.
        reason: Why it is closed, like 'answered' or 'duplicate'; only together with closing.
    """
    if _ticket(world, id)["merged_into"] is not None:
        raise ToolError(f"{id} was merged into another ticket; change that one")
    if reason is not None and status != "closed":
        raise ToolError("a reason is only recorded when the status becomes 'closed'")
    if assignee is not None and world.find_one("crm_staff", id=assignee) is None:
        raise ToolError(f"there is nobody with the id {assignee}; list_staff shows who is")
    changes = _given(status=status, priority=priority, assignee=assignee, close_reason=reason)
    if not changes:
        raise ToolError("give at least one of status, priority, assignee")
    return _change(world, id, changes)


@tool
def merge_tickets(world: World, id: str, into: str) -> dict:
    """Merge a ticket into another one of the same account: it is closed and points there.

    Args:
        id: The ticket that goes, like T-8.
        into: The ticket that stays, like T-7.
    """
    goes, stays = _ticket(world, id), _ticket(world, into)
    if id == into:
        raise ToolError("a ticket cannot be merged into itself")
    if goes["account_id"] != stays["account_id"]:
        raise ToolError(f"{id} is of {goes['account_id']}, {into} of {stays['account_id']}")
    if goes["merged_into"] is not None or stays["merged_into"] is not None:
        raise ToolError("one of the two was merged already")
    _change(world, into, {})
    return _change(world, id, {"status": "closed", "close_reason": "merged", "merged_into": into})


@tool
def add_comment(
    world: World, ticket_id: str, body: str, visibility: Literal["public", "internal"]
) -> dict:
    """Add a comment to a ticket.

    Args:
        ticket_id: The ticket, like T-7.
        body: The text.
        visibility: Public comments are sent to the customer.
    """
    _ticket(world, ticket_id)
    number = world.sql("SELECT count(*) + 1 AS number FROM crm_comments")[0]["number"]
    _change(world, ticket_id, {})
    return world.insert(
        "crm_comments",
        {
            "id": f"C-{number}",
            "ticket_id": ticket_id,
            "author": "Desk Assistant",
            "visibility": visibility,
            "body": body,
            "created_at": world.now(),
        },
    )


@tool
def set_account_status(
    world: World, id: str, status: Literal["active", "locked", "suspended"]
) -> dict:
    """Unlock, lock or suspend an account.

    Args:
        id: The account, like A-04.
        status: Its new status.
    """
    if world.find_one("crm_accounts", id=id) is None:
        raise ToolError(f"there is no account {id}")
    return world.update("crm_accounts", {"id": id}, {"status": status})[0]


def _ticket(world: World, id: str) -> dict:
    ticket = world.find_one("crm_tickets", id=id)
    if ticket is None:
        raise ToolError(f"there is no ticket {id}")
    return ticket


def _change(world: World, id: str, changes: dict) -> dict:
    return world.update("crm_tickets", {"id": id}, {**changes, "updated_at": world.now()})[0]


def _short(ticket: dict) -> dict:
    shown = (
        "id",
        "account_id",
        "subject",
        "category",
        "priority",
        "status",
        "assignee",
        "opened_at",
    )
    return {name: ticket[name] for name in shown}


def _given(**values: object) -> dict:
    return {name: value for name, value in values.items() if value is not None}
