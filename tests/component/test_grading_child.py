"""How work in a child process ends, and what it cannot do."""

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from wavetank.bundles.world import Entity, Field, FieldType, WorldBundle
from wavetank.testing.grading import wait_until
from wavetank.worlds import database
from wavetank.worlds.grading import exchange
from wavetank.worlds.grading.child import Child, Ending, How, Limits, Send
from wavetank.worlds.tables import VALUE_BYTES

LIMITS = Limits(seconds=1, wall_seconds=20)


def ended(work: Callable[[Send], None], limits: Limits = LIMITS) -> tuple[list[bytes], Ending]:
    child = Child(work, limits)
    lines = list(child)
    assert child.ending is not None
    return lines, child.ending


def sends_and_returns(send: Send) -> None:
    send(b"one")
    send(b"x" * 200_000)


def computes_for_ever(send: Send) -> None:
    send(b"one")
    while True:
        pass


def waits_for_ever(send: Send) -> None:
    send(b"one")
    time.sleep(600)


def closes_its_pipe_and_goes_on(send: Send) -> None:
    send(b"one")
    os.closerange(3, 100)
    time.sleep(600)


def drips(send: Send) -> None:
    send(b"one")
    pipe = next(number for number in range(3, 64) if _is_open(number))
    while True:
        os.write(pipe, b"x")
        time.sleep(0.01)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def is_killed(send: Send) -> None:
    send(b"one")
    os.kill(os.getpid(), signal.SIGKILL)


def crashes(send: Send) -> None:
    send(b"one")
    os.kill(os.getpid(), signal.SIGBUS)


def raises(send: Send) -> None:
    send(b"one")
    raise ValueError


def eats_memory(send: Send) -> None:
    send(b"one")
    held = []
    while True:
        held.append(bytearray(10_000_000))


@pytest.mark.parametrize(
    ("work", "limits", "how", "words"),
    [
        (sends_and_returns, LIMITS, How.DONE, ""),
        (computes_for_ever, LIMITS, How.SILENT, "nothing came from it for 1 s"),
        (
            waits_for_ever,
            Limits(seconds=1, wall_seconds=0.2),
            How.SILENT,
            "nothing came from it for 1 s",
        ),
        (
            drips,
            Limits(seconds=1, wall_seconds=0.2),
            How.SILENT,
            "nothing came from it for 1 s",
        ),
        (closes_its_pipe_and_goes_on, LIMITS, How.SILENT, "nothing came from it for 1 s"),
        (is_killed, LIMITS, How.KILLED, "it was killed"),
        (crashes, LIMITS, How.CRASHED, "its process ended by signal SIGBUS"),
        (raises, LIMITS, How.CRASHED, "its process ended by exit code 1"),
        (eats_memory, LIMITS, How.CRASHED, "its process ended by exit code 1"),
    ],
)
def test_a_child_that_ends_tells_how_and_what_it_sent_counts(
    work: Callable[[Send], None], limits: Limits, how: How, words: str
) -> None:
    lines, ending = ended(work, limits)

    assert lines[0] == b"one"
    assert ending == Ending(how, words)


def test_long_lines_arrive_whole() -> None:
    assert ended(sends_and_returns)[0] == [b"one", b"x" * 200_000]


def test_a_child_does_not_hold_its_parents_lock(tmp_path: Path) -> None:
    lock = exchange.hold(tmp_path)

    def tells_after_the_parent_let_go(send: Send) -> None:
        send(b"started")
        time.sleep(600)

    child = Child(tells_after_the_parent_let_go, Limits(seconds=1, wall_seconds=0.5))
    lines = iter(child)
    assert next(lines) == b"started"
    assert not exchange.is_abandoned(tmp_path)
    os.close(lock)

    assert exchange.is_abandoned(tmp_path)
    assert list(lines) == []


def test_a_child_can_write_no_file(tmp_path: Path) -> None:
    def writes(send: Send) -> None:
        try:
            (tmp_path / "file").write_bytes(b"x")
        except OSError as error:
            send(str(error.strerror).encode())

    assert ended(writes) == ([b"File too large"], Ending(How.DONE))


def test_sqlite_runs_out_of_memory_before_the_child_does() -> None:
    def fills(send: Send) -> None:
        database = sqlite3.connect(":memory:")
        database.execute("CREATE TABLE t (x)")
        try:
            while True:
                database.execute("INSERT INTO t VALUES (zeroblob(9999999))")
        except MemoryError:
            send(b"out of memory")

    assert ended(fills) == ([b"out of memory"], Ending(How.DONE))


NOTES = Entity("notes", (Field("text", FieldType.STRING),))


def test_a_value_that_graders_could_not_hold_is_not_stored(tmp_path: Path) -> None:
    with closing(database.create([WorldBundle(tmp_path, entities=(NOTES,))])) as databases:
        transaction = databases.begin()
        with pytest.raises(sqlite3.DataError, match="string or blob too big"):
            transaction.execute("", "INSERT INTO notes VALUES (?)", ("x" * (VALUE_BYTES + 1),))


def test_what_a_child_started_dies_with_it() -> None:
    def starts_another(send: Send) -> None:
        grandchild = os.fork()
        if grandchild == 0:
            time.sleep(600)
        send(str(grandchild).encode())

    # The grandchild keeps the pipe to the parent open: that is silence, not an end.
    lines, ending = ended(starts_another, Limits(seconds=1, wall_seconds=0.3))

    assert ending.how is How.SILENT
    wait_until(lambda: not is_running(int(lines[0])))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state not in ("Z", "X")
