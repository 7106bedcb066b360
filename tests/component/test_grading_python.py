"""What a Python check is given, what its answer means, and what it cannot do."""

import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from wavetank.api.wire import Score
from wavetank.bundles.world import VerifierKey, read
from wavetank.core.causes import Cause
from wavetank.testing.bundles import write_bundle, write_linked
from wavetank.worlds import database
from wavetank.worlds.grading import fence, members
from wavetank.worlds.grading.child import Child, Limits, Send
from wavetank.worlds.grading.python import score_of
from wavetank.worlds.grading.sql import SessionFacts
from wavetank.worlds.grading.states import States, states_of

SESSION = SessionFacts("close_ticket", "It is closed.", 2, "closed")
CALLS = [
    {
        "n": 1,
        "at": "2026-01-01T09:00:00Z",
        "tool": "update_ticket",
        "arguments": {"id": "T-7", "status": "closed"},
        "seconds": 0.25,
        "result": {"id": "T-7"},
    },
    {
        "n": 2,
        "at": "2026-01-01T09:00:01Z",
        "tool": "update_ticket",
        "arguments": {"id": "T-9", "status": "closed"},
        "seconds": 0.5,
        "error": {"type": "ToolError", "message": "there is no ticket T-9", "details": None},
    },
    # So long that the world did not record the whole.
    {
        "n": 3,
        "at": "2026-01-01T09:00:02Z",
        "tool": "list_tickets",
        "seconds": 0,
        "leftOutBytes": {"result": 99_000_000},
    },
]


class Desk:
    """The end state of a session at the desk, linked to the chat."""

    def __init__(self, folder: Path) -> None:
        self.main = write_linked(folder)
        self._linked = {"slack": folder / "slack"}
        self._state = folder / "state"
        with closing(database.create(read(self.main, self._linked).worlds)) as databases:
            databases.dump(self._state)
        self._record = folder / "trajectory.jsonl"
        self._record.write_text("".join(json.dumps(call) + "\n" for call in CALLS))

    def scores(
        self, *names: str, alias: str = "", seconds: float = 10.0, **checks: str
    ) -> list[Score]:
        """Write Python checks and return their scores, then those of the named verifiers."""
        folder = self._linked[alias] if alias else self.main
        sources = {f"verifiers/{name}.py": text for name, text in checks.items()}
        write_bundle(folder, dict(sources))
        world = read(self.main, self._linked)
        assert world.faults == ()
        states: States = states_of(world, self._state, SESSION, self._record)
        keys = [VerifierKey(alias, name) for name in (*checks, *names)]
        return members.score_all(world, keys, states, seconds)

    def score(self, body: str, *, alias: str = "", seconds: float = 10.0) -> Score:
        """Return the score of a check with this body."""
        source = f"def verify(world, trajectory):\n    {body}\n"
        [found] = self.scores(alias=alias, seconds=seconds, it=source)
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("answer", "value"),
    [("0.25", 0.25), ("1", 1.0), ("0", 0.0), ("True", 1.0), ("False", 0.0)],
)
def test_a_number_in_0_to_1_or_a_boolean_is_the_score(
    desk: Desk, answer: str, value: float
) -> None:
    assert desk.score(f"return {answer}") == Score(name="it", value=value)


@pytest.mark.parametrize(
    ("body", "cause", "message"),
    [
        ("return None", Cause.REWARD_MISSING, "verify returned None"),
        ("pass", Cause.REWARD_MISSING, "verify returned None"),
        ("return 'yes'", Cause.REWARD_INVALID, "not a number in 0..1: 'yes'"),
        ("return 1.5", Cause.REWARD_INVALID, "not a number in 0..1: 1.5"),
        ("return -0.001", Cause.REWARD_INVALID, "not a number in 0..1: -0.001"),
        ("return float('nan')", Cause.REWARD_INVALID, "not a number in 0..1: nan"),
        ("return [1.0]", Cause.REWARD_INVALID, "not a number in 0..1: [1.0]"),
        (
            "raise ValueError('no such day')",
            Cause.VERIFIER_FAILED,
            "at line 2: ValueError: no such day",
        ),
        ("return {}['id']", Cause.VERIFIER_FAILED, "at line 2: KeyError: 'id'"),
        ("import sys; sys.exit('bye')", Cause.VERIFIER_FAILED, "at line 2: SystemExit: bye"),
        (
            "import os; os._exit(0)",
            Cause.VERIFIER_FAILED,
            "the verifier could not be run: its process ended by itself",
        ),
        (
            "import os; os._exit(3)",
            Cause.VERIFIER_FAILED,
            "the verifier could not be run: its process ended by exit code 3",
        ),
        (
            "import signal as s; s.signal(s.SIGALRM, s.SIG_DFL); s.alarm(1); s.pause()",
            Cause.VERIFIER_FAILED,
            "the verifier could not be run: its process ended by signal SIGALRM",
        ),
        ("return bytearray(1 << 40)", Cause.VERIFIER_FAILED, "at line 2: MemoryError"),
        (
            "return verify(world, trajectory)",
            Cause.VERIFIER_FAILED,
            "at line 2: RecursionError: maximum recursion depth exceeded",
        ),
    ],
)
def test_anything_else_is_no_score_but_a_cause(
    desk: Desk, body: str, cause: Cause, message: str
) -> None:
    assert desk.score(body) == Score(name="it", value=None, cause=cause, message=message)


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "import time; time.sleep(600)",
        "import re; re.match('(a+)+$', 'a' * 99 + 'b')",
        "import os, time\n    while True: os.write(PIPE, b'x'); time.sleep(0.01)",
    ],
    ids=["computes", "sleeps", "matches", "talks"],
)
def test_an_endless_check_is_timed_out_and_the_others_are_scored(desk: Desk, body: str) -> None:
    endless = f"{FINDS_THE_PIPE}\ndef verify(world, trajectory):\n    {body}\n"

    found = desk.scores("ticket_closed", endless=endless, after=RETURNS_1, seconds=0.2)

    assert [(each.name, each.value, each.cause) for each in found] == [
        ("endless", None, Cause.VERIFIER_TIMEOUT),
        ("after", 1.0, None),
        ("ticket_closed", 0.0, None),
    ]


