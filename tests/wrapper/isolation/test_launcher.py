"""`wrapper.isolation.launcher`: the fences that it puts up, and what is left behind them."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wrapper.isolation import launcher
from wrapper.isolation.launch import READ_ONLY

HERE = os.uname().machine

needs_landlock = pytest.mark.skipif(
    launcher.abi() < launcher.NETWORK_ABI, reason="this kernel has no Landlock, or an old one"
)


@pytest.mark.parametrize(
    ("version", "rights"),
    [(1, 0x1FFF), (2, 0x3FFF), (3, 0x7FFF), (4, 0x7FFF), (5, 0xFFFF), (6, 0xFFFF), (99, 0xFFFF)],
)
def test_every_right_of_the_kernels_version_is_asked_for_and_no_other(version: int, rights: int) -> None:
    assert launcher.file_rights(version) == rights


@pytest.mark.parametrize(("version", "words"), [(3, 1), (4, 2), (5, 2), (6, 3), (7, 3)])
def test_the_kernel_is_told_as_much_as_it_knows(version: int, words: int) -> None:
    told = struct.unpack(f"{words}Q", launcher.ruleset(version))
    assert told == (launcher.file_rights(version), 3, 3)[:words]


def test_a_file_is_granted_what_means_something_for_a_file() -> None:
    everything = launcher.file_rights(7)
    assert launcher.granted(everything, 7, folder=True) == everything
    assert launcher.granted(everything, 7, folder=False) == launcher.OF_FILES
    assert launcher.granted(launcher.READING, 7, folder=False) == launcher.EXECUTE | launcher.READ_FILE


# --- the filter for system calls -------------------------------------------------------------------------


def judged(machine: str, number: int, *arguments: int, identity: int | None = None) -> int:
    """What the filter says to a system call: the machine that runs such programs, in a few lines."""
    program = launcher.socket_filter(machine)
    words = list(arguments) + [0] * (6 - len(arguments))
    known = launcher.SOCKET_CALLS[machine][0]
    data = struct.pack("iIQ6Q", number, known if identity is None else identity, 0, *words)
    held, at = 0, 0
    while True:
        code, so, not_so, value = struct.unpack_from("HBBI", program, 8 * at)
        at += 1
        match code:
            case launcher.LOAD:
                (held,) = struct.unpack_from("I", data, value)
            case launcher.JUMP_IF_EQUAL:
                at += so if held == value else not_so
            case launcher.JUMP_IF_AT_LEAST:
                at += so if held >= value else not_so
            case launcher.RETURN:
                return int(value)


NO_FAMILY, NO = launcher.REFUSE | errno.EAFNOSUPPORT, launcher.REFUSE | errno.EPERM


@pytest.mark.parametrize("machine", sorted(launcher.SOCKET_CALLS))
def test_the_sockets_of_every_family_but_four_are_refused(machine: str) -> None:
    socket_call = launcher.SOCKET_CALLS[machine][1]
    allowed = {family for family in range(64) if judged(machine, socket_call, family, 1, 0) == launcher.ALLOW}
    assert allowed == {launcher.AF_UNIX, launcher.AF_INET, launcher.AF_INET6, launcher.AF_NETLINK}
    for protocol in range(1, 32):
        assert judged(machine, socket_call, launcher.AF_NETLINK, 3, protocol) == NO_FAMILY
    assert judged(machine, socket_call, 40, 1, 0) == NO_FAMILY


@pytest.mark.parametrize("machine", sorted(launcher.SOCKET_CALLS))
def test_on_the_internet_there_are_tcp_and_udp_and_nothing_else(machine: str) -> None:
    socket_call = launcher.SOCKET_CALLS[machine][1]
    for family in (launcher.AF_INET, launcher.AF_INET6):
        every = {protocol for protocol in range(300) if judged(machine, socket_call, family, 1, protocol)}
        allowed = {each for each in every if judged(machine, socket_call, family, 1, each) == launcher.ALLOW}
        assert allowed == {0, socket.IPPROTO_TCP, socket.IPPROTO_UDP}
    multipath = judged(machine, socket_call, launcher.AF_INET, 1, 262)
    assert multipath == launcher.REFUSE | errno.EPROTONOSUPPORT


@pytest.mark.parametrize("machine", sorted(launcher.SOCKET_CALLS))
def test_nothing_lasting_is_made(machine: str) -> None:
    calls = launcher.LASTING_CALLS[machine]
    assert {judged(machine, call) for call in calls} == {NO}
    assert {judged(machine, call + 1) for call in calls} == {launcher.ALLOW}


@pytest.mark.parametrize("machine", sorted(launcher.SOCKET_CALLS))
def test_other_calls_pass_and_ways_round_do_not(machine: str) -> None:
    assert judged(machine, 0) == launcher.ALLOW
    assert judged(machine, 435) == launcher.ALLOW
    assert judged(machine, launcher.IO_URING_SETUP) == NO
    assert judged(machine, launcher.X32_BIT | 41, 2) == NO
    assert judged(machine, 0, identity=0x40000003) == NO  # by the numbers of a 32-bit machine


def test_an_unknown_machine_gets_no_filter_and_so_no_client() -> None:
    with pytest.raises(OSError, match="no filter for pdp11"):
        launcher.socket_filter("pdp11")


# --- behind the fences, for real -------------------------------------------------------------------------


def launched(
    folder: Path, code: str, *, fenced: bool = True, **reach: Any
) -> subprocess.CompletedProcess[str]:
    ours = [sys.prefix, sys.base_prefix, "/usr", "/lib", "/lib64", "/bin", *READ_ONLY]
    told = {"fenced": fenced, "cwd": str(folder), "read": ours, "write": [str(folder)], "ports": [], **reach}
    setpriv = ("setpriv", "--no-new-privs", "--")
    command = (
        sys.executable,
        "-I",
        "-S",
        launcher.__file__,
        "a-name",
        json.dumps(told),
        "--",
        sys.executable,
    )
    return subprocess.run(
        [*setpriv, *command, "-I", "-S", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env={"LANG": "C", "ONE": "1"},
    )


ATTEMPTS = """
import ctypes, os, socket
def tell(what, attempt):
    try: attempt()
    except OSError as error: print(what, error.strerror)
    else: print(what, "ok")
