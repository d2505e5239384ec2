"""The driver: one inbox, one owner, effects performed in order.

1. Only this task changes the debate; sessions, timers and the admin channel post to its one bounded inbox.
   `status` is for whoever looks between two events.
2. It awaits nothing but the inbox and the transcript: a send is queued, and a full queue is that reader's
   failure, not everybody's delay.
3. Records of one step are on disk before a message of that step is queued. While the disk refuses them the
   debate stands still, its clock too; once they are written, it goes on and pauses (§7.3).
4. What is raised here and is no `TranscriptError` is a bug. After one, nothing that the debate says can be
   trusted: it ends as ERROR, on the record and for everybody who listens, and is not asked again.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from arbiter.connection import to_error
from arbiter.debate import effects, events, status
from arbiter.debate.states import TERMINAL
from arbiter.inbox import SIZE
from arbiter.observe import NOBODY
from consilium import messages
from consilium.errors import PeerError, TranscriptError
from consilium.messages import DebateState, Terminate, as_reason
from consilium.records import EventName, EventRecord, TurnRecord

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pydantic import JsonValue

    from arbiter.debate import Debate
    from arbiter.debate.effects import Effect
    from arbiter.debate.events import Event
    from arbiter.inbox import Inbox
    from arbiter.journal import Journal
    from arbiter.observe import Observer
    from arbiter.reception import Reception
    from consilium.records import AnyEntry

MOST_SET_ASIDE = 64
"""Events of one session that are kept while the disk refuses records: an honest seat has a few to tell."""

RETRY = 2.0
"""Seconds from one attempt to write what the disk has refused to the next."""

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
        inbox: Inbox,
        clock: Callable[[], float],
        *,
        first: Sequence[Effect] | None = None,
        observer: Observer = NOBODY,
    ) -> None:
        """``first`` is what takes up a debate that had begun; without, ``debate`` is a new one.

        ``inbox`` is closed when nobody reads it any more: whoever posts then need not wait.
        """
        self._debate = debate
        self._journal = journal
        self._reception = reception
        self._inbox = inbox
        self._clock = clock
        self._first = first
        self._observer = observer
        self._stood_still = 0.0
        self._still: tuple[float, str] | None = None  # since when it stands still now, and why
        self._refusal: str | None = None  # why it stood still, until the debate has heard of it
        self._set_aside: deque[Event] = deque()  # what came meanwhile
        self.busy_since: float | None = None
        """Since when it has been at work on one event, by its clock; None while it waits for one."""
        self._begun = False
        self._broken = False
        self._over = False
        self._moved = anyio.Event()  # set when the alarm has to look again
        self._set_for: float | None = None
        self._alarm_bug: Exception | None = None

    async def run(self) -> DebateState:
        """Hold the debate; return its outcome."""
        try:
            await self._guard(self._begin())
            self._begun = True
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._ring)
                while not (self._broken or self._debate.state in TERMINAL):
                    await self._guard(self._step(await self._receive()))
                tasks.cancel_scope.cancel()
        except BaseException:
            self._inbox.close()
            raise
        self._over = True
        return DebateState.ERROR if self._broken else self._debate.state

    async def linger(self) -> None:
        """Go on answering after the end: a STATUS is still asked for, and a late SPEECH is refused."""
        with self._inbox:
            while True:
                event = await self._receive()
                if not self._broken:
                    await self._guard(self._step(event))

    def status(self) -> messages.Status:
        """Where the debate stands, for whoever looks between two events: it reads, and awaits nothing."""
        if self._broken:
            stand = {"debate_state": DebateState.ERROR, "reason": BUG}
        elif self._still is not None:
            stand = {"debate_state": DebateState.PAUSED, "reason": as_reason(self._still[1])}
        else:
            stand = {}
        now = self._clock() if self._still is None else self._still[0]
        return status.report(self._debate, now - self._stood_still).model_copy(update=stand)

    async def _begin(self) -> None:
        await self._carry_out(self._debate.open() if self._first is None else self._first)

    def _now(self) -> float:
        """The debate's own time, which stands still with it."""
        return self._clock() - self._stood_still

    async def _receive(self) -> Event:
        self.busy_since = None
        event = self._set_aside.popleft() if self._set_aside else await self._inbox.receive()
        self.busy_since = self._clock()
        return event

    async def _ring(self) -> None:
        """Ring when it is due. A bug here is the owner's to deal with (rule 4), as soon as that can be."""
        try:
            await self._ring_when_due()
        except Exception as bug:  # noqa: BLE001 - raised again by the owner, in `_step`
            self._alarm_bug = bug
            await self._inbox.post(events.AlarmRang())

    async def _ring_when_due(self) -> None:
        """Post the alarm when it is due. That a deadline has moved away is found out on waking."""
        while True:
            self._set_for = due = self._debate.next_deadline()
            self._moved = anyio.Event()
            with anyio.move_on_after(math.inf if due is None else max(due - self._now(), 0)):
                await self._moved.wait()
                continue
            due = self._debate.next_deadline()
            if due is not None and due <= self._now():
                await self._inbox.post(events.AlarmRang())
                await self._moved.wait()  # until it was heard: a debate that stands still hears it later

    def _look_again(self, event: Event) -> None:
        due = self._debate.next_deadline()
        sooner = due is not None and (self._set_for is None or due < self._set_for)
        if sooner or isinstance(event, events.AlarmRang):
            self._moved.set()

    async def _step(self, event: Event) -> None:
        if self._alarm_bug is not None:
            raise self._alarm_bug
        todo = self._debate.handle(event, self._now())
        self._look_again(event)
        await self._carry_out(todo)
        if isinstance(event, events.SeatRegistered) and any(isinstance(e, effects.Refuse) for e in todo):
            self._reception.end(event.session, "refused")

    async def _carry_out(self, todo: Sequence[Effect]) -> None:
        try:
            await self._perform(todo)
            while self._refusal is not None:
                delayed, self._refusal = events.RecordDelayed(self._refusal), None
                todo = self._debate.handle(delayed, self._now())
                self._look_again(delayed)
                await self._perform(todo)
        except TranscriptError as failure:
            await self._perform(self._debate.handle(events.RecordFailed(str(failure)), self._now()))

    async def _perform(self, todo: Sequence[Effect]) -> None:
        entries = [effect.entry for effect in todo if isinstance(effect, effects.Append)]
        if entries:
            await self._record(entries)
        for entry in entries:
            if isinstance(entry, TurnRecord):
                self._observer.turn_ended(entry)
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

    # --- a disk that refuses --------------------------------------------------------------------------

    async def _record(self, entries: Sequence[AnyEntry]) -> None:
        """Have ``entries`` on disk. Raises `TranscriptError` when they never will be."""
        try:
            await self._journal.append_durably(entries)
        except TranscriptError as failure:
            if self._journal.failure is None or not self._begun:
                raise
            await self._stand_still(str(failure))

    async def _stand_still(self, reason: str) -> None:
        """Wait until the disk has taken what it refused. Raises `TranscriptError` if an operator ends it."""
        since = self._clock()
        self._still = since, reason
        log.error("the debate stands still, and goes on by itself once there is space: %s", reason)
        if self._debate.state in (DebateState.RUNNING, DebateState.RESUMING):
            self._reception.broadcast(messages.DebatePaused(reason=as_reason(reason)))
        try:
            while self._journal.failure is not None:
                with anyio.move_on_after(RETRY):
                    await self._put_off(reason)
                with suppress(TranscriptError):
                    await self._journal.retry()
        finally:
            self._stood_still += self._clock() - since
            self._still = None
        self._refusal = reason
        log.warning("the transcript is written again, and nothing is missing; the debate is paused")

    async def _put_off(self, reason: str) -> None:
        """Set aside what comes; tell an operator who asks what is the matter, and let one end the debate."""
        while True:
            event = await self._inbox.receive()
            match event:
                case events.StatusAsked(session, msg_id, effects.Channel.ADMIN):
                    self._reception.deliver(session, effects.Channel.ADMIN, self.status(), msg_id)
                case events.Operated(command=Terminate()):
                    self._set_aside.append(event)
                    raise TranscriptError(reason)
                case (
                    events.AlarmRang()
                    | events.RecordFailed()
                    | events.RecordDelayed()
                    | events.Reloaded()
                    | events.SessionLost()
                ):
                    self._set_aside.append(event)
                case _ if self._has_room_for(event.session):
                    self._set_aside.append(event)
                case _:  # who goes on unanswered may not keep an operator from being heard
                    self._reception.end(event.session, "too many messages while the debate stood still")

    def _has_room_for(self, session: str) -> bool:
        """Whether one more event of ``session`` may be set aside."""
        its = sum(getattr(event, "session", None) == session for event in self._set_aside)
        return its < MOST_SET_ASIDE and len(self._set_aside) < SIZE

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
