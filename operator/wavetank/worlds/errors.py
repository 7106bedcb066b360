"""What tools raise, and what the agent is told.

    ToolError          the tool's author says no: the agent reads the words as they are
      ConstraintError  a write breaks the schema: names entity, field and value
    SessionEnded       the session was closed under a running call

Anything else that a tool raises is the author's bug: the agent reads "internal error", the
trajectory keeps it whole.
"""


class ToolError(Exception):
    """Raise it in a tool to refuse a call: nothing changed, and the agent reads the message."""


class ConstraintError(ToolError):
    """A row breaks the schema: a key, a reference, an enum, a type or a null rule."""

    def __init__(self, message: str, *, entity: str, field: str | None, value: object) -> None:
        self.entity = entity
        self.field = field
        """The column; None when the database could not tell."""
        self.value = value
        super().__init__(message)


class SessionEnded(Exception):
    """The session ended while a tool was at work: its transaction is gone."""
