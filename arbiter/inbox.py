"""What waits for the owner of a debate: a bounded queue with many posters and one reader.

anyio's memory streams yield to the event loop at every send and every receive. An inbox that holds an event
gives it at once, and one that has room takes it at once: a turn passes here five times.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Self

import anyio

if TYPE_CHECKING:
    from arbiter.debate.events import Event

SIZE = 1024
"""Events that may wait for the owner; whoever posts more waits with them."""


class Inbox:
    """Events in the order in which they were posted. Leaving it as a context manager closes it."""

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._events: deque[Event] = deque()
        self._filled = anyio.Semaphore(0, fast_acquire=True)  # as many as there are events
        self._emptied = anyio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._events)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def post(self, event: Event) -> None:
        """Put an event behind the others, when there is room.

        Raises `anyio.BrokenResourceError` once nobody reads any more.
        """
        while len(self._events) >= self._size and not self._closed:
            if self._emptied.is_set():  # one event for all who wait: none may miss it
                self._emptied = anyio.Event()
            await self._emptied.wait()
        if self._closed:
            raise anyio.BrokenResourceError
        self._events.append(event)
        self._filled.release()

    async def receive(self) -> Event:
        """Take the oldest event, as soon as there is one."""
        await self._filled.acquire()
        self._emptied.set()
        return self._events.popleft()

    def close(self) -> None:
        """Turn away whoever waits to post, and whoever will."""
        self._closed = True
        self._emptied.set()
