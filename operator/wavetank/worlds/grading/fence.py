"""What people's Python cannot do while it grades: enforced by Linux, for the rest of the process.

A filter of system calls (seccomp) takes no privileges, so it works in a Pod without any. Behind it
a process opens no socket, changes no file or folder (not even by making an empty one), starts no
other process, sends no signal, does not reach into another process or change limits, and leaves no
memory behind that others share. It may
read what the container shows, compute, and use threads.

It is a list of what is refused. It holds against what is on it; the kernel's own faults are for the
Pod's sandbox to hold.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

# https://docs.kernel.org/userspace-api/seccomp_filter.html
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_PR_SET_NO_NEW_PRIVS = 38
_RET_ALLOW, _RET_ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
"""Instructions of the filter: load a word, three kinds of jumps, return."""
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
"""Offsets in ``struct seccomp_data``."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CLONE_THREAD = 0x00010000
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX = 8, 10, 15
_FIOSETOWN, _SIOCSPGRP = 0x8901, 0x8902
"""These five let a file send any signal to any process."""

# Numbers: asm/unistd_64.h (x86-64) and asm-generic/unistd.h (arm64). 424 and above are the same.
_NEWER = (424, 425, 434, 438, 452, 463, 466, 469)
"""pidfd_send_signal, io_uring_setup, pidfd_open, pidfd_getfd, fchmodat2, setxattrat,
removexattrat, file_setattr."""
_UNKNOWN = (435, 437)
"""clone3 and openat2 take their flags where a filter cannot look: the C library falls back."""


@dataclass(frozen=True)
class _Machine:
    arch: int
    """As the kernel calls it: AUDIT_ARCH_..."""
    refused: tuple[int, ...]
    open: int | None
    openat: int
    clone: int
    prlimit64: int
    fcntl: int
    ioctl: int


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers in a table of ``name number``."""
    return tuple(int(word) for word in text.split() if word.isdigit())


_MACHINES: Mapping[str, _Machine] = MappingProxyType(
    {
        "x86_64": _Machine(
            arch=0xC000003E,
            refused=_numbers("""
                socket 41 socketpair 53 fork 57 vfork 58 execve 59 execveat 322 unshare 272
                setns 308 ptrace 101 process_vm_readv 310 process_vm_writev 311
                kill 62 tkill 200 tgkill 234 rt_sigqueueinfo 129 rt_tgsigqueueinfo 297
                timer_create 222 setrlimit 160 setpgid 109 setsid 112 setpriority 141
                sched_setparam 142 sched_setscheduler 144 sched_setaffinity 203 sched_setattr 314
                ioprio_set 251 shmget 29 msgget 68 semget 64 mq_open 240
                creat 85 truncate 76 ftruncate 77 fallocate 285 flock 73
                rename 82 renameat 264 renameat2 316 mkdir 83 mkdirat 258 rmdir 84
                unlink 87 unlinkat 263 link 86 linkat 265 symlink 88 symlinkat 266
                mknod 133 mknodat 259 chmod 90 fchmod 91 fchmodat 268
                chown 92 fchown 93 lchown 94 fchownat 260
                utime 132 utimes 235 utimensat 280 futimesat 261
                setxattr 188 lsetxattr 189 fsetxattr 190
                removexattr 197 lremovexattr 198 fremovexattr 199
            """),
            open=2,
            openat=257,
            clone=56,
            prlimit64=302,
            fcntl=72,
            ioctl=16,
        ),
        "aarch64": _Machine(
            arch=0xC00000B7,
            refused=_numbers("""
                socket 198 socketpair 199 execve 221 execveat 281 unshare 97 setns 268
                ptrace 117 process_vm_readv 270 process_vm_writev 271
                kill 129 tkill 130 tgkill 131 rt_sigqueueinfo 138 rt_tgsigqueueinfo 240
                timer_create 107 setrlimit 164 setpgid 154 setsid 157 setpriority 140
                sched_setparam 118 sched_setscheduler 119 sched_setaffinity 122 sched_setattr 274
                ioprio_set 30 shmget 194 msgget 186 semget 190 mq_open 180
                truncate 45 ftruncate 46 fallocate 47 flock 32 renameat 38 renameat2 276
                mkdirat 34 unlinkat 35 linkat 37 symlinkat 36 mknodat 33
                fchmod 52 fchmodat 53 fchown 55 fchownat 54 utimensat 88
                setxattr 5 lsetxattr 6 fsetxattr 7 removexattr 14 lremovexattr 15 fremovexattr 16
            """),
            open=None,
            openat=56,
            clone=220,
            prlimit64=261,
            fcntl=25,
            ioctl=29,
        ),
    }
)


def close() -> None:
    """Shut this process in for good; elsewhere than on Linux, where no Pod is, do nothing.

    Raises:
        OSError: If it cannot be done: then nothing of people's may run.
    """
    if sys.platform != "linux":
        return
    program = program_for(platform.machine())
    held = ctypes.create_string_buffer(program, len(program))
    library = ctypes.CDLL(None, use_errno=True)
    given = _Program(len(program) // 8, ctypes.addressof(held))
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(given), 0, 0),
    ):
        if library.prctl(*arguments) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"the filter was not taken: {os.strerror(number)}")


def program_for(machine: str) -> bytes:
    """Return the filter for a machine, as the kernel takes it.

    Raises:
        OSError: If there is none.
    """
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, f"there is no filter for {machine}")
    return b"".join(_program(_MACHINES[machine]))


class _Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _program(machine: _Machine) -> Iterator[bytes]:
    """Yield the filter's instructions: each question either returns or goes on to the next."""
    refuse, unknown = _RET_ERRNO | errno.EPERM, _RET_ERRNO | errno.ENOSYS
    yield _load(_ARCH)
    yield from _unless(_EQUAL, machine.arch, unknown)
    yield _load(_NUMBER)
    # From here on are x86-64's numbers of the ABI x32, a second set that nothing uses.
    yield from _when(_AT_LEAST, 0x40000000, unknown)
    for number in (*machine.refused, *_NEWER):
        yield from _when(_EQUAL, number, refuse)
    for number in _UNKNOWN:
        yield from _when(_EQUAL, number, unknown)
    for number, questions in _by_argument(machine, refuse).items():
        body = [*questions, _instruction(_RETURN, _RET_ALLOW)]
        yield _instruction(_EQUAL, number, otherwise=len(body))
        yield from body
    yield _instruction(_RETURN, _RET_ALLOW)


