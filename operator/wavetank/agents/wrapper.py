"""``python -m wavetank.agents.wrapper -- COMMAND...``: process 1 of every agent container.

It starts the session, runs the agent until it ends or the deadline comes, ends whatever is left of
it, and reports to the world, which seals the end state. Its exit code is the agent's; 124 at the
deadline, 125 when there was no world to act on, 143 when the container was told to stop. In the
last case it reports nothing: a session that was cut short from outside is not one that was closed.
"""

import os
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from wavetank.agents.process import WATCHED, Agent
from wavetank.agents.settings import WrapperSettings, read_wrapper_settings
from wavetank.agents.world_http import Answer, WorldHttp, WorldUnreachableError

_DEADLINE_CODE = 124
"""As ``timeout`` of coreutils has it."""
_NO_WORLD_CODE = 125
_NOT_FOUND_CODE = 127
_TERMINATED_CODE = 143
_PATIENCE_SECONDS = 15.0
"""How long a world that does not answer is asked again: a restarted one answers, but refuses."""
_PAUSE_SECONDS = 0.2
_FAR_AWAY_SECONDS = 10 * 365 * 24 * 3600.0
_ANSWER_BYTES = 256 * 1024


class NoWorldError(Exception):
    """The world does not answer, or refuses."""


def main(arguments: Sequence[str]) -> int:
    """Run the wrapper; return the exit code."""
    if len(arguments) < 2 or arguments[0] != "--":
        _say("usage: python -m wavetank.agents.wrapper -- COMMAND...")
        return 2
    # Blocked from the start, so that none is lost; the agent gets an empty mask.
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    settings = read_wrapper_settings()
    world = WorldHttp(settings.world_url)
    try:
        with tempfile.TemporaryDirectory(prefix="wavetank-") as folder:
            return _run(arguments[1:], settings, world, Path(folder))
    except NoWorldError as error:
        _say(str(error))
        return _NO_WORLD_CODE
    finally:
        world.close()


def _run(command: Sequence[str], settings: WrapperSettings, world: WorldHttp, folder: Path) -> int:
    session = _post(world, "/v1/start", {})
    if session.status != 200:
        raise NoWorldError(f"the world does not start the session: {session.error}")
    environment = _environment(settings, session, folder)
    until = _until(session)
    try:
        agent = Agent(command, environment, settings.is_init)
    except OSError as error:
        text = f"the agent's command cannot be run: {command[0]!r}: {error.strerror}"
        _say(text)
        _close(world, folder, f"exit code {_NOT_FOUND_CODE}", _NOT_FOUND_CODE, text)
        return _NOT_FOUND_CODE
    told = agent.wait(until)
    at_deadline = agent.exit_code is None and told is None
    agent.end()
    if told is not None:
        _say(f"told to stop by {told.name}; the session is left to the world")
        return _TERMINATED_CODE
    code = agent.exit_code or 0
    reason = "deadline" if at_deadline else f"exit code {code}" if code else "completed"
    _close(world, folder, reason, code, agent.output.text())
    return _DEADLINE_CODE if at_deadline else code


def _environment(settings: WrapperSettings, session: Answer, folder: Path) -> dict[str, str]:
    """Write the files that the agent reads, and return its environment."""
    (folder / "output").mkdir()
    for name in ("prompt", "instructions"):
        (folder / f"{name}.txt").write_text(str(session.body.get(name) or ""))
    return {
        **settings.environment,
        "WAVETANK_WORLD_URL": settings.world_url,
        "WAVETANK_MCP_URL": f"{settings.world_url}/mcp",
        "WAVETANK_TASK": str(session.body.get("task", "")),
        "WAVETANK_PROMPT_FILE": str(folder / "prompt.txt"),
        "WAVETANK_INSTRUCTIONS_FILE": str(folder / "instructions.txt"),
        "WAVETANK_DEADLINE": str(session.body.get("deadline") or ""),
        "WAVETANK_OUTPUT_DIR": str(folder / "output"),
    }


def _until(session: Answer) -> float:
    """Return the deadline as a moment of the monotonic clock; far away when there is none."""
    deadline = session.body.get("deadline")
    if not isinstance(deadline, str):
        return time.monotonic() + _FAR_AWAY_SECONDS
    # World and wrapper are in one Pod, so on one clock.
    return time.monotonic() + datetime.fromisoformat(deadline).timestamp() - time.time()


def _close(world: WorldHttp, folder: Path, reason: str, code: int, log: str) -> None:
    """Report the end and wait until the world has sealed it, for as long as it asks to."""
    report = {
        "reason": reason,
        "finalAnswer": _final_answer(folder / "output" / "final_answer.txt"),
        "exitCode": code,
        "log": log,
    }
    answer = _post(world, "/v1/close", report)
    while answer.retry_after is not None:
        time.sleep(answer.retry_after)
        answer = _post(world, "/v1/close", report)
    if answer.status != 200:
        raise NoWorldError(f"the world did not seal the session: {answer.error}")


def _post(world: WorldHttp, path: str, body: object) -> Answer:
    """Post what may be posted twice, while the world does not answer at all."""
    last = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return world.post(path, body)
        except WorldUnreachableError as error:
            if time.monotonic() > last:
                raise NoWorldError(f"the world does not answer: {error}") from error
            time.sleep(_PAUSE_SECONDS)


def _final_answer(path: Path) -> str | None:
    """Return what the agent left as its last message, if it is a plain file."""
    try:
        # Not blocking: the agent may have left a pipe there.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        return file.read(_ANSWER_BYTES).decode(errors="replace")


def _say(text: str) -> None:
    sys.stderr.write(f"wavetank: {text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