tell("write", lambda: open("here", "w"))
tell("elsewhere", lambda: open(os.path.join(os.pardir, "beside"), "w"))
tell("etc", lambda: os.listdir("/etc"))
tell("own", lambda: open("/proc/self/status"))
tell("others", lambda: open("/proc/1/status"))
tell("port", lambda: socket.create_connection(("127.0.0.1", 9), 2))
tell("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
tell("multipath", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262))
tell("score", lambda: open("/proc/self/oom_score_adj", "w"))
print(open("/proc/self/oom_score_adj").read().strip(), ctypes.CDLL(None).shmget(0, 4096, 0o600))
"""


@needs_landlock
def test_behind_the_fences_only_what_is_listed_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    done = launched(folder, ATTEMPTS)
    assert done.stdout.splitlines() == [
        "write ok",
        "elsewhere Permission denied",
        "etc Permission denied",
        "own ok",
        "others Permission denied",
        "port Permission denied",
        "vsock Address family not supported by protocol",
        "multipath Protocol not supported",
        "score Permission denied",
        "1000 -1",
    ], done.stderr
    assert not (tmp_path / "beside").exists()


def test_without_fences_it_goes_to_its_folder_and_that_is_all(tmp_path: Path) -> None:
    done = launched(tmp_path, "import os; print(os.getcwd(), os.listdir('/etc') != [])", fenced=False)
    assert done.stdout.split() == [str(tmp_path), "True"], done.stderr


def test_the_environment_is_what_was_given(tmp_path: Path) -> None:
    code = "print(open('/proc/self/environ').read().split(chr(0)))"
    done = launched(tmp_path, code, fenced=False)
    assert done.stdout.strip() == "['LANG=C', 'ONE=1', '']", done.stderr


def test_what_cannot_be_started_is_said_with_the_launchers_name(tmp_path: Path) -> None:
    done = launched(tmp_path, "print('never')", cwd=str(tmp_path / "nowhere"))
    assert (done.returncode, done.stdout) == (126, "")
    assert done.stderr.startswith("a-name: ")
    assert "nowhere" in done.stderr