def _by_argument(machine: _Machine, refuse: int) -> Mapping[int, Sequence[bytes]]:
    """Return what is asked about the arguments of calls that are refused for some of them."""
    asked = {
        machine.openat: [_load(_argument(2)), *_when(_ANY_BIT, _WRITING, refuse)],
        machine.clone: [_load(_argument(0)), *_unless(_ANY_BIT, _CLONE_THREAD, refuse)],
        # Its third argument points to a new limit; null only asks for the old one.
        machine.prlimit64: [
            *(_load(_argument(2)), *_unless(_EQUAL, 0, refuse)),
            *(_load(_argument(2) + 4), *_unless(_EQUAL, 0, refuse)),
        ],
        machine.fcntl: [_load(_argument(1))],
        machine.ioctl: [_load(_argument(1))],
    }
    for command in (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX):
        asked[machine.fcntl] += _when(_EQUAL, command, refuse)
    for command in (_FIOSETOWN, _SIOCSPGRP):
        asked[machine.ioctl] += _when(_EQUAL, command, refuse)
    if machine.open is not None:
        asked[machine.open] = [_load(_argument(1)), *_when(_ANY_BIT, _WRITING, refuse)]
    return asked


def _argument(index: int) -> int:
    """Return where an argument's lower half is; both machines have it first."""
    return _ARGUMENTS + 8 * index


def _when(question: int, value: int, answer: int) -> Sequence[bytes]:
    return _instruction(question, value, otherwise=1), _instruction(_RETURN, answer)


def _unless(question: int, value: int, answer: int) -> Sequence[bytes]:
    return _instruction(question, value, then=1), _instruction(_RETURN, answer)


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, offset)


def _instruction(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    """Return a ``struct sock_filter``; the last two are how many instructions to skip."""
    return struct.pack("=HBBI", code, then, otherwise, value)
