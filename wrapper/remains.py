"""What is left of a run: the processes of its session, and those that left it but kept its mark.

Read from ``/proc``, where a session's members and, for processes of our own user, their environment stand. A
zombie is not left: it does nothing any more, and whoever inherited it will collect it. Where the client has a
user of its own, whatever runs as that user is of the run.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable

RUN_VARIABLE = "SEAT_RUN"
"""The variable that marks every process of a run, unless it empties its environment."""

_PROC = "/proc"
_PIECE = 64 * 1024


def alive(session: int, mark: str) -> tuple[int, ...]:
    """The processes of ``session``, or with ``mark`` in their environment, that still run."""
    marked = f"{RUN_VARIABLE}={mark}".encode()
    return tuple(process for process in _running() if _belongs(process, session, marked))


def alive_of(uid: int) -> tuple[int, ...]:
    """The processes that run as the user ``uid``, in whatever session."""
    return tuple(process for process in _running() if _runs_as(process, uid))


def send_signal(processes: Iterable[int], number: signal.Signals) -> None:
    """Send ``number`` to each; who is gone, or is not ours to signal, stays as it is."""
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def _belongs(process: int, session: int, marked: bytes) -> bool:
    # The session first: the kernel tells it without a file. With hundreds of processes on a host, each read
    # of each of them is felt in every turn.
    try:
        if os.getsid(process) != session and marked not in _read(process, "environ").split(b"\0"):
            return False
        # "pid (name) state parent ...": the name may hold spaces and parentheses.
        return _read(process, "stat").rpartition(b")")[2].split()[0] not in b"ZX"
    except OSError:  # gone meanwhile, or another user's
        return False


def _runs_as(process: int, uid: int) -> bool:
    # The owner of the folder would be quicker, and is root for a process that hides its memory.
    try:
        lines = _read(process, "status").splitlines()
    except OSError:  # gone meanwhile
        return False
    said = dict(line.split(b":", 1) for line in lines if line.startswith((b"State:", b"Uid:")))
    return said[b"State"].split()[0] not in b"ZX" and str(uid).encode() in said[b"Uid"].split()


def _running() -> list[int]:
    return [int(entry) for entry in os.listdir(_PROC) if entry.isdigit()]  # noqa: PTH208 - names, not paths


def _read(process: int, name: str) -> bytes:
    descriptor = os.open(f"{_PROC}/{process}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = [os.read(descriptor, _PIECE)]
        while pieces[-1]:
            pieces.append(os.read(descriptor, _PIECE))
    finally:
        os.close(descriptor)
    return b"".join(pieces)
