"""Running programs, and telling the person what happens.

Everything that is said goes to standard error, so that standard output stays free for a command's one result.
"""

import contextlib
import fcntl
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from clusterlib import settings

_LINE_SECONDS = 15.0
"""How often a progress line is repeated where no terminal shows it: CI logs keep every line."""


class ClusterToolError(Exception):
    """Something the person can act on: the message says what, where, and how to fix it."""


class NeedsRootError(ClusterToolError):
    """The command changes the machine's network, mounts or packages and was called by another user than root."""


def say(message: str) -> None:
    """Print one line for the person."""
    sys.stderr.write(message + "\n")
    sys.stderr.flush()


def result(text: str) -> None:
    """Print a command's result, for a person or a script."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def require_root(command: str) -> None:
    """Raise unless root runs this.

    Raises:
        NeedsRootError: If another user does; nothing has been changed then.
    """
    if os.geteuid() != 0:
        raise NeedsRootError(
            f"'{command}' needs root: it makes a bridge, mounts, cgroups and firewall rules on this machine. "
            f"Nothing was started. Run it with sudo."
        )


def run(argv: list[str], *, cwd: Path | None = None, check: bool = True, **extra: str) -> str:
    """Run a program to its end and return its standard output; keywords are added to its environment.

    Raises:
        ClusterToolError: If it ends with another code than 0 while ``check`` is true, or does not exist.
    """
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=settings.program_environment(**extra),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise ClusterToolError(
            f"There is no program '{argv[0]}'. Run 'cluster.py packages' first."
        ) from error
    if check and done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-12:])
        raise ClusterToolError(f"'{' '.join(argv)}' ended with code {done.returncode}:\n{tail}")
    return done.stdout


class Progress:
    """One line about a long step: rewritten on a terminal, repeated every 15 s in a log."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._began = time.monotonic()
        self._printed = 0.0
        self._terminal = sys.stderr.isatty()

    @property
    def seconds(self) -> float:
        """Seconds since the step began."""
        return time.monotonic() - self._began

    def update(self, detail: str) -> None:
        """Show the newest detail, if it is time to."""
        now = time.monotonic()
        if now - self._printed < (0.2 if self._terminal else _LINE_SECONDS):
            return
        self._printed = now
        line = f"{self._title}: {detail} ({self.seconds:.0f} s)"
        sys.stderr.write(f"\r\033[K{line}" if self._terminal else f"{line}\n")
        sys.stderr.flush()

    def done(self, detail: str = "done") -> None:
        """Show the end of the step."""
        clear = "\r\033[K" if self._terminal else ""
        say(f"{clear}{self._title}: {detail} ({self.seconds:.1f} s)")


def run_with_progress(
    argv: list[str], title: str, log: Path, describe: Callable[[str], str], **extra: str
) -> None:
    """Run a long program, showing what ``describe`` makes of each line that it prints.

    The whole output goes to ``log``; keywords are added to the program's environment.

    Raises:
        ClusterToolError: If it ends with another code than 0; the log's last lines are in the message.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    progress = Progress(title)
    with (
        log.open("w") as out,
        subprocess.Popen(
            argv,
            env=settings.program_environment(**extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        for line in process.stdout or ():
            out.write(line)
            detail = describe(line.rstrip())
            if detail:
                progress.update(detail)
    if process.returncode != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise ClusterToolError(f"{title} ended with code {process.returncode}; see {log}:\n{tail}")
    progress.done()


def wait_until(what: str, ready: Callable[[], bool], seconds: float) -> None:
    """Ask ``ready`` until it says yes.

    Raises:
        ClusterToolError: If it has not after ``seconds``.
    """
    deadline = time.monotonic() + seconds
    pause = 0.05
    while not ready():
        if time.monotonic() > deadline:
            raise ClusterToolError(f"{what}: not within {seconds:.0f} s.")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.5)


@contextlib.contextmanager
def locked(file: Path, waiting: str) -> Iterator[None]:
    """Hold a lock that one process at a time can have; say ``waiting`` if another has it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(waiting)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary name to write to; it becomes ``path`` only if the block ends without an exception."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    yield temporary
    temporary.replace(path)


def version_in(text: str) -> tuple[int, int]:
    """Return the first ``major.minor`` in a text, or (0, 0) if there is none.

    >>> version_in("go version go1.26.8 linux/amd64")
    (1, 26)
    """
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)
