"""The seat's driver (§3.3.A): one inbox, one owner. It performs what `wrapper.turn` says and decides nothing.

1. Only `Seat.run` touches the machine. The link, the client's tasks, signals and the lifeline post to the
   one inbox.
2. Effects are performed in their order, and none waits for the client: a turn is a task, and whatever
   becomes of it is one event.
3. One link at a time; what one that was dropped may still have said is not heard.
4. However a seat ends, it ends in bounded time, and nothing of its client outlives `run`.
"""

from __future__ import annotations

import logging
import secrets
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

import anyio

from consilium.errors import AdapterFault, UserError
from consilium.lifeline import until_orphaned
from consilium.messages import MAX_LABEL, MAX_REFUSED, REFUSED_CHARS, Fault, PromptSent
from wrapper import events
from wrapper.adapters.base import Turn
from wrapper.clean import clean_line, clean_text
from wrapper.events import (
    CancelTurn,
    End,
    News,
    Note,
    OpenControl,
    OpenData,
    RestartChat,
    RunTurn,
    SeatEvent,
    SendControl,
    SendData,
    Show,
    Tell,
    Weight,
)
from wrapper.link import Address, Link
from wrapper.prompts import is_pass
from wrapper.reconnection import Reconnection
from wrapper.turn import SeatMachine

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from anyio.abc import TaskGroup
    from anyio.streams.memory import MemoryObjectSendStream

    from consilium.messages import Context, Reg
    from wrapper.adapters.base import ParticipantAdapter
    from wrapper.events import Action, Facts

    Say = Callable[[Facts], None]

log = logging.getLogger("consilium.seat")

_Posted = tuple["_Slot", SeatEvent]

INBOX = 64
"""Events that may wait for the owner. Whoever posts to a full inbox waits, and so does the Arbiter."""

CLOSE_SECONDS = 8.0
"""How long the client may take to go when the seat ends, before the seat goes without it."""

FIRST_TURN = 1
"""The id of a debate's first turn: nobody has spoken before it."""

NOTE_CHARS = 1000

