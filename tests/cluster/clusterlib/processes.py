"""The cluster's long-running programs: started in the background, known by pid files.

A pid file also has the process's start time, so a number that the kernel has given to another process since is never
signalled, and the command line, so a program whose flags have changed is replaced at the next start.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from clusterlib import cgroups, settings
from clusterlib.settings import Settings

_STOP_SECONDS = 5.0
"""How long a program may take to end by itself: the API server would wait a minute for watches to close."""


@dataclass(frozen=True)
class Program:
    """A program to keep running, in the order in which it starts."""

    name: str
    argv: tuple[str, ...]
    health: str
    """The URL that answers 200 when it is ready, or the path of the socket that then exists."""


def start(folders: Settings, program: Program) -> bool:
    """Start the program unless it runs already with these arguments; return whether it was started."""
    pid_file = _pid_file(folders, program.name)
    if is_running(folders, program.name):
        if json.loads(pid_file.read_text())["argv"] == list(program.argv):
            return False
        stop(folders, [program.name])
    folders.logs.mkdir(parents=True, exist_ok=True)
    folders.run.mkdir(parents=True, exist_ok=True)
    with (folders.logs / f"{program.name}.log").open("a") as log:
        process = subprocess.Popen(
            program.argv,
            cwd=folders.state,
            env=settings.program_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    cgroups.adopt(process.pid)
    content = {
        "pid": process.pid,
        "started": _start_time(process.pid),
        "argv": list(program.argv),
    }
    pid_file.write_text(json.dumps(content))
    # The child outlives this command; without this Python would warn that nobody waited for it.
    process.returncode = 0
    return True


def is_running(folders: Settings, name: str) -> bool:
    """Return whether the program's recorded process still lives."""
    return pid_of(folders, name) is not None


def pid_of(folders: Settings, name: str) -> int | None:
    """Return the program's process number, or None when it does not run."""
    try:
        recorded = json.loads(_pid_file(folders, name).read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    pid = int(recorded["pid"])
    alive = _start_time(pid) == recorded["started"] and recorded["started"] is not None
    return pid if alive else None


def stop(folders: Settings, names: list[str]) -> None:
    """End the named programs together: ask first, and kill what has not ended after five seconds."""
    pids = {name: pid for name in names if (pid := pid_of(folders, name)) is not None}
    for pid in pids.values():
        _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while any(is_running(folders, name) for name in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    for name, pid in pids.items():
        if is_running(folders, name):
            _signal(pid, signal.SIGKILL)
    while any(is_running(folders, name) for name in pids):
        time.sleep(0.05)
    for name in names:
        _pid_file(folders, name).unlink(missing_ok=True)


def last_lines(folders: Settings, name: str, count: int = 12) -> str:
    """Return the end of a program's log, to explain why it does not get ready."""
    log = folders.logs / f"{name}.log"
    return "\n".join(log.read_text(errors="replace").splitlines()[-count:]) if log.exists() else ""


def _pid_file(folders: Settings, name: str) -> Path:
    return folders.run / f"{name}.pid"


def _start_time(pid: int) -> str | None:
    """Return when the process began, in clock ticks since boot; None if it has ended, zombies included."""
    # A child that this very command started stays a zombie until it is waited for.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        # The second field is the name in parentheses, which may hold spaces; proc(5) counts state as field 3.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else fields[19]


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
