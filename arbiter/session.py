"""One connection's way out, and what the Arbiter holds of whoever is here."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from arbiter.observe import NOBODY
from consilium.errors import ChannelBroken, ErrorCode
from consilium.messages import Error

if TYPE_CHECKING:
    from arbiter.admission import Rights
    from arbiter.debate.effects import Channel as Kind
    from arbiter.observe import Observer
    from consilium.channel import Channel
    from consilium.conversation import Heartbeat
    from consilium.messages import Message

MAX_QUEUED = 256
"""Messages that may wait for one reader. A full queue is a slow reader, and that one has failed (§7.3)."""

PARTING = 1.0
"""Seconds in which a connection that ends may still take what is queued for it."""

CUT = 0.3
"""The same for one whose certificate has been revoked, and once more to close: it is out within a second."""


class Outbox:
    """What waits to be sent on one connection: a bounded queue with one writer. Nobody waits to put."""

    def __init__(self, channel: Channel[Any], patience: float, observer: Observer = NOBODY) -> None:
        """``patience`` is how many seconds one write may take."""
        self._observer = observer
        self._channel = channel
        self._patience = patience
        self._queue: deque[tuple[Message, str | None]] = deque()
        self._filled = anyio.Semaphore(0, fast_acquire=True)
        self._watch = anyio.CancelScope()
        self._began: float | None = None
        self._finished = False
        self._parting = PARTING
        self._until = math.inf

    def put(self, message: Message, in_reply_to: str | None = None) -> bool:
        """Queue a message; False when the queue is full. After `finish` it is dropped: nobody listens."""
        if self._finished:
            return True
        if len(self._queue) >= MAX_QUEUED:
            return False
        if isinstance(message, Error):
            self._observer.refused(ErrorCode(message.code))
        self._queue.append((message, in_reply_to))
        self._filled.release()
        return True

    def finish(self, parting: float | None = None) -> None:
        """Let `drain` return once all that is queued is sent, or ``parting`` seconds (`PARTING`) are over."""
        if self._finished:
            return
        self._finished = True
        self._parting = PARTING if parting is None else parting
        self._until = anyio.current_time() + self._parting
        self._watch.deadline = min(self._watch.deadline, self._until)
        self._filled.release()

    async def drain(self) -> None:
        """Send what is queued, as it comes, until `finish`. Raises `ChannelError`."""
        while True:
            with anyio.CancelScope(deadline=self._until) as self._watch:
                await self._send_all()
                return
            if self._began is not None or self._finished:
                patience = min(self._patience, self._parting) if self._finished else self._patience
                raise ChannelBroken(f"the peer did not read for {patience:.2g} s")

    async def _send_all(self) -> None:
        while self._queue or not self._finished:
            if not self._queue:
                await self._filled.acquire()
            elif self._watch.cancel_called:  # just now, with nothing under way
                await anyio.lowlevel.checkpoint()
            else:
                await self._write()

    async def _write(self) -> None:
        """Send everything that waits in one write."""
        self._began = self._be_watched()
        batch = list(self._queue)
        self._queue.clear()
        await self._channel.send_many(batch)
        self._began = None

    def _be_watched(self) -> float:
        """Have a write that begins now cut off after nine tenths to all of the patience; return the time.

        A timer for each write would cost more than the write's encryption. This one is set anew only when it
        has come too near, and comes to nothing when it meets no write.
        """
        now = anyio.current_time()
        if not now + 0.9 * self._patience <= self._watch.deadline <= now + self._patience:
            self._watch.deadline = min(now + self._patience, self._until)
        return now


@dataclass(slots=True, kw_only=True)
class Session:
    """Somebody who is here: the rights, the ways out by channel, the pulse.

    ``reason`` is why it ended, once it has: the first reason stands. ``over`` is set once its conversation is
    at its end. ``pinged`` is the PING that is not answered yet: its ``ts``, and when it was queued.
    """

    session_id: str
    rights: Rights
    heartbeat: Heartbeat
    outboxes: dict[Kind, Outbox]
    watches: bool = False
    pinged: tuple[int, float] | None = None
    reason: str | None = None
    over: anyio.Event = field(default_factory=anyio.Event)

    def end(self, reason: str, parting: float | None = None) -> None:
        """Close every connection, after what is queued for it has had ``parting`` seconds to leave."""
        if self.reason is None:
            self.reason = reason
        for outbox in self.outboxes.values():
            outbox.finish(parting)


@dataclass(slots=True, kw_only=True)
class Registration(Session):
    """A seat's session, from REG on. Without a data connection by ``bind_by`` it can never have one.

    ``data_over`` is set once nothing more can come on that.
    """

    participant_id: str
    name: str
    bind_by: float
    data_over: anyio.Event = field(default_factory=anyio.Event)
