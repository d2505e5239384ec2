"""Puts itself behind two fences and then becomes the program that it is given (§14.2).

Run as ``python -I -S launcher.py NAME REACH -- PROGRAM ARGUMENT...`` by the client's user, before the client;
`wrapper.isolation.launch.Reach` says what REACH is, and NAME is what it calls itself where it complains.
Needs no privilege and the standard library alone.

1. Landlock: whatever is not on the list is refused. The kernel is told every right that it knows, and the
   list grants some of them below some paths, and TCP connections to some ports.
2. A filter for system calls: sockets are UNIX, TCP, UDP or of the routing table, and no other. A packet fence
   knows nothing of a virtual machine's socket to its host (vsock), which older engines allow, and Landlock's
   ports nothing of multipath TCP; io_uring, which would make sockets past the filter, is refused. So is the
   memory of System V, which outlives every process that had it.
3. When memory runs out, the kernel ends the program first, and not whoever started it.
4. If a fence cannot be put up, the program is not run (exit code 126).
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import stat
import struct
import sys

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""The numbers of the three system calls, the same on every architecture that Linux has got since 2011."""

PATH_BENEATH, NET_PORT = 1, 2

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = (1 << bit for bit in range(4))
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
CONNECT_TCP, BIND_AND_CONNECT_TCP = 1 << 1, 0b11
ABSTRACT_SOCKETS_AND_SIGNALS = 0b11

READING = EXECUTE | READ_FILE | READ_DIR
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""The rights that mean something for what is not a folder; the kernel refuses a rule with any other."""

NETWORK_ABI, SCOPE_ABI = 4, 6
"""From which version of Landlock on ports are heard of, and signals and abstract sockets."""

PR_SET_SECCOMP, FILTER = 22, 2

SOCKET_CALLS = {
    "x86_64": (0xC000003E, 41),
    "aarch64": (0xC00000B7, 198),
    "riscv64": (0xC00000F3, 198),
}
"""Machine -> (how the filter knows it, its number of socket())."""

LASTING_CALLS = {"x86_64": (29, 64, 68), "aarch64": (194, 190, 186), "riscv64": (194, 190, 186)}
"""Machine -> its numbers of shmget(), semget() and msgget()."""

IO_URING_SETUP = 425
AF_UNIX, AF_INET, AF_NETLINK, AF_INET6, NETLINK_ROUTE = 1, 2, 16, 10, 0
BY_DEFAULT, TCP, UDP = 0, 6, 17
X32_BIT = 0x40000000

LOAD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER, MACHINE, FIRST, THIRD = 0, 4, 16, 32
"""Where the filter finds the system call's number, the machine, and two arguments."""

ALLOW, REFUSE = 0x7FFF0000, 0x00050000

MOST_LIKELY = 1000
"""The highest score for whom the kernel ends first when memory runs out. Behind Landlock it stays that."""

CANNOT_RUN = 126

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """Which version of Landlock the kernel has; 0 where there is none, or it is not allowed."""
    version = int(_libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1))
    return max(version, 0)


def file_rights(version: int) -> int:
    """Every right over files that Landlock knows in ``version``."""
    beyond_the_first = {2: REFER, 3: REFER | TRUNCATE, 4: REFER | TRUNCATE}
    return (1 << 13) - 1 | beyond_the_first.get(version, REFER | TRUNCATE | IOCTL_DEV if version > 1 else 0)


def ruleset(version: int) -> bytes:
    """What the kernel shall hear of, for ``struct landlock_ruleset_attr`` of ``version``."""
    words = [file_rights(version)]
    if version >= NETWORK_ABI:
        words.append(BIND_AND_CONNECT_TCP)
    if version >= SCOPE_ABI:
        words.append(ABSTRACT_SOCKETS_AND_SIGNALS)
    return struct.pack(f"{len(words)}Q", *words)


def granted(rights: int, version: int, *, folder: bool) -> int:
    """Those of ``rights`` that the kernel takes for a path that is a ``folder``, or is none."""
    return rights & file_rights(version) & (~0 if folder else OF_FILES)


def restrict(reach: dict[str, list[str] | list[int]], version: int) -> None:
    """Put this process behind the fence, for good. Raises `OSError`."""
    attributes = ruleset(version)
    descriptor = _call(CREATE_RULESET, ctypes.c_char_p(attributes), ctypes.c_size_t(len(attributes)), 0)
    try:
        for paths, rights in ((reach["read"], READING), (reach["write"], file_rights(version))):
            for path in paths:
                _grant_path(descriptor, str(path), rights, version)
        for port in reach["ports"] if version >= NETWORK_ABI else ():
            _grant(descriptor, NET_PORT, struct.pack("QQ", CONNECT_TCP, int(port)))
        _call(RESTRICT_SELF, descriptor, 0)
    finally:
        os.close(descriptor)


