"""A seat, from its registration to its end, as a machine without I/O (§5.4, §5.5, §6, §9.6, §17.6).

1. What may happen when is the three tables at the end of this file. A message that is not listed for the
   state is a fault of the Arbiter and ends the seat; a local event that is not listed came too late, and
   changes nothing.
2. What becomes of turns and of the chat is `wrapper.floor`; when it tries again is `wrapper.reconnection`.
3. A session that is lost takes its open turn with it: nothing of it is sent in the next one. The chat is
   kept, and only the operator's word puts the seat back into the debate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from consilium import messages
from consilium.errors import ErrorCode
from wrapper import events
from wrapper.events import End, News, Note, Outcome, SendControl, SendData, Tell, Weight
from wrapper.floor import BrokenOrder, Floor, as_reason
from wrapper.presence import Presence
from wrapper.refusals import advice, another_debate, explain, may_change

if TYPE_CHECKING:
    from consilium.errors import Objection
    from wrapper.events import Effect, SeatEvent
    from wrapper.reconnection import Reconnection

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


# Any: each handler takes the one class that its row names.
Handler = Callable[["SeatMachine", Any], "list[Effect]"]
Table = Mapping[tuple[SeatState, type], Handler]

_ALIVE = tuple(state for state in SeatState if state is not SeatState.ENDED)
_KNOWN = (SeatState.REGISTERED, SeatState.BINDING, SeatState.SEATED)
_BOUND = (SeatState.BINDING, SeatState.SEATED)
"""DATA_HELLO is sent: DATA_OK may be on its way while what follows from it is here already."""


def _table(*rows: tuple[type, Iterable[SeatState], Handler]) -> Table:
    return {(state, kind): handler for kind, states, handler in rows for state in states}


class SeatMachine:
    """One seat in one debate. `handle` never raises and never waits."""

    def __init__(
        self,
        reg: messages.Reg,
        *,
        speech_bytes: int,
        reconnection: Reconnection,
        debate_id: str | None = None,
    ) -> None:
        """``reg`` is what the seat asks for; ``speech_bytes`` bounds a SPEECH, unless the Arbiter says.

        ``debate_id`` is the debate that the seat's chat belongs to, where there is one.
        """
        self.state = SeatState.OFFLINE
        self.participant_id = ""
        self._reg = self._asked = reg
        self._session_id = self._data_token = ""
        self._reconnection = reconnection
        self._floor = Floor(speech_bytes=speech_bytes)
        self._debate_id = debate_id
        self._memory_lost = False
        self._complaint = ""
        self._trouble = ""
        self._presence = Presence()
        self._now = 0.0

    @property
    def speech_bytes(self) -> int:
        """The longest SPEECH that is taken, in bytes of UTF-8."""
        return self._floor.speech_bytes

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
        try:
            return handler(self, message)
        except BrokenOrder as order:
            return self._fault(str(order))

    # --- registration --------------------------------------------------------------------------------

    def _chat_opened(self, event: events.ChatOpened) -> list[Effect]:
        self._memory_lost = event.memory_lost
        return [events.OpenControl(self._reconnection.begin(self._now))]

    def _chat_failed(self, event: events.ChatFailed) -> list[Effect]:
        return self._end(Outcome.CLIENT_FAILED, f"the client cannot be used: {event.detail}")

    def _register(self, _event: events.ControlOpened) -> list[Effect]:
        self.state = SeatState.REGISTERING
        self._asked = self._presence.registration(self._reg)
        return [SendControl(self._asked)]

    def _registered(self, message: messages.RegOk) -> list[Effect]:
        if message.heartbeat_interval_ms == 0:
            return self._fault("REG_OK announces a heartbeat of 0 ms")
        if self._debate_id is not None and message.debate_id not in (None, self._debate_id):
            farewell = SendControl(messages.Unreg(reason="this seat's chat is of another debate"))
            return self._end(
                Outcome.REFUSED, another_debate(message.debate_id, self._debate_id), farewell=[farewell]
            )
        self._debate_id = message.debate_id or self._debate_id
        self.state = SeatState.REGISTERED
        self.participant_id = message.participant_id
        self._session_id, self._data_token = message.session_id, message.data_token
        if message.speech_bytes is not None:
            self._floor.speech_bytes = min(message.speech_bytes, messages.MAX_SPEECH_BYTES)
        effects: list[Effect] = [
            Note(Weight.INFO, f"registered as {message.participant_id}; the debate is {message.debate_state}")
        ]
        granted = f"required: {message.required}, disconnect_policy: {message.disconnect_policy}"
        effects += self._presence.update()
        asked, keep = self._asked, messages.DisconnectPolicy.KEEP_ALIVE
        if (asked.required and not message.required) or (
            asked.disconnect_policy is keep and message.disconnect_policy is not keep
        ):
            effects.append(Note(Weight.WARNING, f"the Arbiter granted less than was asked for ({granted})"))
        elif (message.required, message.disconnect_policy) != (asked.required, asked.disconnect_policy):
            effects.append(Note(Weight.INFO, f"the Arbiter gave more than was asked for ({granted})"))
        facts: events.Facts = {
            "participant_id": message.participant_id,
            "debate_state": message.debate_state.value,
            "phase": message.phase.value,
            "topic": message.topic,
            "debate_id": message.debate_id or "",
        }
        return [*effects, Tell(News.REGISTERED, facts), events.OpenData(message.heartbeat_interval_ms / 1000)]

    def _say_hello(self, _event: events.DataOpened) -> list[Effect]:
        self.state = SeatState.BINDING
        hello = messages.DataHello(session_id=self._session_id, data_token=self._data_token)
        return [SendData(hello)]

    def _seated(self, _message: messages.DataOk) -> list[Effect]:
        self.state = SeatState.SEATED
        self._reconnection.sat(self._now)
        self._trouble = ""
        seated = Tell(News.SEATED, {"participant_id": self.participant_id})
        return [seated, *self._tell_memory_lost()]

    def _refused(self, message: messages.Error) -> list[Effect]:
        reason = explain(message.code, self._reg.name, message.message)
        if may_change(message.code):
            return self._try_again(Outcome.REFUSED, reason)
        return self._end(Outcome.REFUSED, reason)

    # --- the turn ------------------------------------------------------------------------------------

    def _turn_start(self, message: messages.TurnStart) -> list[Effect]:
        return self._floor.assigned(message, self._now)

    def _context(self, message: messages.Context) -> list[Effect]:
        return self._floor.told(message)

    def _revoked(self, message: messages.TurnRevoked) -> list[Effect]:
        return self._floor.revoked(message)

    def _answered(self, event: events.Answered) -> list[Effect]:
        return self._floor.answered(event)

    def _passed(self, event: events.Passed) -> list[Effect]:
        return self._floor.passed(event)

    def _skipped(self, event: events.Skipped) -> list[Effect]:
        return self._floor.skipped(event, self.participant_id)

    def _failed(self, event: events.Failed) -> list[Effect]:
        return self._floor.failed(event)

    def _stopped(self, event: events.Stopped) -> list[Effect]:
        return self._floor.stopped(event)

    # --- recovery ------------------------------------------------------------------------------------

    def _recover(self, message: messages.SeatRecovery) -> list[Effect]:
        told = Tell(News.RECOVERED, {"mode": message.mode.value})
        if message.mode is messages.Recovery.KEEP:
            return [Note(Weight.INFO, "the operator keeps this seat's chat"), told]
        return [Note(Weight.INFO, "the operator has this seat start cold"), told, *self._floor.cold()]

    def _restarted(self, _event: events.Restarted) -> list[Effect]:
        if not self._floor.restarted():
            return []
        self._memory_lost = True
        return [*self._tell_memory_lost(), *self._floor.advance()]

    def _restart_failed(self, event: events.RestartFailed) -> list[Effect]:
        broken = self._floor.restart_failed(event.detail)
        if not broken:
            return []
        self._memory_lost = True
        return [Note(Weight.WARNING, broken), *self._tell_memory_lost(), *self._floor.advance()]

    def _tell_memory_lost(self) -> list[Effect]:
        """§5.5: whoever reads the record must see that a familiar name has lost its memory. Said once."""
        if not self._memory_lost or self.state is not SeatState.SEATED:
            return []
        self._memory_lost = False
        lost = messages.SystemEvent(event="PARTICIPANT_MEMORY_LOST", participant_id=self.participant_id)
        return [SendData(lost)]

    # --- the person ----------------------------------------------------------------------------------

    def _moved(self, event: events.Away | events.Back) -> list[Effect]:
        self._presence.away = isinstance(event, events.Away)
        return self._presence.update() if self.state in _KNOWN else []

    def _ask_status(self, _event: events.StatusWanted) -> list[Effect]:
        return self._presence.ask(connected=self.state in _KNOWN)

    def _standing(self, message: messages.StateOk) -> list[Effect]:
        return self._presence.applied(message)

    def _status(self, message: messages.Status) -> list[Effect]:
        return self._presence.shown(message)

    # --- the debate ----------------------------------------------------------------------------------

    def _paused(self, message: messages.DebatePaused) -> list[Effect]:
        missing = f" (missing: {', '.join(message.missing)})" if message.missing else ""
        told = Tell(
            News.PAUSED,
            {
                "reason": message.reason,
                "missing": list(message.missing),
                "resets_at": message.resets_at or "",
            },
        )
        return [Note(Weight.INFO, f"the debate is paused: {message.reason}{missing}"), told]

    def _resumed(self, _message: messages.DebateResumed) -> list[Effect]:
        return [Note(Weight.INFO, "the debate goes on"), Tell(News.RESUMED, {})]

    def _debate_ended(self, message: messages.DebateEnded) -> list[Effect]:
        cap = f" by {message.cap}" if message.cap is not None else ""
        return self._end(Outcome(message.outcome), f"the debate ended: {message.outcome}{cap}")

    def _error(self, message: messages.Error) -> list[Effect]:
        if message.code in FATAL_CODES:
            return self._end(Outcome.REFUSED, explain(message.code, self._reg.name, message.message))
        if message.code == ErrorCode.CERTIFICATE_EXPIRED:
            return self._refused(message)
        refusal = f"the Arbiter refused a message: {message.code}: {message.message}"
        if message.code == ErrorCode.TURN_MISMATCH:
            # A turn that the Arbiter has closed meanwhile: the ordinary race of §6.4.
            return [Note(Weight.INFO, refusal)]
        self._complaint = f" ({refusal})"
        return [Note(Weight.WARNING, refusal)]

    # --- a link that is gone, and the next one -------------------------------------------------------

    def _link_lost(self, event: events.LinkLost) -> list[Effect]:
        return self._try_again(Outcome.LINK_LOST, event.reason + self._complaint, event.hint)

    def _link_refused(self, event: events.LinkRefused) -> list[Effect]:
        return self._end(Outcome.REFUSED, f"{event.reason}. {advice(event.objection)}", event.objection)

    def _try_again(self, outcome: Outcome, reason: str, hint: str = "") -> list[Effect]:
        """§17.6: reconnection is registration, under the same name, with whatever the chat remembers.

        The reason is said when it is a new one: once, and not at each of the tries that follow.
        """
        knock = self._reconnection.failed(self._now)
        if knock is None:
            limit = self._reconnection.limit
            given_up = f"; given up after {limit:g} seconds" if limit else ""
            return self._end(outcome, reason + given_up + (f". {hint}" if hint else ""))
        self.state = SeatState.OFFLINE
        self._complaint = ""
        opening = events.OpenControl(knock)
        if reason != self._trouble:
            opening = events.OpenControl(knock, reason, hint)
        self._trouble = reason
        return [*self._floor.leave("the connection is gone"), opening]

    # --- the end -------------------------------------------------------------------------------------

    def _leave(self, event: events.Leave) -> list[Effect]:
        farewell: list[Effect] = []
        if self.state is not SeatState.OFFLINE:
            farewell = [SendControl(messages.Unreg(reason=as_reason(event.reason)))]
        return self._end(Outcome.LEFT, f"left: {event.reason}", farewell=farewell)

    def _peer_faulted(self, event: events.PeerFaulted) -> list[Effect]:
        return self._fault(event.reason)

    def _fault(self, what: str) -> list[Effect]:
        return self._end(Outcome.PROTOCOL_FAULT, f"the Arbiter does not keep to the protocol: {what}")

    def _end(
        self,
        outcome: Outcome,
        reason: str,
        objection: Objection | None = None,
        *,
        farewell: Iterable[Effect] = (),
    ) -> list[Effect]:
        self.state = SeatState.ENDED
        return [*self._floor.stop(), *farewell, End(outcome, reason, objection)]

    # --- what may happen when ------------------------------------------------------------------------

    CONTROL: ClassVar[Table] = _table(
        (messages.RegOk, (SeatState.REGISTERING,), _registered),
        (messages.Error, (SeatState.REGISTERING,), _refused),
        (messages.Error, _KNOWN, _error),
        (messages.TurnStart, _BOUND, _turn_start),
        (messages.TurnRevoked, _BOUND, _revoked),
        (messages.SeatRecovery, _BOUND, _recover),
        (messages.StateOk, _KNOWN, _standing),
        (messages.Status, _KNOWN, _status),
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
        # A client that is being stopped outlives the session of its turn.
        (events.Answered, _ALIVE, _answered),
        (events.Passed, _ALIVE, _passed),
        (events.Skipped, _ALIVE, _skipped),
        (events.Failed, _ALIVE, _failed),
        (events.Stopped, _ALIVE, _stopped),
        (events.Restarted, _ALIVE, _restarted),
        (events.RestartFailed, _ALIVE, _restart_failed),
        (events.LinkLost, _ALIVE, _link_lost),
        (events.LinkRefused, _ALIVE, _link_refused),
        (events.PeerFaulted, _ALIVE, _peer_faulted),
        (events.Leave, _ALIVE, _leave),
        (events.Away, _ALIVE, _moved),
        (events.Back, _ALIVE, _moved),
        (events.StatusWanted, _ALIVE, _ask_status),
    )
