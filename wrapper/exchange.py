"""What passes between us and a running client: its input written, its output read, its time measured.

One blocking loop over the three pipes, the client's end and the caller's wish to stop. Input is written while
output is read, so a large prompt and a talkative client cannot wait for each other; and the client's end is
its own event, since a descendant may hold the pipes open for ever.
"""

from __future__ import annotations

import os
import selectors
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from consilium.messages import Fault

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

MAX_OUTPUT_BYTES = 16 * 1024 * 1024
"""Largest output of a client: an answer with everything that a client says about it, the prompt included."""

STDERR_EDGE_BYTES = 8 * 1024
"""What is kept of a client's standard error, at its beginning and at its end."""

DRAIN_SECONDS = 0.5
"""How long output is still read after the client's end."""

_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long a run may take and how much it may say (seconds, bytes).

    ``first_byte`` and ``stall`` count standard output only; None for a client that prints when it is done.
    """

    overall: float
    first_byte: float | None = None
    stall: float | None = None
    output_bytes: int = MAX_OUTPUT_BYTES


class Edges:
    """The beginning and the end of a stream, and how much is missing between them."""

    def __init__(self, size: int) -> None:
        """Keep ``size`` bytes at either end."""
        self._size = size
        self._head = b""
        self._tail = b""
        self._seen = 0

    def add(self, data: bytes) -> None:
        """Take the next piece of the stream."""
        self._seen += len(data)
        room = self._size - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:])[-self._size :]

    def value(self) -> bytes:
        """What was kept."""
        missing = self._seen - len(self._head) - len(self._tail)
        cut = b"\n[%d bytes left out]\n" % missing if missing else b""
        return self._head + cut + self._tail


class Exchange:
    """One client's pipes. Kills nothing; whoever does closes them after: a client may have last words."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes, bounds: Bounds, alarm: int) -> None:
        """``alarm`` is a descriptor that becomes readable when the exchange shall stop."""
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self.stdout = bytearray()
        self.stderr = Edges(STDERR_EDGE_BYTES)
        self.stopped: Fault | None = None
        self.first_byte: float | None = None
        """Seconds from the start to the first standard output, once there is some."""
        self._pipes = (process.stdin, process.stdout, process.stderr)
        self._pid = process.pid
        self._to_write = memoryview(stdin)
        self._bounds = bounds
        self._alarm = alarm
        self._over = False
        self._exited_at: float | None = None
        self._began = self._last_output = time.monotonic()
        self._watched = selectors.DefaultSelector()

    def run(self) -> None:
        """Return when the client is gone and its output is read, or as soon as it shall be stopped.

        ``stopped`` then says which bound it broke, if it broke one.
        """
        pidfd = os.pidfd_open(self._pid)
        try:
            self._watch(pidfd)
            while not self._over:
                fault, at = self._deadline()
                left = at - time.monotonic()
                if left <= 0:
                    self.stopped = fault
                    return
                self._step(left)
        finally:
            os.close(pidfd)

    def close(self) -> None:
        """Close our ends of the pipes, and what they were watched with."""
        self._watched.close()
        for pipe in self._pipes:
            with suppress(OSError):
                pipe.close()

    def _watch(self, pidfd: int) -> None:
        stdin, stdout, stderr = self._pipes
        for pipe in self._pipes:
            os.set_blocking(pipe.fileno(), False)
        watch = self._watched.register
        watch(self._alarm, selectors.EVENT_READ, self._stop)
        watch(pidfd, selectors.EVENT_READ, lambda: self._note_exit(pidfd))
        watch(stdin, selectors.EVENT_WRITE, self._write)
        watch(stdout, selectors.EVENT_READ, lambda: self._read(stdout, self._hear))
        watch(stderr, selectors.EVENT_READ, lambda: self._read(stderr, self.stderr.add))

    def _step(self, seconds: float) -> None:
        """Wait for the next thing to happen, at most ``seconds``, and see to it."""
        for key, _ in self._watched.select(seconds):
            if key.fd in self._watched.get_map():  # what came before it may have ended it
                key.data()
        if self._exited_at is not None and len(self._watched.get_map()) == 1:
            self._stop()  # only the alarm is left to wait for

    def _deadline(self) -> tuple[Fault | None, float]:
        """What happens next if the client does nothing, and when."""
        if self._exited_at is not None:
            return None, self._exited_at + DRAIN_SECONDS
        bounds = self._bounds
        deadlines = [(self._began + bounds.overall, Fault.DEADLINE)]
        if not self.stdout and bounds.first_byte is not None:
            deadlines.append((self._began + bounds.first_byte, Fault.FIRST_BYTE_TIMEOUT))
        if self.stdout and bounds.stall is not None:
            deadlines.append((self._last_output + bounds.stall, Fault.STALLED))
        at, fault = min(deadlines)
        return fault, at

    def _stop(self) -> None:
        self._over = True

    def _note_exit(self, pidfd: int) -> None:
        self._exited_at = time.monotonic()
        self._watched.unregister(pidfd)
        self._close_stdin()

    def _write(self) -> None:
        try:
            written = os.write(self._pipes[0].fileno(), self._to_write[:_CHUNK]) if self._to_write else 0
        except BlockingIOError:
            return
        except BrokenPipeError:
            # The client does not want the rest. Its exit code and its answer say whether that is well.
            written = len(self._to_write)
        self._to_write = self._to_write[written:]
        if not self._to_write:
            self._close_stdin()

    def _close_stdin(self) -> None:
        stdin = self._pipes[0]
        if not stdin.closed:
            self._watched.unregister(stdin)
            stdin.close()

    def _read(self, pipe: IO[bytes], keep: Callable[[bytes], None]) -> None:
        try:
            data = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return
        if data:
            keep(data)
        else:
            self._watched.unregister(pipe)

    def _hear(self, data: bytes) -> None:
        self._last_output = time.monotonic()
        if self.first_byte is None:
            self.first_byte = self._last_output - self._began
        self.stdout += data
        if len(self.stdout) > self._bounds.output_bytes:
            self.stopped = Fault.ANSWER_TOO_LARGE
            self._stop()
