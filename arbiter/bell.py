"""A thread rings, tasks wake: how the journal's writer tells the event loop that records are on disk.

The bell is an eventfd. Ringing is one system call that never blocks, so that a busy loop does not hold up the
writer (`anyio.from_thread.run_sync` would wait for its turn there), and it needs no loop to exist: a thread
may ring while the loop starts, is busy, or is gone. Of the tasks that wait, one listens to the descriptor for
all; when it is cancelled, another takes over.
"""

from __future__ import annotations

import os

import anyio


class Bell:
    """Any thread rings; the tasks of one event loop wait."""

    def __init__(self) -> None:
        self._descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._waiting: anyio.Event | None = None
        self._closed = False

    def ring(self) -> None:
        """Wake every task that waits, or the next one to wait. From any thread; never after `close`."""
        os.eventfd_write(self._descriptor, 1)

    async def wait(self) -> None:
        """Return after the bell has rung, perhaps without need: whoever waits looks whether it may go on.

        Look first and wait second, without a checkpoint between the two, and no ring is missed. Returns at
        once when the bell is closed.
        """
        if self._closed:
            return
        if self._waiting is not None:
            await self._waiting.wait()
            return
        self._waiting = anyio.Event()
        try:
            await anyio.wait_readable(self._descriptor)
            if not self._closed:  # between the ring and this line, `close` may have run
                os.eventfd_read(self._descriptor)
        except anyio.ClosedResourceError:
            pass  # `close` woke us
        finally:
            woken, self._waiting = self._waiting, None
            woken.set()

    def close(self) -> None:
        """Wake every task for the last time. From the loop's own thread."""
        if not self._closed:
            self._closed = True
            anyio.notify_closing(self._descriptor)
            os.close(self._descriptor)
