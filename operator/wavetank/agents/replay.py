"""``python -m wavetank.agents.replay``: the agent of ``oracle`` and ``scripted``.

It makes the calls of a file one after another and ends at the first that fails.
"""

import json
import sys

from wavetank.agents.settings import ReplaySettings, read_replay_settings
from wavetank.agents.world_http import WorldHttp, WorldUnreachableError


class ReplayError(Exception):
    """The file, or a call in it, is no good."""


def main() -> int:
    """Run the agent; return the exit code."""
    settings = read_replay_settings()
    try:
        count = _replay(settings)
    except (ReplayError, WorldUnreachableError) as error:
        sys.stderr.write(f"replay: {error}\n")
        return 1
    sys.stdout.write(f"replay: {count} calls made\n")
    return 0


def _replay(settings: ReplaySettings) -> int:
    steps = _steps(settings)
    world = WorldHttp(settings.world_url)
    calls = [step for step in steps if "final_answer" not in step]
    for number, step in enumerate(calls, start=1):
        answer = world.call(str(step.get("tool")), step.get("arguments", {}))
        if answer.status != 200:
            raise ReplayError(f"call {number} of {len(calls)}, {step.get('tool')}: {answer.error}")
    world.close()
    for step in steps:
        if "final_answer" in step:
            (settings.output / "final_answer.txt").write_text(str(step["final_answer"]))
    return len(calls)


def _steps(settings: ReplaySettings) -> list[dict[str, object]]:
    try:
        value = json.loads(settings.solution_file.read_bytes())
    except (OSError, ValueError) as error:
        raise ReplayError(f"{settings.solution_file}: {error}") from error
    if not isinstance(value, list) or not all(isinstance(step, dict) for step in value):
        raise ReplayError(f"{settings.solution_file}: it must be a list of calls")
    return value


if __name__ == "__main__":
    sys.exit(main())
