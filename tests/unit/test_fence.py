"""The filter of system calls, run by a machine of our own: also for processors that are not here."""

import errno
import os
import struct

import pytest

from wavetank.worlds.grading.fence import program_for

ALLOWED = 0x7FFF0000
REFUSED = 0x00050000 | errno.EPERM
UNKNOWN = 0x00050000 | errno.ENOSYS

ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# From the kernel's tables: asm/unistd_64.h and asm-generic/unistd.h.
CALLS = {
    "x86_64": {
        "read": 0, "write": 1, "open": 2, "mmap": 9, "ioctl": 16, "socket": 41, "connect": 42,
        "clone": 56, "fork": 57, "execve": 59, "exit": 60, "kill": 62, "fcntl": 72, "rename": 82,
        "unlink": 87, "futex": 202, "exit_group": 231, "openat": 257, "unlinkat": 263,
        "prlimit64": 302, "io_uring_setup": 425, "clone3": 435, "openat2": 437,
    },
    "aarch64": {
        "fcntl": 25, "ioctl": 29, "unlinkat": 35, "renameat": 38, "openat": 56, "read": 63,
        "write": 64, "exit": 93, "exit_group": 94, "futex": 98, "kill": 129, "socket": 198,
        "connect": 203, "clone": 220, "execve": 221, "mmap": 222, "prlimit64": 261,
        "io_uring_setup": 425, "clone3": 435, "openat2": 437,
    },
}  # fmt: skip


def answer(machine: str, call: str | int, *arguments: int, arch: int | None = None) -> int:
    """What the filter says to a call: the instructions of classic BPF that it uses, executed."""
    number = CALLS[machine][call] if isinstance(call, str) else call
    six = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, arch or ARCH[machine], 0, *six)
    program = list(struct.iter_unpack("=HBBI", program_for(machine)))
    held, at = 0, 0
    while True:
        code, then, otherwise, value = program[at]
        at += 1
        match code:
            case 0x20:
                (held,) = struct.unpack_from("<I", data, value)
            case 0x15:
                at += then if held == value else otherwise
            case 0x35:
                at += then if held >= value else otherwise
            case 0x45:
                at += then if held & value else otherwise
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"an instruction that is not expected: {code:#x}")


@pytest.fixture(params=ARCH)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_harmless_calls_are_allowed(machine: str) -> None:
    for call in ("read", "write", "mmap", "futex", "exit", "exit_group"):
        assert answer(machine, call) == ALLOWED


def test_calls_that_reach_out_or_change_something_are_refused(machine: str) -> None:
    for call in ("socket", "execve", "kill", "unlinkat", "io_uring_setup"):
        assert answer(machine, call) == REFUSED
    for call in {"fork", "rename", "unlink", "renameat"} & set(CALLS[machine]):
        assert answer(machine, call) == REFUSED


def test_calls_whose_flags_cannot_be_seen_are_unknown(machine: str) -> None:
    assert answer(machine, "clone3") == answer(machine, "openat2") == UNKNOWN


@pytest.mark.parametrize("flags", [os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC])
def test_files_are_opened_to_read_only(machine: str, flags: int) -> None:
    assert answer(machine, "openat", 0, 0, os.O_RDONLY | os.O_CLOEXEC) == ALLOWED
    assert answer(machine, "openat", 0, 0, flags | os.O_CLOEXEC) == REFUSED
    if "open" in CALLS[machine]:
        assert answer(machine, "open", 0, os.O_RDONLY | os.O_CLOEXEC) == ALLOWED
        assert answer(machine, "open", 0, flags) == REFUSED


def test_threads_are_made_and_processes_are_not(machine: str) -> None:
    thread = 0x3D0F00  # what the C library asks for
    assert answer(machine, "clone", thread) == ALLOWED
    assert answer(machine, "clone", 17) == REFUSED


@pytest.mark.parametrize("pointer", [1, 1 << 32, (1 << 63) + 1])
def test_limits_are_asked_and_not_set(machine: str, pointer: int) -> None:
    assert answer(machine, "prlimit64", 0, 7, 0, 99) == ALLOWED
    assert answer(machine, "prlimit64", 0, 7, pointer) == REFUSED


def test_no_file_is_made_to_send_signals(machine: str) -> None:
    for command in (1, 2, 3, 4, 6):
        assert answer(machine, "fcntl", 3, command) == ALLOWED
    for command in (8, 10, 15):
        assert answer(machine, "fcntl", 3, command) == REFUSED
    for command in (0x8901, 0x8902):
        assert answer(machine, "ioctl", 3, command) == REFUSED
    assert answer(machine, "ioctl", 3, 0x5401) == ALLOWED


def test_calls_by_another_table_of_numbers_are_unknown(machine: str) -> None:
    i386 = 0x40000003

    assert answer(machine, "read", arch=i386) == UNKNOWN
    assert answer("x86_64", 0x40000000 | CALLS["x86_64"]["socket"]) == UNKNOWN


def test_a_machine_without_a_filter_is_refused() -> None:
    with pytest.raises(OSError, match="there is no filter for riscv64"):
        program_for("riscv64")