def socket_filter(machine: str) -> bytes:
    """The filter's program, eight bytes an instruction. Raises `OSError` for an unknown machine."""
    if machine not in SOCKET_CALLS:
        raise OSError(errno.ENOSYS, f"there is no filter for {machine}")
    identity, socket_call = SOCKET_CALLS[machine]
    # (code, where to if so, where to if not, value); no word is the next instruction.
    program: tuple[str | tuple[int, str, str, int], ...] = (
        (LOAD, "", "", MACHINE),
        (JUMP_IF_EQUAL, "", "no", identity),  # else: another machine's call, by other numbers
        (LOAD, "", "", NUMBER),
        (JUMP_IF_AT_LEAST, "no", "", X32_BIT),
        *((JUMP_IF_EQUAL, "no", "", call) for call in (IO_URING_SETUP, *LASTING_CALLS[machine])),
        (JUMP_IF_EQUAL, "", "yes", socket_call),
        (LOAD, "", "", FIRST),
        (JUMP_IF_EQUAL, "yes", "", AF_UNIX),
        (JUMP_IF_EQUAL, "internet", "", AF_INET),
        (JUMP_IF_EQUAL, "internet", "", AF_INET6),
        (JUMP_IF_EQUAL, "", "no family", AF_NETLINK),
        (LOAD, "", "", THIRD),
        (JUMP_IF_EQUAL, "yes", "no family", NETLINK_ROUTE),
        "internet",
        (LOAD, "", "", THIRD),
        *((JUMP_IF_EQUAL, "yes", "", protocol) for protocol in (BY_DEFAULT, TCP, UDP)),
        (RETURN, "", "", REFUSE | errno.EPROTONOSUPPORT),
        "no",
        (RETURN, "", "", REFUSE | errno.EPERM),
        "no family",
        (RETURN, "", "", REFUSE | errno.EAFNOSUPPORT),
        "yes",
        (RETURN, "", "", ALLOW),
    )
    places: dict[str, int] = {}
    instructions: list[tuple[int, str, str, int]] = []
    for step in program:
        if isinstance(step, str):
            places[step] = len(instructions)
        else:
            instructions.append(step)
    return b"".join(
        struct.pack("HBBI", code, *(places[word] - at if word else 0 for word in (so, not_so)), value)
        for at, (code, so, not_so, value) in enumerate(instructions, 1)
    )


def end_first() -> None:
    """Be what the kernel ends when memory runs out. Raises `OSError`."""
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:  # noqa: PTH123 - as in `environment`
        score.write(str(MOST_LIKELY))


def filter_sockets() -> None:
    """Put this process behind the filter, for good. Raises `OSError`."""
    program = socket_filter(os.uname().machine)
    held = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(held))
    if _libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.c_char_p(header), 0, 0):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _grant_path(ruleset: int, path: str, rights: int, version: int) -> None:
    try:
        # A link counts as what it leads to: /bin is one. Nobody but root made those on the list, except for
        # /proc/self, which is this process, and stays it when another program runs in it.
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        allowed = granted(rights, version, folder=stat.S_ISDIR(os.fstat(descriptor).st_mode))
        _grant(ruleset, PATH_BENEATH, struct.pack("=Qi", allowed, descriptor))
    finally:
        os.close(descriptor)


def _grant(ruleset: int, kind: int, rule: bytes) -> None:
    _call(ADD_RULE, ruleset, kind, ctypes.c_char_p(rule), 0)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def environment() -> dict[bytes, bytes]:
    """The environment as it was given: the interpreter adds to its own what it finds out of the locale."""
    with open("/proc/self/environ", "rb") as given:  # noqa: PTH123 - pathlib would double the time to start
        variables = given.read().split(b"\0")
    return dict(variable.split(b"=", 1) for variable in variables if b"=" in variable)


def main(arguments: list[str]) -> int:
    """Become the program, or say why not."""
    name, encoded, dashes, *program = arguments
    assert dashes == "--"
    try:
        reach = json.loads(encoded)
        os.chdir(reach["cwd"])
        end_first()
        if reach["fenced"]:
            restrict(reach, abi())
            filter_sockets()
        os.execve(program[0], program, environment())  # noqa: S606 - that is what it is for; no shell
    except OSError as error:
        sys.stderr.write(f"{name}: {error}\n")
        return CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
