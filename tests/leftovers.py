"""Whether a test left processes behind: everything that it starts carries a token in its environment."""

from __future__ import annotations

import os
import secrets
import sys
import time
from pathlib import Path

VARIABLE = "TEST_TOKEN"


class Leftovers:
    """The processes of one test. ``env`` is what they are to be started with."""

    def __init__(self) -> None:
        self.token = secrets.token_hex(16)
        folder = str(Path(sys.executable).parent)
        self.env = {"PATH": f"{folder}:/usr/bin:/bin", "LANG": "C.UTF-8", VARIABLE: self.token}

    def now(self) -> list[str]:
        """What still runs, and our own children that nobody collected."""
        told = ((process.name, self._of(process)) for process in Path("/proc").glob("[0-9]*"))
        return [f"{number} {what}" for number, what in told if what]

    def none_within(self, seconds: float) -> bool:
        """Whether all are gone after at most ``seconds``."""
        until = time.monotonic() + seconds
        while self.now():
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        return True

    def _of(self, process: Path) -> str:
        try:
            state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
            if state in "ZX":
                return "uncollected" if int(parent) == os.getpid() else ""
            if f"{VARIABLE}={self.token}".encode() not in (process / "environ").read_bytes().split(b"\0"):
                return ""
            return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
