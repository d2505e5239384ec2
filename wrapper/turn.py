"""A seat, from its registration to its end, as a machine without I/O (§5.4, §5.5, §6, §13.5).

1. What may happen when is the three tables at the end of this file. A message that is not listed for the
   state is a fault of the Arbiter and ends the seat; a local event that is not listed came too late, and
   changes nothing.
2. One chat, one turn at a time: nothing is given to the adapter before the turn is assigned, and nothing
   while an older turn, or a restart, is still at work in the chat.
3. For a revoked turn nothing is sent, ever; every other turn is answered with one TURN_END or TURN_FAILED.

Control and data are two connections: what was sent on one may overtake what was sent on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from consilium import messages
from consilium.errors import ErrorCode
from consilium.messages import Fault, PromptSent
from wrapper import events
from wrapper.clean import cut_at_bytes
from wrapper.events import CancelTurn, End, Note, Outcome, RestartChat, RunTurn, SendControl, SendData, Weight
from wrapper.refusals import explain

if TYPE_CHECKING:
    from wrapper.events import Effect, SeatEvent

MAX_REASON_BYTES = 2000
"""What is kept of a client's or a person's reason; `messages.Reason` admits as many characters."""

FATAL_CODES = frozenset({ErrorCode.NOT_REGISTERED, ErrorCode.PROTOCOL_VERSION_UNSUPPORTED})
"""Refusals after which there is no seat, whatever was refused."""


class SeatState(StrEnum):
    """How far the seat has got.

    Connected is REGISTERED, not earlier: under TLS 1.3 a client that is refused can write first.
    """

    OFFLINE = "offline"
    REGISTERING = "registering"
    REGISTERED = "registered"
    BINDING = "binding"
    SEATED = "seated"
    ENDED = "ended"


class Chat(StrEnum):
    """What the adapter's one chat is doing."""

    FREE = "free"
    RUNNING = "running"
    STOPPING = "stopping"
    RESTARTING = "restarting"
    BROKEN = "broken"


@dataclass(slots=True)
class _OpenTurn:
    """The turn that is ours: assigned, not answered, not revoked."""

    turn_id: int
    deadline: float
    context: messages.Context | None


# Any: each handler takes the one class that its row names.
Handler = Callable[["SeatMachine", Any], "list[Effect]"]
Table = Mapping[tuple[SeatState, type], Handler]

_ALIVE = tuple(state for state in SeatState if state is not SeatState.ENDED)
_KNOWN = (SeatState.REGISTERED, SeatState.BINDING, SeatState.SEATED)
_BOUND = (SeatState.BINDING, SeatState.SEATED)
"""DATA_HELLO is sent: DATA_OK may be on its way while what follows from it is here already."""


def _table(*rows: tuple[type, Iterable[SeatState], Handler]) -> Table:
    return {(state, kind): handler for kind, states, handler in rows for state in states}


def _reason(text: str) -> str:
    """Make ``text`` fit a `messages.Reason`, whatever it holds."""
    return text.encode("utf-8", "replace")[:MAX_REASON_BYTES].decode("utf-8", "ignore")


