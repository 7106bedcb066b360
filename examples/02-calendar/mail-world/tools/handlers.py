"""The mail's tools. Whoever links this world sees them as ``<alias>__send_message`` and so on."""

from typing import Annotated

from pydantic import Field

from wavetank.worlds import ToolError, World, tool

DOMAIN = "@northwind.example"


@tool
def list_messages(world: World, sender: str | None = None) -> list[dict]:
    """List the mail in the inbox, the newest first, without the texts.

    Args:
        sender: Only mail from this address.
    """
    given = {} if sender is None else {"sender": sender}
    found = world.find("mail_messages", folder="inbox", **given)
    found.sort(key=lambda message: message["sent_at"], reverse=True)
    return [{name: each[name] for name in ("id", "sender", "subject", "sent_at")} for each in found]


@tool
def read_message(world: World, id: str) -> dict:
    """Show a mail with its text.

    Args:
        id: The mail, like M-4.
    """
    message = world.find_one("mail_messages", id=id)
    if message is None:
        raise ToolError(f"there is no mail {id}")
    return message


@tool
def send_message(
    world: World, to: Annotated[list[str], Field(min_length=1)], subject: str, body: str
) -> dict:
    """Send a mail to people of the company.

    Args:
        to: Their addresses.
        subject: The subject.
        body: The text.
    """
    for address in to:
        if not address.endswith(DOMAIN):
            raise ToolError(f"{address} is not of the company: addresses end in {DOMAIN}")
    number = world.sql("SELECT count(*) + 1 AS number FROM mail_messages")[0]["number"]
    return world.insert(
        "mail_messages",
        {
            "id": f"M-{number}",
            "folder": "sent",
            "sender": f"assistant{DOMAIN}",
            "recipients": sorted(set(to)),
            "subject": subject,
            "body": body,
            "sent_at": world.now(),
        },
    )
