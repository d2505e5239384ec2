"""What is left of a run: the processes of its session, and those that left it but kept its mark.

Read from ``/proc``, where a session's members and, for processes of our own user, their environment stand. A
zombie is not left: it does nothing any more, and whoever inherited it will collect it. Where the client has a
user of its own, whatever runs as that user is of the run.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable

RUN_VARIABLE = "SEAT_RUN"
"""The variable that marks every process of a run, unless it empties its environment."""

_PROC = Path("/proc")


def alive(session: int, mark: str) -> tuple[int, ...]:
    """The processes of ``session``, or with ``mark`` in their environment, that still run."""
    marked = f"{RUN_VARIABLE}={mark}".encode()
    running = (entry for entry in os.listdir(_PROC) if entry.isdigit())  # noqa: PTH208 - names, not paths
    return tuple(int(entry) for entry in running if _belongs(_PROC / entry, session, marked))


def alive_of(uid: int) -> tuple[int, ...]:
    """The processes that run as the user ``uid``, in whatever session."""
    running = (entry for entry in os.listdir(_PROC) if entry.isdigit())  # noqa: PTH208 - names, not paths
    return tuple(int(entry) for entry in running if _runs_as(_PROC / entry, uid))


def send_signal(processes: Iterable[int], number: signal.Signals) -> None:
    """Send ``number`` to each; who is gone, or is not ours to signal, stays as it is."""
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def _belongs(process: Path, session: int, marked: bytes) -> bool:
    try:
        # "pid (name) state parent group session ...": the name may hold spaces and parentheses.
        state, _parent, _group, its_session, *_ = (process / "stat").read_bytes().rpartition(b")")[2].split()
        if state in b"ZX":
            return False
        return int(its_session) == session or marked in (process / "environ").read_bytes().split(b"\0")
    except OSError:  # gone meanwhile, or another user's
        return False


def _runs_as(process: Path, uid: int) -> bool:
    # The owner of the folder would be quicker, and is root for a process that hides its memory.
    try:
        lines = (process / "status").read_bytes().splitlines()
    except OSError:  # gone meanwhile
        return False
    said = dict(line.split(b":", 1) for line in lines if line.startswith((b"State:", b"Uid:")))
    return said[b"State"].split()[0] not in b"ZX" and str(uid).encode() in said[b"Uid"].split()