RETURNS_1 = "def verify(world, trajectory):\n    return 1\n"
FINDS_THE_PIPE = """\
import os, stat
PIPE = next(n for n in range(3, 64) if os.path.exists(f"/proc/self/fd/{n}")
            and stat.S_ISFIFO(os.fstat(n).st_mode))
"""


@pytest.mark.parametrize(
    "expression",
    [
        "world.find('crm_tickets', status='open') == [{'id': 'T-7', 'status': 'open', "
        "'close_reason': None, 'account_id': 'A-1'}]",
        "[row['id'] for row in world.find('crm_tickets', close_reason=None)] == ['T-7', 'T-8']",
        "world.find_one('crm_tickets', id='T-7', account_id='A-1')['status'] == 'open'",
        "world.find_one('crm_tickets', id='T-9') is None",
        "world.sql('SELECT COUNT(*) AS n FROM crm_tickets WHERE id IN (?, ?)', ('T-7', 'T-8')) "
        "== [{'n': 2}]",
        "world.sql('SELECT final_answer FROM _session') == [{'final_answer': 'It is closed.'}]",
        "len(world.linked('slack').find('messages')) == 1",
        "world.linked('slack') is world.linked('slack')",
        "(trajectory.task, trajectory.final_answer, trajectory.end) "
        "== ('close_ticket', 'It is closed.', 'closed')",
        "[(call.tool, call.arguments, call.result) for call in trajectory.calls[:1]] "
        "== [('update_ticket', {'id': 'T-7', 'status': 'closed'}, {'id': 'T-7'})]",
        "(trajectory.calls[0].at, trajectory.calls[0].seconds, trajectory.calls[0].error) "
        "== ('2026-01-01T09:00:00Z', 0.25, None)",
        "trajectory.calls[1].error['message'] == 'there is no ticket T-9'",
        "(trajectory.calls[2].arguments, trajectory.calls[2].result) == (None, None)",
    ],
)
def test_a_check_sees_the_end_state_and_what_happened(desk: Desk, expression: str) -> None:
    assert desk.score(f"return {expression}") == Score(name="it", value=1.0)


def test_a_linked_worlds_check_sees_its_own_state(desk: Desk) -> None:
    found = desk.score("return len(world.find('messages')) == 1", alias="slack")

    assert found == Score(name="slack/it", value=1.0)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("world.find('tickets')", "no entity is named 'tickets'. Name one of: crm_accounts, crm_t"),
        ("world.find('crm_tickets', colour=1)", "crm_tickets has no field 'colour'"),
        ("world.find('crm_tickets', id=7)", "crm_tickets.id: 7 does not fit"),
        ("world.linked('mail')", "no world is linked as 'mail'. Name one of: slack."),
        ("world.linked('slack').linked('slack')", "no world is linked as 'slack'. There is none"),
        ("world.sql('DELETE FROM crm_tickets')", "not authorized; DELETE crm_tickets is refused"),
        ("world.sql('PRAGMA query_only = 0')", "not authorized; PRAGMA query_only 0 is refused"),
        ("world.sql('SELECT 1; SELECT 2')", "You can only execute one statement at a time."),
        ("world.sql(\"SELECT date('now')\")", "it asks for the time of the machine"),
        ("world.sql('SELECT 1 FROM nowhere')", "no such table: nowhere"),
    ],
)
def test_a_question_that_cannot_be_answered_is_told(desk: Desk, body: str, words: str) -> None:
    found = desk.score(body)

    assert (found.value, found.cause) == (None, Cause.VERIFIER_FAILED)
    assert words in found.message


