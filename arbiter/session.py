"""One connection's way out, and what the Arbiter holds of whoever is here."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from consilium.errors import ChannelBroken

if TYPE_CHECKING:
    from arbiter.admission import Rights
    from arbiter.debate.effects import Channel as Kind
    from consilium.channel import Channel
    from consilium.conversation import Heartbeat
    from consilium.messages import Message

MAX_QUEUED = 256
"""Messages that may wait for one reader. A full queue is a slow reader, and that one has failed (§7.3)."""

WRITE_TIMEOUT = 10.0
"""Seconds that one write to a seat may take before it counts as gone."""

PARTING = 1.0
"""Seconds in which a connection that ends may still take what is queued for it."""


class Outbox:
    """What waits to be sent on one connection: a bounded queue with one writer. Nobody waits to put."""

    def __init__(self, channel: Channel[Any], patience: float) -> None:
        """``patience`` is how many seconds one write may take."""
        self._channel = channel
        self._patience = patience
        self._queue: deque[tuple[Message, str | None]] = deque()
        self._wake = anyio.Event()
        self._writing = anyio.CancelScope()
        self._finished = False
        self._until = math.inf

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
        """Let `drain` return once everything that is queued has been sent, or `PARTING` is over."""
        if self._finished:
            return
        self._finished = True
        self._until = anyio.current_time() + PARTING
        self._writing.deadline = min(self._writing.deadline, self._until)
        self._wake.set()

    async def drain(self) -> None:
        """Send what is queued, as it comes, until `finish`. Raises `ChannelError`."""
        while True:
            while self._queue:
                await self._write()
            if self._finished:
                return
            self._wake = anyio.Event()
            await self._wake.wait()

    async def _write(self) -> None:
        """Send everything that waits in one write."""
        batch = list(self._queue)
        self._queue.clear()
        began = anyio.current_time()
        with anyio.CancelScope(deadline=min(began + self._patience, self._until)) as self._writing:
            await self._channel.send_many(batch)
        if self._writing.cancelled_caught:
            raise ChannelBroken(f"the peer did not read for {self._writing.deadline - began:.2g} s")


@dataclass(slots=True, kw_only=True)
class Session:
    """Somebody who is here: the rights, the ways out by channel, the pulse.

    ``reason`` is why it ended, once it has: the first reason stands. ``over`` is set once its conversation is
    at its end.
    """

    session_id: str
    rights: Rights
    heartbeat: Heartbeat
    outboxes: dict[Kind, Outbox]
    watches: bool = False
    reason: str | None = None
    over: anyio.Event = field(default_factory=anyio.Event)

    def end(self, reason: str) -> None:
        """Close every connection, after what is queued for it."""
        if self.reason is None:
            self.reason = reason
        for outbox in self.outboxes.values():
            outbox.finish()


@dataclass(slots=True, kw_only=True)
class Registration(Session):
    """A seat's session, from REG on. Without a data connection by ``bind_by`` it can never have one."""

    participant_id: str
    name: str
    bind_by: float
