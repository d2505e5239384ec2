"""What a client leaves running, and what its processes were given: whatever a bench starts bears its mark."""

from __future__ import annotations

import os
import secrets
import signal
import time
from contextlib import suppress
from pathlib import Path

VARIABLE = "CONFORMANCE_RUN"
"""The variable that marks every process of a room, passed on to the client."""


class Traces:
    """The processes that bear one mark; ``env`` is what they are to be started with."""

    def __init__(self) -> None:
        self._mark = f"{VARIABLE}={secrets.token_hex(16)}"
        self.env = dict([self._mark.split("=", 1)])

    def running(self) -> tuple[str, ...]:
        """What still runs, each as its number and its command line."""
        return tuple(f"{number} {_command(number)}" for number, _ in self._marked())

    def environments(self) -> tuple[bytes, ...]:
        """The whole environment of everything that runs."""
        return tuple(environment for _, environment in self._marked())

    def kill(self) -> None:
        """Kill everything that runs, as somebody else may."""
        for number, _ in self._marked():
            with suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGKILL)

    def none_within(self, seconds: float) -> bool:
        """Whether all are gone after at most ``seconds``; blocking."""
        until = time.monotonic() + seconds
        while self._marked():
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        return True

    def _marked(self) -> list[tuple[str, bytes]]:
        found = ((process.name, _environment(process)) for process in Path("/proc").glob("[0-9]*"))
        return [(number, env) for number, env in found if self._mark.encode() in env.split(b"\0")]


def _environment(process: Path) -> bytes:
    """What the process was started with; nothing of one that is over, or another user's."""
    try:
        state = (process / "stat").read_bytes().rpartition(b")")[2].split()[0]
        return b"" if state in b"ZX" else (process / "environ").read_bytes()
    except OSError:
        return b""


def _command(number: str) -> str:
    try:
        return Path("/proc", number, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "(gone)"