_LEVELS: Mapping[Weight, int] = {
    Weight.DEBUG: logging.DEBUG,
    Weight.INFO: logging.INFO,
    Weight.WARNING: logging.WARNING,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is known of a seat before it connects.

    ``patience`` is for how many seconds it tries to take its seat at first, ``give_up_after`` for how many it
    tries to come back after a loss; ``lifeline`` makes it leave when its standard input ends.
    ``debate_id`` is the debate that its chat belongs to, where that is known. Where the credentials behind
    ``context`` may be other ones by then, ``renew`` reads them again before each connection, or raises
    `UserError`.
    """

    reg: Reg
    system_prompt: str
    address: Address
    context: ssl.SSLContext
    patience: float
    give_up_after: float
    speech_bytes: int
    contribution_chars: int
    lifeline: bool
    debate_id: str | None = None
    renew: Callable[[], ssl.SSLContext] | None = None


class _Slot:
    """The inbox as one poster sees it: what it posts bears its name."""

    def __init__(self, post: MemoryObjectSendStream[_Posted]) -> None:
        self._post = post

    async def send(self, item: SeatEvent) -> None:
        await self._post.send((self, item))


class Seat:
    """One seat, from opening its client to its end."""

    def __init__(self, plan: Plan, adapter: ParticipantAdapter, say: Say) -> None:
        """``say`` is told what whoever started the seat may want to know of its life."""
        self._plan = plan
        self._adapter = adapter
        self._say = say
        reconnection = Reconnection(patience=plan.patience, give_up_after=plan.give_up_after)
        self._machine = SeatMachine(
            plan.reg,
            speech_bytes=plan.speech_bytes,
            reconnection=reconnection,
            debate_id=plan.debate_id,
        )
        self._post, self._inbox = anyio.create_memory_object_stream[_Posted](INBOX)
        self._ours = _Slot(self._post)
        self._context = plan.context
        self._link, self._line = self._new_link()
        self._turn = anyio.CancelScope()
        self._chance = secrets.SystemRandom()
        self.busy_since: float | None = None
        """Since when the owner has been at work on one event; None while it waits for one."""

    def _new_link(self) -> tuple[Link, _Slot]:
        line = _Slot(self._post)
        return Link(self._plan.address, self._context, line), line

    async def run(self) -> End:
        """Live the seat's whole life; return how it ended."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._leave_on_signal)
                if self._plan.lifeline:
                    tasks.start_soon(self._leave_when_orphaned)
                tasks.start_soon(self._open_chat)
                tasks.start_soon(self._adapter.attend, self._ours)
                end = await self._own(tasks)
                tasks.cancel_scope.cancel()
        finally:
            await self._close()
        self._tell(News.ENDED, {"outcome": end.outcome.value, "reason": end.reason})
        return end

    async def _own(self, tasks: TaskGroup) -> End:
        while True:
            self.busy_since = None
            slot, event = await self._inbox.receive()
            if slot not in (self._ours, self._line):
                continue
            self.busy_since = anyio.current_time()
            for effect in self._machine.handle(event, anyio.current_time()):
                if isinstance(effect, End):
                    return effect
                await self._perform(effect, tasks)

    async def _perform(self, effect: Action, tasks: TaskGroup) -> None:
        match effect:
            case SendControl(message):
                await self._link.send_control(message)
            case SendData(message):
                await self._link.send_data(message)
            case OpenControl():
                self._connect(effect, tasks)
            case OpenData(heartbeat):
                self._link.bind(heartbeat)
            case Tell(news, facts):
                self._tell(news, facts)
            case RunTurn() | CancelTurn() | RestartChat() | Show():
                self._instruct(effect, tasks)
            case Note(weight, text):
                log.log(_LEVELS[weight], "%s", clean_line(text, NOTE_CHARS))
            case _:
                assert_never(effect)

    def _instruct(self, effect: RunTurn | CancelTurn | RestartChat | Show, tasks: TaskGroup) -> None:
        """Have the adapter do its part."""
        match effect:
            case RunTurn(context, deadline):
                self._turn = anyio.CancelScope()
                tasks.start_soon(self._run_turn, context, deadline, self._turn)
            case CancelTurn():
                self._turn.cancel()
            case RestartChat():
                tasks.start_soon(self._restart_chat)
            case Show(status):
                self._adapter.show(status)

    def _connect(self, how: OpenControl, tasks: TaskGroup) -> None:
        wait = how.knock.wait(self._chance.random())
        self._link.drop()
        if self._plan.renew is not None:
            try:
                self._context = self._plan.renew()
            except UserError as error:  # They may be half written; those that we have may still do.
                log.warning("the credentials cannot be read again: %s", clean_line(error.message, NOTE_CHARS))
        self._link, self._line = self._new_link()
        tasks.start_soon(self._link.run, wait, how.knock.within)
        if how.why:
            next_try = round(wait * 1000)
            self._tell(News.WAITING, {"reason": how.why, "hint": how.hint, "next_try_ms": next_try})
            told = clean_line(f"{how.why}. {how.hint}" if how.hint else how.why, NOTE_CHARS)
            log.warning("%s (the next try is in %.1f s)", told, wait)

    def _tell(self, news: News, facts: Facts) -> None:
        """Say it as one flat object; what the Arbiter or the client worded is cleaned for a line."""
        clean = {
            key: clean_line(value, NOTE_CHARS) if isinstance(value, str) else value
            for key, value in facts.items()
        }
        self._say({"event": news.value, **clean})

    # --- the client ----------------------------------------------------------------------------------

    async def _open_chat(self) -> None:
        event: SeatEvent
        try:
            await self._adapter.open(self._plan.system_prompt)
        except AdapterFault as fault:
            event = events.ChatFailed(fault.detail)
        else:
            event = events.ChatOpened(self._adapter.memory_lost)
        await self._ours.send(event)

    async def _restart_chat(self) -> None:
        event: SeatEvent
        try:
            await self._adapter.restart(self._plan.system_prompt)
        except AdapterFault as fault:
            event = events.RestartFailed(fault.detail)
        else:
            event = events.Restarted()
        await self._ours.send(event)

    async def _run_turn(self, context: Context, deadline: float, scope: anyio.CancelScope) -> None:
        turn_id = context.turn_id
        event: SeatEvent = events.Stopped(turn_id)
        # The Arbiter revokes at its own deadline (§6.4); this one bounds the client where that word is late.
        with scope, anyio.CancelScope(deadline=deadline) as limit:
            event = await self._produce(context, deadline)
        if limit.cancelled_caught:
            event = events.Failed(turn_id, Fault.DEADLINE, PromptSent.MAYBE, "the turn's time is over")
        await self._ours.send(event)

    async def _produce(self, context: Context, deadline: float) -> SeatEvent:
        """Have the client answer. Whatever goes wrong with it is a failed turn, not the end of the seat."""
        turn_id = context.turn_id
        turn = Turn(
            context,
            deadline,
            limit_chars=self._plan.contribution_chars,
            speech_bytes=self._machine.speech_bytes,
            first=turn_id == FIRST_TURN,
        )
        try:
            answer = await self._adapter.take_turn(turn)
        except AdapterFault as fault:
            return _failed(turn_id, fault)
        except Exception as bug:
            log.exception("the adapter failed in a way that it should not")
            return events.Failed(turn_id, Fault.INTERNAL, PromptSent.MAYBE, type(bug).__name__)
        refused = _refused(answer.refused)
        if answer.skipped:
            return events.Skipped(turn_id)
        if self._adapter.person is None and is_pass(answer.text):
            return events.Passed(turn_id, answer.usage, refused)
        return events.Answered(turn_id, clean_text(answer.text), answer.usage, refused)

    # --- leaving -------------------------------------------------------------------------------------

    async def _leave_on_signal(self) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
            async for number in received:
                await self._ours.send(events.Leave(f"stopped by {signal.Signals(number).name}"))

    async def _leave_when_orphaned(self) -> None:
        await until_orphaned()
        await self._ours.send(events.Leave("whoever started the seat is gone"))

    async def _close(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._link.aclose()
            with anyio.move_on_after(CLOSE_SECONDS) as limit:
                await self._adapter.close()
            if limit.cancelled_caught:
                log.warning("the client did not go within %g seconds", CLOSE_SECONDS)
            self._post.close()
            self._inbox.close()


def _failed(turn_id: int, fault: AdapterFault) -> events.Failed:
    back = None if fault.resets_at is None else clean_line(fault.resets_at, MAX_LABEL) or None
    return events.Failed(
        turn_id,
        fault.fault,
        fault.prompt_sent,
        clean_text(fault.detail),
        fault.partial_bytes,
        back,
        _refused(fault.refused),
    )


def _refused(told: tuple[str, ...]) -> tuple[str, ...]:
    """What the client was not allowed to do, for the log and for the record: clean lines, not too many."""
    lines = tuple(clean_line(line, REFUSED_CHARS) for line in told[:MAX_REFUSED])
    for line in lines:
        log.warning("the client was not allowed to do this: %s", line)
    return lines
