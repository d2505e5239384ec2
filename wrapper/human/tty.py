"""A terminal, while a line editor has it: its modes, its size, and writing to it without ever waiting for it.

1. However the seat ends, the terminal is as it was: by `Tty.restore` in good order, at the interpreter's
   exit, and before a signal that would end us at once.
2. A terminal that takes no more (a stalled connection, a held scroll bar) holds nothing up: what it does not
   take at once is kept, up to a bound, and written when it does.
"""

from __future__ import annotations

import atexit
import os
import select
import shutil
import termios
import time
from contextlib import suppress
from typing import Any

import anyio

BACKLOG_BYTES = 1024 * 1024
"""What is kept for a terminal that takes nothing. Beyond, the oldest is dropped: nobody reads that much."""

FLUSH_SECONDS = 1.0
"""How long the last lines may take at the end."""

_PASTES_ARE_MARKED, _AS_BEFORE = b"\x1b[?2004h", b"\x1b[?2004l"


class Tty:
    """The terminal behind ``source``, which is read, and ``target``, which is written to."""

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target = target
        self._before: list[Any] | None = None
        self._ours: list[Any] | None = None
        self._backlog = bytearray()
        self._fresh = anyio.Event()
        self._own = -1

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        with suppress(OSError):
            found = os.get_terminal_size(self._target)
            if found.columns > 0 and found.lines > 0:
                return found.columns, found.lines
        fallback = shutil.get_terminal_size()
        return fallback.columns, fallback.lines

    def seize(self) -> None:
        """Have every key as it is pressed, and pastes marked. Raises `termios.error`."""
        before = termios.tcgetattr(self._source)
        ours = list(before)
        # Ctrl+S and Ctrl+Q would stop and start the output, Ctrl+J would look like Enter.
        ours[0] &= ~(termios.IXON | termios.ICRNL | termios.INLCR | termios.IGNCR)
        ours[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
        keys = list(ours[6])
        keys[termios.VMIN], keys[termios.VTIME] = 1, 0
        # Ctrl+C still interrupts. Who is suspended is taken for dead; Ctrl+\ would leave a core.
        off = bytes([os.fpathconf(self._source, "PC_VDISABLE") & 0xFF])
        keys[termios.VSUSP] = keys[termios.VQUIT] = off
        ours[6] = keys
        self._before, self._ours = before, ours
        atexit.register(self.restore)
        with suppress(OSError):
            # A description of our own: whoever shares the other one is not made to write without waiting.
            self._own = os.open(
                f"/proc/self/fd/{self._target}",
                os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC,
            )
        self.claim()

    def claim(self) -> None:
        """Set our modes (again: whoever stopped us may have set others)."""
        if self._ours is not None:
            with suppress(termios.error):
                termios.tcsetattr(self._source, termios.TCSANOW, self._ours)
            self.write(_PASTES_ARE_MARKED)

    def restore(self) -> None:
        """Give the terminal back. Keys that nobody has read are dropped: a shell would run them."""
        if self._before is None:
            return
        self.write(_AS_BEFORE)
        self._flush()
        with suppress(termios.error):
            termios.tcsetattr(self._source, termios.TCSAFLUSH, self._before)
        self._before = self._ours = None
        if self._own >= 0:
            os.close(self._own)
            self._own = -1
        atexit.unregister(self.restore)

    def write(self, data: bytes) -> None:
        """Write ``data``, now or when the terminal takes it."""
        self._backlog += data
        if len(self._backlog) > BACKLOG_BYTES:
            del self._backlog[: len(self._backlog) - BACKLOG_BYTES]
        self._push()
        if self._backlog:
            self._fresh.set()

    async def pump(self) -> None:
        """Write what the terminal did not take at once, until cancelled."""
        while True:
            await self._fresh.wait()
            self._fresh = anyio.Event()
            while self._backlog and self._own >= 0:
                await anyio.wait_writable(self._own)
                self._push()

    def _push(self) -> None:
        where = self._own if self._own >= 0 else self._target
        try:
            while self._backlog:
                del self._backlog[: os.write(where, self._backlog[:4096])]
        except BlockingIOError:
            pass
        except OSError:  # it is gone
            self._backlog.clear()

    def _flush(self) -> None:
        end = time.monotonic() + FLUSH_SECONDS
        while self._backlog and (left := end - time.monotonic()) > 0 and self._own >= 0:
            select.select([], [self._own], [], left)
            self._push()
