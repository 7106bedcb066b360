"""What ``tools/handlers.py`` of a world imports: ``from wavetank.worlds import ToolError, World, tool``."""

from wavetank.worlds.errors import ConstraintError, ToolError
from wavetank.worlds.world import World, tool

__all__ = ["ConstraintError", "ToolError", "World", "tool"]