class SeatMachine:
    """One seat in one debate. `handle` never raises and never waits."""

    def __init__(self, reg: messages.Reg, *, speech_bytes: int) -> None:
        """``reg`` is what the seat asks for; ``speech_bytes`` bounds the text of a SPEECH."""
        self.state = SeatState.OFFLINE
        self.participant_id = ""
        self._reg = reg
        self._session_id = self._data_token = ""
        self._speech_bytes = speech_bytes
        self._memory_lost = False
        self._turn: _OpenTurn | None = None
        self._last_turn = -1
        self._early: messages.Context | None = None
        self._chat = Chat.FREE
        self._chat_turn = -1
        self._restart_wanted = False
        self._broken = ""
        self._complaint = ""
        self._now = 0.0

    def handle(self, event: SeatEvent, now: float) -> list[Effect]:
        """Take what happened at ``now`` (seconds, monotonic); return what shall be done, in order."""
        if self.state is SeatState.ENDED:
            return []
        self._now = now
        if isinstance(event, events.FromControl):
            return self._hear(self.CONTROL, event.message)
        if isinstance(event, events.FromData):
            return self._hear(self.DATA, event.message)
        handler = self.LOCAL.get((self.state, type(event)))
        if handler is None:
            return [Note(Weight.DEBUG, f"{type(event).__name__} came too late: {self.state}")]
        return handler(self, event)

    def _hear(self, table: Table, message: messages.Message) -> list[Effect]:
        handler = table.get((self.state, type(message)))
        if handler is None:
            return self._fault(f"{type(message).__name__} makes no sense while the seat is {self.state}")
        return handler(self, message)

    # --- registration --------------------------------------------------------------------------------

    def _chat_opened(self, event: events.ChatOpened) -> list[Effect]:
        self._memory_lost = event.memory_lost
        return [events.OpenControl()]

    def _chat_failed(self, event: events.ChatFailed) -> list[Effect]:
        return self._end(Outcome.CLIENT_FAILED, f"the client cannot be used: {event.detail}")

    def _register(self, _event: events.ControlOpened) -> list[Effect]:
        self.state = SeatState.REGISTERING
        return [SendControl(self._reg)]

    def _registered(self, message: messages.RegOk) -> list[Effect]:
        if message.heartbeat_interval_ms == 0:
            return self._fault("REG_OK announces a heartbeat of 0 ms")
        self.state = SeatState.REGISTERED
        self.participant_id = message.participant_id
        self._session_id, self._data_token = message.session_id, message.data_token
        effects: list[Effect] = [
            Note(Weight.INFO, f"registered as {message.participant_id}; the debate is {message.debate_state}")
        ]
        granted = f"required: {message.required}, disconnect_policy: {message.disconnect_policy}"
        asked, keep = self._reg, messages.DisconnectPolicy.KEEP_ALIVE
        if (asked.required and not message.required) or (
            asked.disconnect_policy is keep and message.disconnect_policy is not keep
        ):
            effects.append(Note(Weight.WARNING, f"the Arbiter granted less than was asked for ({granted})"))
        elif (message.required, message.disconnect_policy) != (asked.required, asked.disconnect_policy):
            effects.append(Note(Weight.INFO, f"the Arbiter gave more than was asked for ({granted})"))
        return [*effects, events.OpenData(message.heartbeat_interval_ms / 1000)]

    def _say_hello(self, _event: events.DataOpened) -> list[Effect]:
        self.state = SeatState.BINDING
        hello = messages.DataHello(session_id=self._session_id, data_token=self._data_token)
        return [SendData(hello)]

    def _seated(self, _message: messages.DataOk) -> list[Effect]:
        self.state = SeatState.SEATED
        return [events.TakeSeat(self.participant_id), *self._tell_memory_lost()]

    def _refused(self, message: messages.Error) -> list[Effect]:
        return self._end(Outcome.REFUSED, explain(message.code, self._reg.name, message.message))

    # --- the turn ------------------------------------------------------------------------------------

    def _turn_start(self, message: messages.TurnStart) -> list[Effect]:
        if message.turn_id <= self._last_turn:
            return self._fault(f"TURN_START {message.turn_id} came after turn {self._last_turn}")
        effects = self._withdraw(f"turn {message.turn_id} was assigned instead")
        self._last_turn = message.turn_id
        early, self._early = self._early, None
        if early is not None and early.turn_id > message.turn_id:
            self._early, early = early, None
        context = early if early is not None and early.turn_id == message.turn_id else None
        self._turn = _OpenTurn(message.turn_id, self._now + message.deadline_ms / 1000, context)
        # §5.4: the wrapper acknowledges that it has the turn; the chat may still be busy with an older one.
        effects.append(SendControl(messages.Ack(turn_id=message.turn_id)))
        return [*effects, *self._advance()]

    def _context(self, message: messages.Context) -> list[Effect]:
        if message.turn_id > self._last_turn:
            if self._early is not None and message.turn_id <= self._early.turn_id:
                return self._fault(f"CONTEXT {message.turn_id} came after CONTEXT {self._early.turn_id}")
            self._early = message
            return []
        if self._turn is None or self._turn.turn_id != message.turn_id:
            return [Note(Weight.DEBUG, f"CONTEXT {message.turn_id} came for a turn that is over")]
        if self._turn.context is not None:
            return self._fault(f"CONTEXT {message.turn_id} came twice")
        self._turn.context = message
        return self._advance()

    def _revoked(self, message: messages.TurnRevoked) -> list[Effect]:
        if message.turn_id > self._last_turn:
            return self._fault(f"TURN_REVOKED {message.turn_id} came without its TURN_START")
        if self._turn is None or self._turn.turn_id != message.turn_id:
            return [Note(Weight.INFO, f"turn {message.turn_id} was revoked after its end: {message.reason}")]
        return self._withdraw(f"it was revoked: {message.reason}")

    def _answered(self, event: events.Answered) -> list[Effect]:
        text = cut_at_bytes(event.text, self._speech_bytes)
        if not text.strip():
            # An empty answer is a fault, never a skip: nobody chose it.
            what, seen = "the answer holds no text", len(event.text.encode("utf-8", "replace"))
            return self._failed(events.Failed(event.turn_id, Fault.EMPTY_ANSWER, PromptSent.YES, what, seen))
        speech = messages.Speech(turn_id=event.turn_id, text=text, usage=event.usage)
        end = messages.TurnEnd(turn_id=event.turn_id, speech=True)
        return self._finish(event.turn_id, [SendData(speech), SendControl(end)])

    def _passed(self, event: events.Passed) -> list[Effect]:
        end = messages.TurnEnd(turn_id=event.turn_id, usage=event.usage)
        return self._finish(event.turn_id, [SendControl(end)])

    def _failed(self, event: events.Failed) -> list[Effect]:
        return self._finish(event.turn_id, self._report(event))

    def _stopped(self, event: events.Stopped) -> list[Effect]:
        unasked = events.Failed(event.turn_id, Fault.INTERNAL, PromptSent.MAYBE, "the turn was stopped")
        return self._finish(event.turn_id, self._report(unasked))

    def _report(self, event: events.Failed) -> list[Effect]:
        detail = _reason(event.detail)
        failed = messages.TurnFailed(
            turn_id=event.turn_id,
            fault=event.fault,
            prompt_sent=event.prompt_sent,
            detail=detail,
            partial_bytes=event.partial_bytes,
        )
        return [
            Note(Weight.WARNING, f"turn {event.turn_id} failed: {event.fault}: {detail}"),
            SendControl(failed),
        ]

    def _finish(self, turn_id: int, outcome: list[Effect]) -> list[Effect]:
        """The chat is done with ``turn_id``; ``outcome`` counts only if the turn is still ours."""
        if self._chat not in (Chat.RUNNING, Chat.STOPPING) or self._chat_turn != turn_id:
            return [Note(Weight.DEBUG, f"turn {turn_id} is not at work; its result is dropped")]
        if self._chat is Chat.RUNNING:
            self._turn = None
        else:
            outcome = []
        self._chat = Chat.FREE
        return [*outcome, *self._advance()]

    def _withdraw(self, why: str) -> list[Effect]:
        """Give up the open turn, if there is one: nothing will be sent for it."""
        if self._turn is None:
            return []
        effects: list[Effect] = [Note(Weight.WARNING, f"turn {self._turn.turn_id} is given up: {why}")]
        self._turn = None
        if self._chat is Chat.RUNNING:
            self._chat = Chat.STOPPING
            effects.append(CancelTurn(self._chat_turn))
        return effects

    def _advance(self) -> list[Effect]:
        """Give the chat its next piece of work, if it is free and there is one."""
        if self._chat in (Chat.RUNNING, Chat.STOPPING, Chat.RESTARTING):
            return []
        if self._restart_wanted:
            self._restart_wanted = False
            self._chat = Chat.RESTARTING
            return [RestartChat()]
        turn = self._turn
        if turn is None:
            return []
        if self._chat is Chat.BROKEN:
            self._turn = None
            return self._report(events.Failed(turn.turn_id, Fault.START_FAILED, PromptSent.NO, self._broken))
        if turn.context is None:
            return []
        self._chat = Chat.RUNNING
        self._chat_turn = turn.turn_id
        return [RunTurn(turn.context, turn.deadline)]

    # --- recovery ------------------------------------------------------------------------------------

    def _recover(self, message: messages.SeatRecovery) -> list[Effect]:
        if message.mode is messages.Recovery.KEEP:
            return [Note(Weight.INFO, "the operator keeps this seat's chat")]
        self._restart_wanted = True
        return [Note(Weight.INFO, "the operator has this seat start cold"), *self._advance()]

    def _restarted(self, _event: events.Restarted) -> list[Effect]:
        if self._chat is not Chat.RESTARTING:
            return []
        self._chat = Chat.FREE
        self._memory_lost = True
        return [*self._tell_memory_lost(), *self._advance()]

    def _restart_failed(self, event: events.RestartFailed) -> list[Effect]:
        if self._chat is not Chat.RESTARTING:
            return []
        # The former chat is given up all the same. The seat stays, so that the operator can see the cause
        # (the next turn fails with it) and try again.
        self._chat = Chat.BROKEN
        self._memory_lost = True
        self._broken = f"the chat could not be started cold: {event.detail}"
        return [Note(Weight.WARNING, self._broken), *self._tell_memory_lost(), *self._advance()]

    def _tell_memory_lost(self) -> list[Effect]:
        """§5.5: whoever reads the record must see that a familiar name has lost its memory. Said once."""
        if not self._memory_lost or self.state is not SeatState.SEATED:
            return []
        self._memory_lost = False
        lost = messages.SystemEvent(event="PARTICIPANT_MEMORY_LOST", participant_id=self.participant_id)
        return [SendData(lost)]

    # --- the debate ----------------------------------------------------------------------------------

    def _paused(self, message: messages.DebatePaused) -> list[Effect]:
        missing = f" (missing: {', '.join(message.missing)})" if message.missing else ""
        return [Note(Weight.INFO, f"the debate is paused: {message.reason}{missing}")]

    def _resumed(self, _message: messages.DebateResumed) -> list[Effect]:
        return [Note(Weight.INFO, "the debate goes on")]

    def _debate_ended(self, message: messages.DebateEnded) -> list[Effect]:
        cap = f" by {message.cap}" if message.cap is not None else ""
        return self._end(Outcome(message.outcome), f"the debate ended: {message.outcome}{cap}")

    def _error(self, message: messages.Error) -> list[Effect]:
        if message.code in FATAL_CODES:
            return self._refused(message)
        refusal = f"the Arbiter refused a message: {message.code}: {message.message}"
        if message.code == ErrorCode.TURN_MISMATCH:
            # A turn that the Arbiter has closed meanwhile: the ordinary race of §6.4.
            return [Note(Weight.INFO, refusal)]
        self._complaint = f" ({refusal})"
        return [Note(Weight.WARNING, refusal)]

    # --- the end -------------------------------------------------------------------------------------

    def _leave(self, event: events.Leave) -> list[Effect]:
        farewell: list[Effect] = []
        if self.state is not SeatState.OFFLINE:
            farewell = [SendControl(messages.Unreg(reason=_reason(event.reason)))]
        return self._end(Outcome.LEFT, f"left: {event.reason}", farewell)

    def _link_lost(self, event: events.LinkLost) -> list[Effect]:
        return self._end(Outcome.LINK_LOST, event.reason + self._complaint)

    def _link_refused(self, event: events.LinkRefused) -> list[Effect]:
        return self._end(Outcome.REFUSED, event.reason)

    def _peer_faulted(self, event: events.PeerFaulted) -> list[Effect]:
        return self._fault(event.reason)

    def _fault(self, what: str) -> list[Effect]:
        return self._end(Outcome.PROTOCOL_FAULT, f"the Arbiter does not keep to the protocol: {what}")

    def _end(self, outcome: Outcome, reason: str, farewell: Iterable[Effect] = ()) -> list[Effect]:
        cancel = [CancelTurn(self._chat_turn)] if self._chat is Chat.RUNNING else []
        self.state = SeatState.ENDED
        return [*cancel, *farewell, End(outcome, reason)]

    # --- what may happen when ------------------------------------------------------------------------

    CONTROL: ClassVar[Table] = _table(
        (messages.RegOk, (SeatState.REGISTERING,), _registered),
        (messages.Error, (SeatState.REGISTERING,), _refused),
        (messages.Error, _KNOWN, _error),
        (messages.TurnStart, _BOUND, _turn_start),
        (messages.TurnRevoked, _BOUND, _revoked),
        (messages.SeatRecovery, _BOUND, _recover),
        (messages.DebatePaused, _KNOWN, _paused),
        (messages.DebateResumed, _KNOWN, _resumed),
        (messages.DebateEnded, _KNOWN, _debate_ended),
    )
    DATA: ClassVar[Table] = _table(
        (messages.DataOk, (SeatState.BINDING,), _seated),
        (messages.Error, (SeatState.BINDING,), _refused),
        (messages.Error, (SeatState.SEATED,), _error),
        (messages.Context, (SeatState.SEATED,), _context),
    )
    LOCAL: ClassVar[Table] = _table(
        (events.ChatOpened, (SeatState.OFFLINE,), _chat_opened),
        (events.ChatFailed, (SeatState.OFFLINE,), _chat_failed),
        (events.ControlOpened, (SeatState.OFFLINE,), _register),
        (events.DataOpened, (SeatState.REGISTERED,), _say_hello),
        (events.Answered, (SeatState.SEATED,), _answered),
        (events.Passed, (SeatState.SEATED,), _passed),
        (events.Failed, (SeatState.SEATED,), _failed),
        (events.Stopped, (SeatState.SEATED,), _stopped),
        (events.Restarted, _BOUND, _restarted),
        (events.RestartFailed, _BOUND, _restart_failed),
        (events.LinkLost, _ALIVE, _link_lost),
        (events.LinkRefused, _ALIVE, _link_refused),
        (events.PeerFaulted, _ALIVE, _peer_faulted),
        (events.Leave, _ALIVE, _leave),
    )
