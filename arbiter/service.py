"""The driver: one inbox, one owner, effects performed in order.

1. Only this task touches the debate; sessions, timers and the admin channel post to its one bounded inbox.
2. It awaits nothing but the inbox and the transcript: a send is queued, and a full queue is that reader's
   failure, not everybody's delay.
3. Records of one step are on disk before a message of that step is queued.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from arbiter.debate import effects, events
from arbiter.debate.states import TERMINAL
from consilium import messages
from consilium.errors import TranscriptError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anyio.streams.memory import MemoryObjectReceiveStream

    from arbiter.debate import Debate
    from arbiter.debate.effects import Effect
    from arbiter.debate.events import Event
    from arbiter.journal import Journal
    from arbiter.reception import Reception

INBOX = 1024
"""Events that may wait for the owner; whoever posts more waits with them."""


class Service:
    """Owns one debate and drives it to its end."""

    def __init__(
        self,
        debate: Debate,
        journal: Journal,
        reception: Reception,
        inbox: MemoryObjectReceiveStream[Event],
        clock: Callable[[], float],
    ) -> None:
        self._debate = debate
        self._journal = journal
        self._reception = reception
        self._inbox = inbox
        self._clock = clock

    async def run(self) -> messages.DebateState:
        """Hold the debate; return its outcome. Raises `TranscriptError` if it cannot even begin."""
        await self._perform(self._debate.open())
        while self._debate.state not in TERMINAL:
            await self._step(await self._next())
        return self._debate.state

    async def linger(self) -> None:
        """Go on answering after the end: a STATUS is still asked for, and a late SPEECH is refused."""
        while True:
            await self._step(await self._inbox.receive())

    async def _next(self) -> Event:
        due = self._debate.next_deadline()
        if due is None:
            return await self._inbox.receive()
        with anyio.move_on_after(max(due - self._clock(), 0)):
            return await self._inbox.receive()
        return events.AlarmRang()

    async def _step(self, event: Event) -> None:
        todo = self._debate.handle(event, self._clock())
        try:
            await self._perform(todo)
        except TranscriptError as failure:
            await self._perform(self._debate.handle(events.RecordFailed(str(failure)), self._clock()))
        if isinstance(event, events.SeatRegistered) and any(isinstance(e, effects.Refuse) for e in todo):
            self._reception.end(event.session, "refused")

    async def _perform(self, todo: Sequence[Effect]) -> None:
        entries = [effect.entry for effect in todo if isinstance(effect, effects.Append)]
        if entries:
            await self._journal.append_durably(entries)
        for effect in todo:
            match effect:
                case effects.Append():
                    pass  # On disk already, all of them.
                case effects.Send(session, channel, message, in_reply_to):
                    self._reception.deliver(session, channel, message, in_reply_to)
                case effects.Refuse(session, channel, code, text, in_reply_to):
                    error = messages.Error(code=code, message=text)
                    self._reception.deliver(session, channel, error, in_reply_to)
                case effects.EndSession(session, reason):
                    self._reception.end(session, reason)