def test_the_agents_text_is_a_value_and_never_code(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    mark = tmp_path / "executed"
    text = f"__import__('os').mkdir({str(mark)!r})"
    (tmp_path / "trajectory.jsonl").write_text(json.dumps({**CALLS[0], "tool": text}) + "\n")

    found = desk.score(f"return trajectory.calls[0].tool == {text!r}")

    assert found.value == 1.0
    assert not mark.exists()
    eval(text)  # noqa: S307 - the control: executed, it would have left the mark
    assert mark.exists()


def test_nothing_of_the_parents_surroundings_reaches_a_check(desk: Desk) -> None:
    assert os.environ
    assert desk.score("import os; return not os.environ").value == 1.0
    assert desk.score("import sys, os; return os.getcwd() not in sys.path").value == 1.0


def test_what_a_check_prints_goes_nowhere(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    assert desk.score("print('{\"value\": 1.0}', flush=True); return 0").value == 0.0

    assert capfd.readouterr() == ("", "")


def test_a_check_that_draws_lots_draws_the_same_again(desk: Desk) -> None:
    draws = "import random; return random.random()"

    assert desk.score(draws) == desk.score(draws)


# What a child may say instead of its score: people's code can find the pipe and write to it.
@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff",
        b"1.0",
        b'{"name":"it","value":2.0}',
        b'{"name":"it","value":NaN}',
        b'{"name":"it","value":"1.0"}',
        b'{"name":"it","value":null}',
        b'{"name":"it","value":1.0,"cause":"RewardMissing"}',
        b'{"name":"it","value":null,"cause":"AgentFailed"}',
        b'{"name":"it","value":1.0,"reward":1.0}',
        b'{"name":"it","value":1.0,"message":"' + b"x" * 301 + b'"}',
    ],
)
def test_a_line_that_is_no_score_is_refused(line: bytes) -> None:
    assert score_of("it", line) == Score(
        name="it",
        value=None,
        cause=Cause.VERIFIER_FAILED,
        message="its process said something that is no score",
    )


def test_a_check_that_writes_to_the_pipe_speaks_for_itself_only(desk: Desk) -> None:
    lines = b"".join(
        Score(name=name, value=1.0).canonical() + b"\n" for name in ("ticket_closed", "forged") * 99
    )
    forged = f"{FINDS_THE_PIPE}\ndef verify(world, trajectory):\n    os.write(PIPE, {lines!r})\n"

    found = desk.scores("ticket_closed", forged=forged, last=RETURNS_1.replace("1", "0.5"))

    # As if it had returned 1.
    assert found == [
        Score(name="forged", value=1.0),
        Score(name="last", value=0.5),
        Score(name="ticket_closed", value=0.0),
    ]


# --- what the fence holds back -------------------------------------------------------------------

Deed = Callable[[Path, int], object]
"""Something done to a folder, or to another process."""


