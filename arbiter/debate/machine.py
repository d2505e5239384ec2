"""What each event means: `Debate.handle(event, now) -> list[Effect]`, and `Debate.next_deadline()`.

1. A handler checks everything, then changes anything: what it refuses (`PeerError`) has changed nothing.
2. Any unexpected failure pauses (§7.3); only the operator resumes. Nothing here retries a turn.

``now`` is seconds on any clock that never goes back. What may happen in which state is in `states`, the moves
themselves are in `flow`, and what an operator commands is in `operator`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arbiter.debate import events, operator, status
from arbiter.debate.effects import Channel, Effect, Refuse
from arbiter.debate.flow import PARTICIPANT_FAILED, Flow
from arbiter.debate.operator import RELOAD
from arbiter.debate.roster import Standing
from arbiter.debate.states import TERMINAL, is_legal, refusal_code
from consilium import messages
from consilium.errors import ErrorCode, PeerError
from consilium.messages import QUOTA_EXHAUSTED, DebateState, Fault, PromptSent, as_reason
from consilium.records import EventName, TurnOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue

    from arbiter.debate.events import Event
    from arbiter.debate.roster import Seat
    from arbiter.debate.turn import OpenTurn


LEFT = "the seat left"
"""Why the turn of a seat that left in it ended."""


class Debate(Flow):
    """One debate, from its first seat to its outcome. Only one task may hold it."""

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Take what happened at ``now``; return what shall be done."""
        self._effects = []
        if not isinstance(event, events.RecordFailed):  # what runs out then has nowhere to be recorded
            self._expire(now)
        try:
            self._hear(event, now)
        except PeerError as refusal:
            self._refuse(event, refusal)
        return self._effects

    def _hear(self, event: Event, now: float) -> None:
        if not is_legal(self.state, event):
            raise PeerError(refusal_code(event), f"not while the debate is {self.state}")
        sender = self._sender(event)
        if sender is not None and sender.leaving is not None and not isinstance(event, events.SpeechReceived):
            raise PeerError(ErrorCode.NOT_REGISTERED, "this seat has left")
        self._HANDLERS[type(event)](self, event, now)
        sender = sender or self._sender(event)  # who has only now registered
        if sender is not None:
            sender.active_at = now

    def _sender(self, event: Event) -> Seat | None:
        return self.roster.seated(event.session) if isinstance(event, events.SeatEvent) else None

    def _refuse(self, event: Event, refusal: PeerError) -> None:
        match event:
            case (
                events.SessionLost()
                | events.AlarmRang()
                | events.RecordFailed()
                | events.RecordDelayed()
                | events.Reloaded()
            ):
                raise AssertionError("a fact was refused") from refusal
            case events.Operated():
                channel = Channel.ADMIN
            case events.DataBound() | events.SpeechReceived() | events.SeatReported():
                channel = Channel.DATA
            case _:
                channel = Channel.CONTROL
        self._effects.append(Refuse(event.session, channel, refusal.code, refusal.message, event.msg_id))

    def _expire(self, now: float) -> None:
        """§6.4: a deadline detects a fault; it gives nobody leave to go on."""
        turn = self.turn
        if turn is None or now < turn.deadline:
            return
        seat = self.seat_of(turn)
        if seat.leaving is not None:
            self._give_up_on(seat, seat.leaving, now)
            return
        self.close_turn(TurnOutcome.REVOKED, now, detail="deadline_exceeded")
        self._send_revoked(seat, turn, "deadline_exceeded")
        self.fail(seat, "deadline_exceeded", _sent(turn), now, seen=_seen(turn))

    # --- seats come and go ---------------------------------------------------------------------------

    def _on_registered(self, event: events.SeatRegistered, now: float) -> None:  # noqa: ARG002
        seat = self.roster.admit(event, started=self.has_started)
        if seat.joined:
            self._record_update(seat)
        self.send(
            event.session,
            messages.RegOk(
                session_id=event.session,
                participant_id=seat.participant_id,
                debate_state=self.state,
                topic=self.topic,
                phase=self.phase,
                turn_counter=self.turn_counter,
                required=seat.required,
                disconnect_policy=seat.disconnect_policy,
                data_token=event.data_token,
                heartbeat_interval_ms=int(self.council.limits.heartbeat_seconds * 1000),
                speech_bytes=self.council.limits.speech_bytes,
                debate_id=self.debate_id,
            ),
            in_reply_to=event.msg_id,
        )

    def _on_bound(self, event: events.DataBound, now: float) -> None:
        seat = self.roster.of_session(event.session)
        if seat.bound:
            raise PeerError(ErrorCode.INVALID_STATE, "this session has its data connection already")
        seat.bound = True
        newcomer = not seat.joined
        if newcomer:
            self.roster.join(seat, self.discourse.position)
        if seat.standing is Standing.ABSENT:
            seat.standing = Standing.ACTIVE  # §8.2: it left by choice, and comes back by choice
        cold = newcomer and self.has_started
        name = EventName.PARTICIPANT_JOINED_COLD if cold else EventName.PARTICIPANT_JOINED
        self.record(name, seat, **self._describe(seat, returned=not newcomer))
        cap = self.council.caps.max_tokens
        if cap is not None and seat.meta.reports_usage is False:
            self.record(EventName.USAGE_UNREPORTED, seat, cap="max_tokens", limit=cap)
        self.send(event.session, messages.DataOk(), channel=Channel.DATA, in_reply_to=event.msg_id)
        self.settle(now)

    def _describe(self, seat: Seat, *, returned: bool) -> dict[str, JsonValue]:
        described: dict[str, JsonValue] = {
            "name": seat.name,
            "required": seat.required,
            "disconnect_policy": seat.disconnect_policy.value,
            "meta": seat.meta.model_dump(mode="json"),
            "returned": returned,
        }
        if not self.council.identity_visible:
            described["pseudonym"] = seat.pseudonym
        return described

    def _record_update(self, seat: Seat) -> None:
        self.record(
            EventName.PARTICIPANT_UPDATED,
            seat,
            required=seat.required,
            disconnect_policy=seat.disconnect_policy.value,
            meta=seat.meta.model_dump(mode="json"),
        )

    def _on_updated(self, event: events.StateUpdated, now: float) -> None:
        seat = self.roster.of_session(event.session)
        # §9.4: who had stepped back may come back up to what the roster planned, as on REG.
        planned = event.over_required and self.roster.requires(seat.name)
        if planned or event.required is not None:
            seat.required = planned or bool(event.required)
        if event.disconnect_policy is not None:
            seat.disconnect_policy = event.disconnect_policy
        if seat.joined:
            self._record_update(seat)
        self.send(
            event.session,
            messages.StateOk(
                required=seat.required,
                disconnect_policy=seat.disconnect_policy,
                capped_by_profile=(event.over_required and not planned) or event.over_policy,
            ),
            in_reply_to=event.msg_id,
        )
        self.settle(now)

    def _on_left(self, event: events.SeatLeft, now: float) -> None:
        """§8: what was said is said; who left without a word has skipped."""
        seat, turn = self.roster.of_session(event.session), self.turn
        if turn is not None and turn.participant_id == seat.participant_id:
            if turn.announced and turn.text is None:
                # UNREG has overtaken the SPEECH on the other connection: the seat goes once that is here, or
                # can come no more. The turn's deadline bounds it.
                seat.leaving = event.reason
                return
            outcome = TurnOutcome.SKIP if turn.text is None else TurnOutcome.SPEECH
            self.close_turn(outcome, now, detail=LEFT)
        self.depart(seat, event.reason, now)
        self.settle(now)

    def _give_up_on(self, seat: Seat, reason: str, now: float) -> None:
        """Let a seat go whose announced SPEECH has not come: that is lost, and nobody chose to skip."""
        self.close_turn(TurnOutcome.LOST, now, detail=LEFT)
        self.depart(seat, reason, now)
        self.settle(now)

    def _on_lost(self, event: events.SessionLost, now: float) -> None:
        """§9.5: an unexpected loss pauses, whatever the seat's policy."""
        leaver = self.roster.seated(event.session)
        if leaver is not None and leaver.leaving is not None and self.state not in TERMINAL:
            self._give_up_on(leaver, leaver.leaving, now)
            return
        seat = self.roster.detach(event.session)
        if seat is None or not seat.joined or self.state in TERMINAL:
            return
        if not self.has_started:
            self.record(EventName.PARTICIPANT_LEFT, seat, reason=event.reason, by="loss")
            self.settle(now)
            return
        turn = self.turn
        if turn is None or turn.participant_id != seat.participant_id:
            self.fail(seat, event.reason, None, now)
            return
        self.close_turn(TurnOutcome.LOST, now, detail=event.reason)
        self.fail(seat, event.reason, _sent(turn), now, seen=_seen(turn))

    def _on_reported(self, event: events.SeatReported, now: float) -> None:
        seat = self.roster.of_session(event.session)
        if not seat.joined:
            raise PeerError(ErrorCode.INVALID_STATE, "bind the data channel first")
        self.record(EventName(event.event), seat)
        if event.event == EventName.PARTICIPANT_MEMORY_LOST:
            self.reviving.discard(seat.participant_id)
        self.settle(now)

    # --- a turn --------------------------------------------------------------------------------------

    def _own_turn(self, session: str, turn_id: int) -> OpenTurn:
        """Return the open turn if it is this session's. Raises `PeerError` (§5.5, §6.4)."""
        seat = self.roster.of_session(session)
        turn = self.turn
        if turn is None or turn.turn_id != turn_id or turn.participant_id != seat.participant_id:
            raise PeerError(ErrorCode.TURN_MISMATCH, f"turn {turn_id} is not yours, or is over")
        return turn

    def _on_acknowledged(self, event: events.TurnAcknowledged, now: float) -> None:  # noqa: ARG002
        self._own_turn(event.session, event.turn_id)  # which refuses any other

    def _on_speech(self, event: events.SpeechReceived, now: float) -> None:
        turn = self._own_turn(event.session, event.turn_id)
        limit = self.council.limits.speech_bytes
        if len(event.text.encode()) > limit:
            raise PeerError(ErrorCode.TOO_LARGE, f"a speech may hold at most {limit} bytes")
        turn.speak(event.text, event.usage)
        self._close_if_over(turn, now)

    def _on_ended(self, event: events.TurnEnded, now: float) -> None:
        turn = self._own_turn(event.session, event.turn_id)
        turn.end(speech=event.speech, usage=event.usage, refused=event.refused)
        self._close_if_over(turn, now)

    def _close_if_over(self, turn: OpenTurn, now: float) -> None:
        if turn.is_over:
            seat = self.seat_of(turn)
            self.close_turn(TurnOutcome.SKIP if turn.text is None else TurnOutcome.SPEECH, now)
            if seat.leaving is not None:
                self.depart(seat, seat.leaving, now)
            self.settle(now)

    def _on_faulted(self, event: events.TurnFaulted, now: float) -> None:
        turn = self._own_turn(event.session, event.turn_id)
        turn.refused = event.refused
        seat = self.roster.of_session(event.session)
        detail = f"{event.fault}: {event.detail}" if event.detail else str(event.fault)
        self.close_turn(TurnOutcome.FAILED, now, detail=detail, fault=event.fault)
        self.fail(
            seat,
            detail,
            event.prompt_sent,
            now,
            seen=event.partial_bytes,
            resets_at=event.resets_at,
            why=QUOTA_EXHAUSTED if event.fault is Fault.QUOTA else PARTICIPANT_FAILED,
        )

    def _on_alarm(self, event: events.AlarmRang, now: float) -> None:  # noqa: ARG002
        self.use_the_quiet(now)
        self.alert_if_overdue(now)
        self.settle(now)

    def _on_record_failed(self, event: events.RecordFailed, now: float) -> None:
        """The record is the debate: without it, nothing more can be said to have happened."""
        if self.state in TERMINAL:
            return
        self.turn = None
        self.overdue_at = None
        self.enter(DebateState.ERROR)
        self.reason = as_reason(event.reason)
        self.meter.hold(now)
        self._broadcast_end(DebateState.ERROR, None)

    def _on_record_delayed(self, event: events.RecordDelayed, now: float) -> None:
        """§7.3: the debate stood still, and who waited may have given up: the operator looks, and resumes."""
        self.pause(event.reason, now)

    # --- the operator and the curious ----------------------------------------------------------------

    def _on_status(self, event: events.StatusAsked, now: float) -> None:
        asker = self.roster.of_session(event.session) if event.channel is Channel.CONTROL else None
        report = status.report(self, now, asker=asker)
        self.send(event.session, report, channel=event.channel, in_reply_to=event.msg_id)

    def _on_operated(self, event: events.Operated, now: float) -> None:
        operator.carry_out(self, event.command, now)
        self.send(
            event.session,
            messages.AdminOk(operation=event.command.type),
            channel=Channel.ADMIN,
            in_reply_to=event.msg_id,
        )

    def _on_reloaded(self, event: events.Reloaded, now: float) -> None:  # noqa: ARG002
        """It has happened, whatever the state; the record of a debate that is over is closed."""
        if self.state not in TERMINAL:
            operator.note_reload(self, event)
        if event.session is not None:
            done = messages.AdminOk(operation=RELOAD)
            self.send(event.session, done, channel=Channel.ADMIN, in_reply_to=event.msg_id)

    _HANDLERS: Mapping[type, Callable[[Debate, Any, float], None]] = {
        events.SeatRegistered: _on_registered,
        events.DataBound: _on_bound,
        events.TurnAcknowledged: _on_acknowledged,
        events.SpeechReceived: _on_speech,
        events.TurnEnded: _on_ended,
        events.TurnFaulted: _on_faulted,
        events.StateUpdated: _on_updated,
        events.SeatLeft: _on_left,
        events.SeatReported: _on_reported,
        events.StatusAsked: _on_status,
        events.SessionLost: _on_lost,
        events.AlarmRang: _on_alarm,
        events.RecordFailed: _on_record_failed,
        events.RecordDelayed: _on_record_delayed,
        events.Operated: _on_operated,
        events.Reloaded: _on_reloaded,
    }


def _sent(turn: OpenTurn) -> PromptSent:
    """Whether the client had the prompt of a turn that did not end well, as far as can be known."""
    return PromptSent.YES if turn.text is not None else PromptSent.MAYBE


def _seen(turn: OpenTurn) -> int | None:
    """How much of its answer is here, in bytes. What its client had said by then, only the wrapper knows."""
    return None if turn.text is None else len(turn.text.encode())
