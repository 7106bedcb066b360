"""Imports the handlers of a bundle in a child process, and tells which tools they make."""

from collections.abc import Mapping

from wavetank.api.wire import Part
from wavetank.bundles.world import ReadWorld
from wavetank.core.errors import Finding, Severity
from wavetank.worlds.grading.child import Child, How, Limits, Send
from wavetank.worlds.tools import load

_LIMITS = Limits(seconds=20, wall_seconds=60, file_mib=16)
"""Handlers are imported at the start of each session: what takes longer is broken."""


class _Found(Part):
    tools: dict[str, str]
    """The world's alias by the tool's name."""
    findings: list[tuple[Severity, str, str]]


def list_tools(world: ReadWorld) -> tuple[Mapping[str, str], list[Finding]]:
    """Return each tool's world (its alias, empty for the own one), and what is wrong."""

    def work(send: Send) -> None:
        loaded = load(world)
        found = _Found(
            tools={name: tool.alias for name, tool in loaded.tools.items()},
            findings=[(each.severity, each.path, each.message) for each in loaded.findings],
        )
        send(found.model_dump_json().encode())

    child = Child(work, _LIMITS)
    lines = list(child)
    if lines:
        found = _Found.model_validate_json(lines[0])
        return found.tools, [Finding(*each) for each in found.findings]
    ending = child.ending
    words = ending.words if ending else ""
    if ending and ending.how is How.DONE:
        words = "its process ended by itself"
    return {}, [Finding(Severity.FAULT, "tools/handlers.py", f"importing it did not end: {words}.")]