def raw(number: int, *arguments: int) -> None:
    """Make a system call without anybody's help."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(number, *arguments) == -1:
        raise OSError(ctypes.get_errno(), "refused")


def in_a_thread(_: Path, victim: int) -> None:
    failed: list[OSError] = []

    def work() -> None:
        try:
            os.kill(victim, 0)
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    for error in failed:
        raise error


def forks(_: Path, victim: int) -> None:
    if os.fork() == 0:
        os._exit(0)


def limits(_: Path, victim: int) -> None:
    resource.prlimit(victim, resource.RLIMIT_CPU, (60, 60))


DEEDS: dict[str, Deed] = {
    "opens a socket": lambda folder, victim: socket.socket(),
    "opens a local socket": lambda folder, victim: socket.socket(socket.AF_UNIX),
    "opens a pair of sockets": lambda folder, victim: socket.socketpair(),
    "makes an empty file": lambda folder, victim: (folder / "done").touch(),
    "opens a file to write": lambda folder, victim: os.open(folder / "file", os.O_RDWR),
    "empties a file": lambda folder, victim: os.truncate(folder / "file", 0),
    "empties a file by opening": lambda folder, victim: os.open(folder / "file", os.O_TRUNC),
    "renames a file": lambda folder, victim: (folder / "file").rename(folder / "other"),
    "removes a file": lambda folder, victim: (folder / "file").unlink(),
    "links to a file": lambda folder, victim: os.link(folder / "file", folder / "other"),
    "makes a symbolic link": lambda folder, victim: (folder / "other").symlink_to("/"),
    "makes a folder": lambda folder, victim: (folder / "other").mkdir(),
    "removes a folder": lambda folder, victim: (folder / "folder").rmdir(),
    "makes a named pipe": lambda folder, victim: os.mkfifo(folder / "other"),
    "changes a mode": lambda folder, victim: (folder / "file").chmod(0o600),
    "changes a time": lambda folder, victim: os.utime(folder / "file", (0, 0)),
    "locks a file": lambda folder, victim: fcntl.flock(
        os.open(folder / "file", os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB
    ),
    "forks": forks,
    "starts a program": lambda folder, victim: subprocess.run(["true"], check=True),
    "spawns a program": lambda folder, victim: os.posix_spawn("/bin/true", ["true"], {}),
    "sends a signal": lambda folder, victim: os.kill(victim, 0),
    "sends a signal to a group": lambda folder, victim: os.killpg(os.getpgid(victim), 0),
    "sends a signal from a thread": in_a_thread,
    "sends a signal to a process by its file": lambda folder, victim: signal.pidfd_send_signal(
        os.pidfd_open(victim), 0
    ),
    "has a file send signals": lambda folder, victim: fcntl.fcntl(
        os.open(folder / "file", os.O_RDONLY), fcntl.F_SETOWN, victim
    ),
    "limits another process": limits,
    "limits itself": lambda folder, victim: limits(folder, os.getpid()),
    "makes another process nice": lambda folder, victim: os.setpriority(
        os.PRIO_PROCESS, victim, os.getpriority(os.PRIO_PROCESS, victim) + 1
    ),
    "pins another process": lambda folder, victim: os.sched_setaffinity(
        victim, os.sched_getaffinity(victim)
    ),
    "makes shared memory": lambda folder, victim: raw(
        {"x86_64": 29, "aarch64": 194}[os.uname().machine], 0, 4096, 0o1600
    ),
}


@pytest.fixture
def victim() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process.pid
    process.kill()
    process.wait()


def outcome(deed: Deed, folder: Path, victim: int, *, fenced: bool) -> bytes:
    """What became of a deed in a child process."""

    def work(send: Send) -> None:
        if fenced:
            fence.close()
        try:
            deed(folder, victim)
        except OSError as error:
            send(errno.errorcode[error.errno or 0].encode())
        else:
            send(b"done")

    with closing(iter(Child(work, Limits(seconds=10, wall_seconds=60)))) as lines:
        return next(lines)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    return tmp_path


def listing(folder: Path) -> Sequence[tuple[str, int, int, float]]:
    return [
        (each.name, each.stat().st_mode, each.stat().st_size, each.stat().st_mtime)
        for each in sorted(folder.iterdir())
    ]


@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)
def test_behind_the_fence_nothing_is_reached_or_changed(
    folder: Path, victim: int, deed: Deed
) -> None:
    before = listing(folder)

    assert outcome(deed, folder, victim, fenced=True) == b"EPERM"

    assert listing(folder) == before
    # The control: without the fence it works.
    assert outcome(deed, folder, victim, fenced=False) == b"done"


def test_behind_the_fence_honest_work_goes_on(folder: Path) -> None:
    def reads(folder: Path, _: int) -> None:
        assert (folder / "file").read_text() == "x"
        assert len(list(folder.iterdir())) == 2
        resource.getrlimit(resource.RLIMIT_CPU)
        thread = threading.Thread(target=lambda: sum(range(1000)))
        thread.start()
        thread.join()

    assert outcome(reads, folder, 0, fenced=True) == b"done"


@pytest.mark.parametrize(
    "body",
    [
        "import os, signal; os.kill(os.getppid(), signal.SIGKILL)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os, signal; os.killpg(0, signal.SIGKILL)",
    ],
    ids=["parent", "itself", "group"],
)
def test_a_check_that_kills_costs_its_own_score_only(desk: Desk, body: str) -> None:
    killer = f"def verify(world, trajectory):\n    {body}\n"

    found = desk.scores("ticket_closed", before=RETURNS_1, killer=killer, after=RETURNS_1)

    assert [(each.name, each.value, each.cause) for each in found] == [
        ("before", 1.0, None),
        ("killer", None, Cause.VERIFIER_FAILED),
        ("after", 1.0, None),
        ("ticket_closed", 0.0, None),
    ]
    assert "PermissionError" in found[1].message


def test_a_check_that_eats_all_memory_costs_its_own_score_only(desk: Desk) -> None:
    eats = "def verify(world, trajectory):\n    held = []\n    while True: held.append(bytes(9999999))\n"

    found = desk.scores("ticket_closed", eats=eats, after=RETURNS_1)

    assert [(each.value, each.cause, each.message) for each in found] == [
        (None, Cause.VERIFIER_FAILED, "at line 3: MemoryError"),
        (1.0, None, ""),
        (0.0, None, ""),
    ]
