"""The driver: one inbox, one owner, effects performed in order.

1. Only this task touches the debate; sessions, timers and the admin channel post to its one bounded inbox.
2. It awaits nothing but the inbox and the transcript: a send is queued, and a full queue is that reader's
   failure, not everybody's delay.
3. Records of one step are on disk before a message of that step is queued.
4. What is raised here and is no `TranscriptError` is a bug. After one, nothing that the debate says can be
   trusted: it ends as ERROR, on the record and for everybody who listens, and is not asked again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio

from arbiter.connection import to_error
from arbiter.debate import effects, events
from arbiter.debate.states import TERMINAL
from consilium import messages
from consilium.errors import PeerError, TranscriptError
from consilium.messages import DebateState
from consilium.records import EventName, EventRecord

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from anyio.streams.memory import MemoryObjectReceiveStream
    from pydantic import JsonValue

    from arbiter.debate import Debate
    from arbiter.debate.effects import Effect
    from arbiter.debate.events import Event
    from arbiter.journal import Journal
    from arbiter.reception import Reception

INBOX = 1024
"""Events that may wait for the owner; whoever posts more waits with them."""

BUG = "internal_error"
"""The reason on the record of a debate that a bug has ended."""

log = logging.getLogger("arbiter")


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
        """``inbox`` is closed when nobody reads it any more: whoever posts then need not wait."""
        self._debate = debate
        self._journal = journal
        self._reception = reception
        self._inbox = inbox
        self._clock = clock
        self._broken = False
        self._over = False

    async def run(self) -> DebateState:
        """Hold the debate; return its outcome."""
        try:
            await self._guard(self._begin())
            while not (self._broken or self._debate.state in TERMINAL):
                await self._guard(self._step(await self._next()))
        except BaseException:
            self._inbox.close()
            raise
        self._over = True
        return DebateState.ERROR if self._broken else self._debate.state

    async def linger(self) -> None:
        """Go on answering after the end: a STATUS is still asked for, and a late SPEECH is refused."""
        with self._inbox:
            while True:
                event = await self._inbox.receive()
                if not self._broken:
                    await self._guard(self._step(event))

    async def _begin(self) -> None:
        await self._carry_out(self._debate.open())

    async def _next(self) -> Event:
        due = self._debate.next_deadline()
        if due is None:
            return await self._inbox.receive()
        with anyio.move_on_after(max(due - self._clock(), 0)):
            return await self._inbox.receive()
        return events.AlarmRang()

    async def _step(self, event: Event) -> None:
        todo = self._debate.handle(event, self._clock())
        await self._carry_out(todo)
        if isinstance(event, events.SeatRegistered) and any(isinstance(e, effects.Refuse) for e in todo):
            self._reception.end(event.session, "refused")

    async def _carry_out(self, todo: Sequence[Effect]) -> None:
        try:
            await self._perform(todo)
        except TranscriptError as failure:
            await self._perform(self._debate.handle(events.RecordFailed(str(failure)), self._clock()))

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
                    self._reception.deliver(session, channel, to_error(PeerError(code, text)), in_reply_to)
                case effects.EndSession(session, reason):
                    self._reception.end(session, reason)

    # --- a bug ----------------------------------------------------------------------------------------

    async def _guard(self, step: Awaitable[None]) -> None:
        """Let ``step`` happen; end the debate if that shows a bug (rule 4). What has its outcome keeps it."""
        try:
            await step
        except Exception:
            log.exception("a bug in the Arbiter: the debate cannot go on; please report what follows")
            self._broken = True
            if not self._over:
                await self._end_as_error()

    async def _end_as_error(self) -> None:
        turns = self._debate.turn_counter
        data: dict[str, JsonValue] = {
            "outcome": DebateState.ERROR.value,
            "cap": None,
            "reason": BUG,
            "turn_counter": turns,
        }
        try:
            await self._journal.append_durably([EventRecord(event=EventName.DEBATE_ENDED, data=data)])
        except TranscriptError as failure:
            log.error("nor can the record say so: %s", failure)  # noqa: TRY400 - said in full
        self._reception.broadcast(messages.DebateEnded(outcome=DebateState.ERROR, turn_counter=turns))
