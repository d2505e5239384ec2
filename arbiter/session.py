"""One connection's way out, and what the Arbiter holds of one registered seat."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from consilium.errors import ChannelBroken

if TYPE_CHECKING:
    from arbiter.admission import Rights
    from consilium.channel import Channel
    from consilium.conversation import Heartbeat
    from consilium.messages import Message

MAX_QUEUED = 256
"""Messages that may wait for one reader. A full queue is a slow reader, and that one has failed (§7.3)."""

WRITE_TIMEOUT = 10.0
"""Seconds that one write may take before the reader counts as gone."""


class Outbox:
    """What waits to be sent on one connection: a bounded queue with one writer. Nobody waits to put."""

    def __init__(self, channel: Channel[Any]) -> None:
        self._channel = channel
        self._queue: deque[tuple[Message, str | None]] = deque()
        self._wake = anyio.Event()
        self._finished = False

    def put(self, message: Message, in_reply_to: str | None = None) -> bool:
        """Queue a message; False when the queue is full. After `finish` it is dropped: nobody listens."""
        if self._finished:
            return True
        if len(self._queue) >= MAX_QUEUED:
            return False
        self._queue.append((message, in_reply_to))
        self._wake.set()
        return True

    def finish(self) -> None:
        """Let `drain` return once everything that is queued has been sent."""
        self._finished = True
        self._wake.set()

    async def drain(self) -> None:
        """Send what is queued, as it comes, until `finish`. Raises `ChannelError`."""
        while True:
            while self._queue:
                batch = list(self._queue)
                self._queue.clear()
                with anyio.move_on_after(WRITE_TIMEOUT) as limit:
                    await self._channel.send_many(batch)
                if limit.cancelled_caught:
                    raise ChannelBroken(f"the peer did not read for {WRITE_TIMEOUT:.0f} s")
            if self._finished:
                return
            self._wake = anyio.Event()
            await self._wake.wait()


@dataclass(slots=True)
class Session:
    """One registration: its rights, its two ways out, its pulse.

    ``reason`` is why it ended, once it has: the first reason stands.
    """

    session_id: str
    participant_id: str
    name: str
    rights: Rights
    control: Outbox
    heartbeat: Heartbeat
    data: Outbox | None = None
    reason: str | None = None

    def end(self, reason: str) -> None:
        """Close both connections, after what is queued for them."""
        if self.reason is None:
            self.reason = reason
        self.control.finish()
        if self.data is not None:
            self.data.finish()
