"""A small benchmark for tests on a cluster: a number that tools add to, and a tool that waits.

task     its solution               verifiers (initial)
ten      adds 10                    reached (0)
half     adds 5                     reached (0): 0.5, partial credit
slow     waits, then adds 10        reached (0)
"""

import json
from typing import Any

from wavetank.api.kinds import API_VERSION
from wavetank.manifests.objects import Manifest

_SCHEMA = {
    "entities": [
        {
            "name": "tally",
            "key": ["id"],
            "fields": [{"name": "id", "type": "string"}, {"name": "value", "type": "integer"}],
        }
    ]
}

_HANDLERS = '''\
import time

from wavetank.worlds import World, tool


@tool
def add(world: World, amount: int) -> dict:
    """Add to the tally."""
    value = world.find_one("tally", id="a")["value"] + amount
    return world.update("tally", {"id": "a"}, {"value": value})[0]


@tool
def wait(world: World, seconds: int) -> int:
    """Take some time."""
    time.sleep(seconds)
    return seconds
'''

_REACHED = "SELECT MIN(value, 10) / 10.0 FROM \"tally\" WHERE id = 'a'"

_CONFIG = """\
[world]
name = "tally"

[[tasks]]
id = "ten"
prompt = "Make the tally 10."
verifiers = ["reached"]

[[tasks]]
id = "half"
prompt = "Make the tally 10."
verifiers = ["reached"]
category = "halves"

[[tasks]]
id = "slow"
prompt = "Make the tally 10, slowly."
verifiers = ["reached"]
"""


def world(name: str = "tally", *, slow_seconds: int = 15) -> Manifest:
    """Return the World; its task ``slow`` acts for so many seconds."""
    calls: dict[str, list[tuple[str, dict[str, int]]]] = {
        "ten": [("add", {"amount": 10})],
        "half": [("add", {"amount": 5})],
        "slow": [("wait", {"seconds": slow_seconds}), ("add", {"amount": 10})],
    }
    files = {
        "gateway-env.toml": _CONFIG,
        "schema/world.json": json.dumps(_SCHEMA),
        "data/initial.json": json.dumps({"tally": [{"id": "a", "value": 0}]}),
        "tools/handlers.py": _HANDLERS,
        "verifiers/reached.sql": _REACHED,
    }
    for task, steps in calls.items():
        listed = [{"tool": tool, "arguments": arguments} for tool, arguments in steps]
        files[f"solutions/{task}.json"] = json.dumps(listed)
    inline = [{"path": path, "content": content} for path, content in files.items()]
    return _object("World", name, {"source": {"inline": inline}})


def benchmark(name: str = "tally", world_name: str = "tally", **more: Any) -> Manifest:
    """Return the Benchmark; ``more`` goes into ``spec.world``: own tasks, own verifiers."""
    return _object("Benchmark", name, {"world": {"worldRef": {"name": world_name}, **more}})


def run(
    name: str, *, benchmark_name: str = "tally", agent: str = "oracle", **spec: Any
) -> Manifest:
    """Return a Run; ``spec`` holds further fields of its spec."""
    fields = {"benchmarkRef": {"name": benchmark_name}, "agent": {"name": agent}, **spec}
    return _object("Run", name, fields)


def _object(kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
