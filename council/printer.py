"""Writes what a view shows, without ever making the debate wait for whoever reads it.

A pager that is not scrolled, or a terminal that is held, blocks a write for as long as it likes. So the
writes are made in a thread, and only the end of the program waits for them.
"""

from __future__ import annotations

import os

import anyio
import anyio.to_thread


class Printer:
    """Text to a file descriptor, in order. `run` does the writing; `write` never waits."""

    def __init__(self, fd: int, encoding: str) -> None:
        self.fd = fd
        self._encoding = encoding
        self._waiting: list[str] = []
        self._filled = anyio.Event()
        self._broken = False
        self._drained = anyio.Event()
        self._drained.set()

    def write(self, text: str) -> None:
        """Take ``text``. A character that the encoding lacks becomes ``?``."""
        if self._broken:
            return
        self._waiting.append(text)
        self._filled.set()
        if self._drained.is_set():
            self._drained = anyio.Event()

    @property
    def behind(self) -> bool:
        """Whether something waits to be written."""
        return not self._drained.is_set()

    async def drain(self) -> None:
        """Wait until everything is written."""
        await self._drained.wait()

    async def run(self) -> OSError:
        """Write what comes, until it cannot be written any more: return why. The rest is then dropped."""
        while True:
            await self._filled.wait()
            self._filled = anyio.Event()
            data = "".join(self._waiting).encode(self._encoding, errors="replace")
            self._waiting.clear()
            try:
                await anyio.to_thread.run_sync(self._write_all, data, abandon_on_cancel=True)
            except OSError as error:
                self._broken = True
                self._drained.set()
                return error
            if not self._waiting:
                self._drained.set()

    def _write_all(self, data: bytes) -> None:
        # Not through sys.stdout: a thread that is stuck there would hold its lock at the interpreter's exit.
        while data:
            data = data[os.write(self.fd, data) :]
