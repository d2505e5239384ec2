"""What a killed process of ours leaves behind comes to us, and ends with us (Linux).

A wrapper that is killed cannot end its client, which may have a session of its own. As the nearest reaper we
inherit it, and at the end no child of ours is anybody's but ours.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
PROC = Path("/proc")

REAP_SECONDS = 2.0
"""How long killed orphans may take to disappear."""


def adopt() -> None:
    """Make this process inherit the orphans among its descendants. Where that is not known, do nothing."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_all() -> None:
    """Kill and reap every child of this process, and what is inherited from them in turn. Bounded."""
    end = time.monotonic() + REAP_SECONDS
    while children := _children():
        for pid in children:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if time.monotonic() > end:
            return
        time.sleep(0.01)


def _children() -> list[int]:
    return [pid for pid, parent in _parents() if parent == os.getpid()]


def _parents() -> list[tuple[int, int]]:
    """Every process with its parent, as far as /proc tells."""
    pairs = []
    with suppress(OSError):
        for entry in PROC.iterdir():
            if entry.name.isdigit():
                # The name in parentheses may hold anything; what follows it is state and parent.
                with suppress(OSError):
                    status = (entry / "stat").read_text(encoding="ascii", errors="replace")
                    pairs.append((int(entry.name), int(status.rpartition(")")[2].split()[1])))
    return pairs
