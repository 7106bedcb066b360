"""The chat's tools. Whoever links this world sees them as ``<alias>__post_message`` and so on."""

from typing import Annotated

from pydantic import Field

from wavetank.worlds import ToolError, World, tool


@tool
def list_channels(world: World) -> list[dict]:
    """List the channels with their topics."""
    return world.find("slack_channels")


@tool
def list_members(world: World) -> list[dict]:
    """List the members, and who is away."""
    return world.find("slack_members")


@tool
def read_channel(
    world: World, channel: str, limit: Annotated[int, Field(ge=1, le=50)] = 20
) -> list[dict]:
    """Read the newest messages of a channel, the oldest of them first.

    Args:
        channel: The channel's name, with or without '#'.
        limit: How many to read at most.
    """
    messages = world.find("slack_messages", channel_id=_channel(world, channel)["id"])
    return sorted(messages, key=lambda message: message["posted_at"])[-limit:]


@tool
def post_message(world: World, channel: str, text: str, thread_of: str | None = None) -> dict:
    """Post a message to a channel.

    Args:
        channel: The channel's name, with or without '#'.
        text: The message.
        thread_of: The message that it answers, like S-4.
    """
    if not text.strip():
        raise ToolError("the message is empty")
    home = _channel(world, channel)
    if (
        thread_of is not None
        and world.find_one("slack_messages", id=thread_of, channel_id=home["id"]) is None
    ):
        raise ToolError(f"there is no message {thread_of} in #{home['name']}")
    number = world.sql("SELECT count(*) + 1 AS number FROM slack_messages")[0]["number"]
    return world.insert(
        "slack_messages",
        {
            "id": f"S-{number}",
            "channel_id": home["id"],
            "author_id": "M-6",
            "text": text,
            "thread_of": thread_of,
            "posted_at": world.now(),
        },
    )


def _channel(world: World, name: str) -> dict:
    channel = world.find_one("slack_channels", name=name.removeprefix("#"))
    if channel is None:
        raise ToolError(f"there is no channel {name}; list_channels shows them")
    return channel
