"""The tools of the world: each function marked with @tool is one."""

from typing import Literal

from wavetank.worlds import ToolError, World, tool

Status = Literal["open", "pending", "closed"]


@tool
def list_tickets(world: World, status: Status | None = None) -> list[dict]:
    """List tickets.

    Args:
        status: Only those with this status.
    """
    if status is None:
        return world.find("crm_tickets")
    return world.find("crm_tickets", status=status)


@tool
def update_ticket(world: World, id: str, status: Status, reason: str | None = None) -> dict:
    """Change a ticket's status.

    Args:
        id: The ticket, like T-7.
        status: The new status.
        reason: Why; required when closing.
    """
    if world.find_one("crm_tickets", id=id) is None:
        raise ToolError(f"there is no ticket {id}")
    if status == "closed" and not reason:
        raise ToolError("a ticket is closed with a reason")
    return world.update("crm_tickets", {"id": id}, {"status": status, "close_reason": reason})[0]
