"""World bundles for tests: written from a mapping of files, or a small one that is right."""

import json
from collections.abc import Mapping
from pathlib import Path

HANDLERS = '''\
from typing import Literal

from wavetank.worlds import ToolError, World, tool


@tool
def update_ticket(
    world: World, id: str, status: Literal["open", "pending", "closed"], reason: str | None = None
) -> dict:
    """Change a ticket's status.

    Args:
        id: The ticket, like T-7.
        reason: Why; required when closing.
    """
    if world.find_one("crm_tickets", id=id) is None:
        raise ToolError(f"there is no ticket {id}")
    return world.update("crm_tickets", {"id": id}, {"status": status, "close_reason": reason})[0]


@tool
async def list_tickets(world: World) -> list[dict]:
    """List all tickets."""
    return world.find("crm_tickets")
'''

SCHEMA: Mapping[str, object] = {
    "entities": [
        {
            "name": "crm_accounts",
            "key": ["id"],
            "fields": [{"name": "id", "type": "string"}, {"name": "name", "type": "string"}],
        },
        {
            "name": "crm_tickets",
            "description": "Support tickets.",
            "key": ["id"],
            "fields": [
                {"name": "id", "type": "string"},
                {"name": "status", "type": "string", "enum": ["open", "pending", "closed"]},
                {"name": "close_reason", "type": "string", "nullable": True},
                {"name": "account_id", "type": "string", "references": "crm_accounts.id"},
            ],
        },
    ]
}

DATA: Mapping[str, object] = {
    "crm_accounts": [{"id": "A-1", "name": "Acme"}],
    "crm_tickets": [
        {"id": "T-7", "status": "open", "close_reason": None, "account_id": "A-1"},
        {"id": "T-8", "status": "pending", "account_id": "A-1"},
    ],
}

CONFIG = """\
[world]
name = "crm"
description = "A support desk."
instructions = "You work at a support desk."

[[tasks]]
id = "close_ticket"
prompt = "Close ticket T-7 and record the reason as 'duplicate'."
verifiers = ["ticket_closed"]
"""

TICKET_CLOSED = """\
SELECT CASE WHEN COUNT(*) > 0 THEN 1.0 ELSE 0.0 END FROM "crm_tickets"
WHERE id = 'T-7' AND status = 'closed';
"""

DESK: Mapping[str, object] = {
    "gateway-env.toml": CONFIG,
    "schema/world.json": SCHEMA,
    "data/initial.json": DATA,
    "tools/handlers.py": HANDLERS,
    "verifiers/ticket_closed.sql": TICKET_CLOSED,
    "solutions/close_ticket.json": [
        {
            "tool": "update_ticket",
            "arguments": {"id": "T-7", "status": "closed", "reason": "duplicate"},
        },
        {"final_answer": "Closed."},
    ],
}
"""A world of two tables, two tools and one task, without a fault."""

OF_EACH_KIND: Mapping[str, object] = {
    "verifiers/ticket_closed.sql": TICKET_CLOSED,
    "verifiers/ticket_recorded.json": {
        "mode": "fraction",
        "assertions": [
            {
                "entity": "crm_tickets",
                "where": {"id": "T-7"},
                "expect": {"close_reason": {"contains": "duplicate"}},
            },
            {"entity": "crm_tickets", "where": {"status": "pending"}, "count": 1},
        ],
    },
    "verifiers/one_call.py": """\
def verify(world, trajectory):
    closed = world.find_one("crm_tickets", id="T-7", status="closed")
    return closed is not None and [call.tool for call in trajectory.calls] == ["update_ticket"]
""",
}
"""A verifier of each kind, for the desk's one task."""

CHAT: Mapping[str, object] = {
    "gateway-env.toml": '[world]\nname = "slack"\n',
    "data/initial.json": {"messages": [{"id": 1, "channel": "#general", "text": "hello"}]},
    "tools/handlers.py": '''\
from wavetank.worlds import World, tool


@tool
def post_message(world: World, channel: str, text: str) -> dict:
    """Post a message."""
    number = len(world.find("messages")) + 1
    return world.insert("messages", {"id": number, "channel": channel, "text": text})
''',
    "verifiers/message_posted.sql": "SELECT COUNT(*) > 1 FROM messages",
}
"""A world to link to, its schema inferred."""

LINKED_CONFIG = (
    CONFIG
    + """\
worlds = { slack = ["message_posted"] }

[dependencies.slack]
world = "../slack"
"""
)
"""``DESK``'s configuration when it is linked to ``CHAT``."""


def write_bundle(folder: Path, files: Mapping[str, object]) -> Path:
    """Write files into a folder and return it.

    Args:
        folder: Made when it is not there.
        files: By path: text and bytes are written as they are, None leaves the file out,
            anything else is written as JSON.
    """
    for path, content in files.items():
        if content is None:
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            target.write_bytes(content)
        else:
            target.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def write_linked(folder: Path, own: Mapping[str, object] | None = None) -> Path:
    """Write ``DESK`` linked to ``CHAT`` as two folders side by side; return the desk's."""
    write_bundle(folder / "slack", CHAT)
    files = {**DESK, "gateway-env.toml": LINKED_CONFIG, **(own or {})}
    return write_bundle(folder / "crm", files)
