"""The seat's driver (§3.3.A): one inbox, one owner. It performs what `wrapper.turn` says and decides nothing.

1. Only `Seat.run` touches the machine. The link, the client's tasks, signals and the lifeline post to the
   one inbox.
2. Effects are performed in their order, and none waits for the client: a turn is a task, and whatever
   becomes of it is one event.
3. However a seat ends, it ends in bounded time, and nothing of its client outlives `run`.
"""

from __future__ import annotations

import logging
import secrets
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

import anyio

from consilium.errors import AdapterFault
from consilium.lifeline import until_orphaned
from consilium.messages import Fault, PromptSent
from wrapper import events
from wrapper.clean import clean_line, clean_text
from wrapper.envelope import assemble
from wrapper.events import (
    CancelTurn,
    End,
    Note,
    OpenControl,
    OpenData,
    RestartChat,
    RunTurn,
    SeatEvent,
    SendControl,
    SendData,
    TakeSeat,
    Weight,
)
from wrapper.link import Address, Link
from wrapper.prompts import is_pass, phase_instruction
from wrapper.turn import SeatMachine

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from anyio.abc import TaskGroup

    from consilium.messages import Context, Reg
    from wrapper.adapters.base import ParticipantAdapter
    from wrapper.events import Action

log = logging.getLogger("consilium.seat")

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

    ``patience`` is how many seconds it waits for an Arbiter that does not listen yet; ``lifeline`` makes
    it leave when its standard input ends.
    """

    reg: Reg
    system_prompt: str
    address: Address
    context: ssl.SSLContext
    patience: float
    speech_bytes: int
    contribution_chars: int
    lifeline: bool


class Seat:
    """One seat, from opening its client to its end."""

    def __init__(
        self, plan: Plan, adapter: ParticipantAdapter, say: Callable[[Mapping[str, str]], None]
    ) -> None:
        """``say`` is told what whoever started the seat may want to know of its life."""
        self._plan = plan
        self._adapter = adapter
        self._say = say
        self._machine = SeatMachine(plan.reg, speech_bytes=plan.speech_bytes)
        self._post, self._inbox = anyio.create_memory_object_stream[SeatEvent](INBOX)
        self._link = Link(plan.address, plan.context, self._post)
        self._turn = anyio.CancelScope()
        self.busy_since: float | None = None
        """Since when the owner has been at work on one event; None while it waits for one."""

    async def run(self) -> End:
        """Live the seat's whole life; return how it ended."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._leave_on_signal)
                if self._plan.lifeline:
                    tasks.start_soon(self._leave_when_orphaned)
                tasks.start_soon(self._open_chat)
                end = await self._own(tasks)
                tasks.cancel_scope.cancel()
        finally:
            await self._close()
        self._say({"event": "ended", "outcome": end.outcome, "reason": clean_line(end.reason, NOTE_CHARS)})
        return end

    async def _own(self, tasks: TaskGroup) -> End:
        while True:
            self.busy_since = None
            event = await self._inbox.receive()
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
                tasks.start_soon(self._link.control, self._plan.patience)
            case OpenData(heartbeat):
                tasks.start_soon(self._link.heartbeat, heartbeat)
                tasks.start_soon(self._link.data)
            case TakeSeat(participant_id):
                self._say({"event": "seated", "participant_id": participant_id})
            case RunTurn(context, deadline):
                self._turn = anyio.CancelScope()
                tasks.start_soon(self._run_turn, context, deadline, self._turn)
            case CancelTurn():
                self._turn.cancel()
            case RestartChat():
                tasks.start_soon(self._restart_chat)
            case Note(weight, text):
                log.log(_LEVELS[weight], "%s", clean_line(text, NOTE_CHARS))
            case _:
                assert_never(effect)

    # --- the client ----------------------------------------------------------------------------------

    async def _open_chat(self) -> None:
        event: SeatEvent
        try:
            await self._adapter.open(self._plan.system_prompt)
        except AdapterFault as fault:
            event = events.ChatFailed(fault.detail)
        else:
            event = events.ChatOpened(self._adapter.memory_lost)
        await self._post.send(event)

    async def _restart_chat(self) -> None:
        event: SeatEvent
        try:
            await self._adapter.restart(self._plan.system_prompt)
        except AdapterFault as fault:
            event = events.RestartFailed(fault.detail)
        else:
            event = events.Restarted()
        await self._post.send(event)

    async def _run_turn(self, context: Context, deadline: float, scope: anyio.CancelScope) -> None:
        turn_id = context.turn_id
        event: SeatEvent = events.Stopped(turn_id)
        # The Arbiter revokes at its own deadline (§6.4); this one bounds the client where that word is late.
        with scope, anyio.CancelScope(deadline=deadline) as limit:
            event = await self._produce(context)
        if limit.cancelled_caught:
            event = events.Failed(turn_id, Fault.DEADLINE, PromptSent.MAYBE, "the turn's time is over")
        await self._post.send(event)

    async def _produce(self, context: Context) -> SeatEvent:
        """Have the client answer. Whatever goes wrong with it is a failed turn, not the end of the seat."""
        turn_id = context.turn_id
        # §14.5: whoever wrote the delta cannot know this, and so cannot imitate our markers.
        nonce = secrets.token_hex(16)
        prompt = assemble(
            context,
            nonce,
            limit_chars=self._plan.contribution_chars,
            phase_instruction=phase_instruction(context.phase),
            first=turn_id == FIRST_TURN,
        )
        try:
            answer = await self._adapter.send_turn(prompt)
        except AdapterFault as fault:
            detail = clean_text(fault.detail)
            return events.Failed(turn_id, fault.fault, fault.prompt_sent, detail, fault.partial_bytes)
        except Exception as bug:
            log.exception("the adapter failed in a way that it should not")
            return events.Failed(turn_id, Fault.INTERNAL, PromptSent.MAYBE, type(bug).__name__)
        if is_pass(answer.text):
            return events.Passed(turn_id, answer.usage)
        return events.Answered(turn_id, clean_text(answer.text), answer.usage)

    # --- leaving -------------------------------------------------------------------------------------

    async def _leave_on_signal(self) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
            async for number in received:
                await self._post.send(events.Leave(f"stopped by {signal.Signals(number).name}"))

    async def _leave_when_orphaned(self) -> None:
        await until_orphaned()
        await self._post.send(events.Leave("whoever started the seat is gone"))

    async def _close(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._link.aclose()
            with anyio.move_on_after(CLOSE_SECONDS) as limit:
                await self._adapter.close()
            if limit.cancelled_caught:
                log.warning("the client did not go within %g seconds", CLOSE_SECONDS)
            self._post.close()
            self._inbox.close()
