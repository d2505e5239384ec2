"""The moves that a debate can make: assign, close, pause, finish. `machine` says when.

A move checks nothing that an event handler has to check; it keeps the state true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arbiter.debate.delta import MODERATOR, Contribution
from arbiter.debate.effects import Append, Channel, Effect
from arbiter.debate.policy import POLICIES, Floor, named_in
from arbiter.debate.roster import Seat, Standing
from arbiter.debate.stage import Stage
from arbiter.debate.turn import OpenTurn
from consilium import messages
from consilium.config import TurnPolicy
from consilium.messages import DebateState, Fault, Phase, PromptSent, as_reason
from consilium.records import EventName, EventRecord, TurnOutcome, TurnRecord

if TYPE_CHECKING:
    from arbiter.debate.caps import Reached

COMPLETED = frozenset({TurnOutcome.SPEECH, TurnOutcome.SKIP})
"""The outcomes after which a seat has heard its delta: its cursor moves."""

PARTICIPANT_FAILED = "participant_failed"
"""Why a debate is paused whose seat cannot go on."""

QUIET_SECONDS = 0.05
"""How long nothing has been said when turns are scored: with clients and people that is nearly always."""


def _first(*times: float | None) -> float | None:
    return min((at for at in times if at is not None), default=None)


class Flow(Stage):
    """A debate that can be moved."""

    def next_deadline(self) -> float | None:
        """When `events.AlarmRang` is due, if ever."""
        if self.state is DebateState.RUNNING and self.turn is None:
            return _first(self.meter.time_is_up_at(), self._quiet_at)
        return _first(None if self.turn is None else self.turn.deadline, self.overdue_at, self._quiet_at)

    # --- the open turn -------------------------------------------------------------------------------

    def revoke(self, now: float, reason: str) -> None:
        """Take the open turn back, on an operator's word."""
        turn = self.turn
        assert turn is not None
        seat = self.seat_of(turn)
        self.close_turn(TurnOutcome.FORCED, now, detail=reason)
        self._send_revoked(seat, turn, reason)

    def _send_revoked(self, seat: Seat, turn: OpenTurn, reason: str) -> None:
        assert seat.session is not None, "a seat that is lost or leaves has no open turn"
        self.send(seat.session, messages.TurnRevoked(turn_id=turn.turn_id, reason=reason))

    def close_turn(
        self, outcome: TurnOutcome, now: float, *, detail: str | None = None, fault: Fault | None = None
    ) -> None:
        """End the open turn, once and for all; record it, and say what was said."""
        turn = self.turn
        assert turn is not None
        self.turn = None
        seat = self.seat_of(turn)
        text = turn.text if outcome is TurnOutcome.SPEECH else None
        usage = turn.usage
        tokens: Any = None if usage is None else {"in": usage.tokens_in, "out": usage.tokens_out}
        self._effects.append(
            Append(
                TurnRecord(
                    turn_id=turn.turn_id,
                    participant_id=seat.participant_id,
                    phase=turn.phase,
                    outcome=outcome,
                    meta=seat.meta,
                    tokens=tokens,
                    usage=usage,
                    duration_s=round(now - turn.started, 3),
                    text=text,
                    detail=detail,
                    fault=fault,
                    refused=turn.refused,
                )
            )
        )
        self._last = seat.order
        if outcome in COMPLETED:
            seat.cursor = turn.heard
            seat.charge(turn.turn_id, usage)
            self._had_turn.add(seat.participant_id)
        # A client that passes was asked all the same; a person's turn takes no tokens.
        if usage is not None or not seat.is_person:
            self.meter.charge(usage, text)
        if text is not None:
            self._say(seat, turn, text, now)

    def catch_up(self, turns: int) -> None:
        """Score what has been said and not been scored yet, ``turns`` of it at most."""
        for _ in range(min(turns, len(self._unread))):
            self._unread.popleft().read()
        if not self._unread:
            self._quiet_at = None

    def use_the_quiet(self, now: float) -> None:
        """Score one turn, if nothing has been said for a while: whoever speaks now need not wait for it."""
        if self._quiet_at is not None and now >= self._quiet_at:
            self.catch_up(1)

    def _say(self, seat: Seat, turn: OpenTurn, text: str, now: float) -> None:
        seat.said.add(turn.turn_id, text)
        self._unread.append(seat.said)
        self._quiet_at = now + QUIET_SECONDS
        seat.drift.hear(text)
        seat.last_speech = turn.turn_id
        if self.council.turn_policy is TurnPolicy.MOST_RECENTLY_CONTRADICTED:
            self._named = (*self._named, *named_in(text, seat, self.roster.joined()))[-64:]
        contribution = Contribution(seat.participant_id, text, seat.pseudonym, seat.meta.role_label)
        if self.council.opening == "sealed" and turn.phase is Phase.OPENING is self.phase:
            self.discourse.seal(contribution)
        else:
            self.discourse.publish(contribution)

    def skip(self, seat: Seat, *, gone: bool = False) -> None:
        """Count the seat's turn in this round as had, on the operator's word.

        No policy chooses the seat again before the round is complete; NEXT still may call it. ``gone``: the
        debate also goes on without the seat, until that comes back by itself.
        """
        self._had_turn.add(seat.participant_id)
        self._passed_over.add(seat.participant_id)
        if gone:
            seat.standing = Standing.ABSENT
            seat.required = False

    # --- what follows from what happened -------------------------------------------------------------

    def settle(self, now: float) -> None:
        """Bring the debate to rest: quorum, end of round, caps, next speaker."""
        if self.state is DebateState.WAITING_QUORUM and self.roster.quorum():
            self.enter(DebateState.READY)
        if self.state is DebateState.READY:
            if not self.roster.quorum():
                self.enter(DebateState.WAITING_QUORUM)
            elif self.council.roster.awaited:
                self.start(now)
        if self.state is DebateState.RESUMING and not self.reviving:
            self.resumed(now)
        if self.state is DebateState.RUNNING and self.turn is None:
            self._advance(now)

    def start(self, now: float) -> None:
        """READY to RUNNING."""
        self.enter(DebateState.RUNNING)
        self.meter.run(now)
        self.record(EventName.DEBATE_STARTED, None, phase=self.phase.value)

    def resumed(self, now: float) -> None:
        """To RUNNING, after a pause."""
        self.enter(DebateState.RUNNING)
        self.overdue_at = None
        self.meter.run(now)
        self.record(EventName.DEBATE_RESUMED, None, turn_counter=self.turn_counter)
        self.broadcast(messages.DebateResumed(turn_counter=self.turn_counter))

    def _advance(self, now: float) -> None:
        """Assign the next turn, unless a round, a cap or nobody to speak stands before it."""
        rotation = self.roster.rotation()
        if rotation and self._had_turn and all(seat.participant_id in self._had_turn for seat in rotation):
            self._complete_round(now)
        speaker = self._choose(rotation)
        if speaker is not None and speaker.participant_id in self._had_turn:
            self._complete_round(now)
        if self.state is not DebateState.RUNNING:
            return
        reached = self.meter.reached(now)
        if reached is not None:
            self._stop_by_cap(reached, now)
        elif not rotation:
            self.pause("nobody_to_speak", now)
        elif speaker is not None:
            self._assign(speaker, now)

    def _choose(self, rotation: list[Seat]) -> Seat | None:
        if not rotation:
            return None
        called = self.schedule.next_speaker
        for seat in rotation:
            if seat.participant_id == called:
                return seat
        # Never nobody: once all of the rotation had their turn, or were passed over, a new round has begun.
        eligible = tuple(seat for seat in rotation if seat.participant_id not in self._passed_over)
        floor = Floor(eligible, self._last, self._named)
        return POLICIES[self.council.turn_policy](floor)

    def _assign(self, seat: Seat, now: float) -> None:
        assert seat.session is not None
        self.turn_counter += 1
        if self.schedule.next_speaker == seat.participant_id:
            self.schedule.next_speaker = None
        limit = self.council.limits.turn_seconds
        portion = self.discourse.portion(seat.cursor, seat.participant_id)
        self.turn = OpenTurn(
            turn_id=self.turn_counter,
            participant_id=seat.participant_id,
            phase=self.phase,
            started=now,
            deadline=now + limit,
            heard=portion.heard,
        )
        deadline_ms = int(limit * 1000)
        self._effects.append(
            Append(
                EventRecord(
                    event=EventName.TURN_STARTED,
                    participant_id=seat.participant_id,
                    turn_id=self.turn_counter,
                    data={"phase": self.phase.value, "deadline_ms": deadline_ms},
                )
            )
        )
        self.send(
            seat.session,
            messages.TurnStart(turn_id=self.turn_counter, phase=self.phase, deadline_ms=deadline_ms),
        )
        self.send(
            seat.session,
            messages.Context(
                turn_id=self.turn_counter,
                phase=self.phase,
                topic=self.topic,
                delta=self._delta(portion.told),
                waiting=portion.waiting,
            ),
            channel=Channel.DATA,
        )

    def _delta(self, told: tuple[Contribution, ...]) -> tuple[messages.DeltaEntry, ...]:
        named, role_shown = self.council.identity_visible, self.council.role_visible
        return tuple(
            messages.DeltaEntry(
                speaker=said.speaker if named else said.pseudonym,
                role_label=said.role_label if role_shown or said.speaker == MODERATOR else None,
                text=said.text,
            )
            for said in told
        )

    def _complete_round(self, now: float) -> None:
        phase, terminate = self.end_round()
        self.record(EventName.ROUND_COMPLETED, None, round=self.meter.rounds)
        if phase not in (None, self.phase):
            self.change_phase(phase)
        if terminate is not None:
            self.finish(DebateState.FINISHED, now, reason=terminate)

    def end_round(self) -> tuple[Phase | None, str | None]:
        """Count a round as complete; return what the operator ordered for its end."""
        self._had_turn = set()
        self._passed_over = set()
        self.meter.rounds += 1
        self.discourse.release()
        return self.schedule.take_round_end(self.meter.rounds)

    def change_phase(self, phase: Phase) -> None:
        """§13.3: from the next turn on. What was sealed is released: the opening is over."""
        previous, self.phase = self.phase, phase
        self.record(EventName.PHASE_CHANGED, None, phase=phase.value, previous=previous.value)
        self.discourse.release()

    # --- pause and end -------------------------------------------------------------------------------

    def fail(
        self,
        seat: Seat,
        reason: str,
        prompt_sent: PromptSent | None,
        now: float,
        *,
        seen: int | None = None,
        resets_at: str | None = None,
        why: str = PARTICIPANT_FAILED,
    ) -> None:
        """Mark a seat as faulty and pause (§7.3), ``why`` in a word.

        ``seen`` is how many bytes of an answer there were, ``resets_at`` when its quota comes back.
        """
        self._mark(seat, reason, prompt_sent, seen, resets_at)
        self.pause(why, now, missing=[seat], resets_at=resets_at)

    def _mark(
        self,
        seat: Seat,
        reason: str,
        prompt_sent: PromptSent | None,
        seen: int | None = None,
        resets_at: str | None = None,
    ) -> None:
        seat.standing = Standing.FAULTY
        seat.fault = as_reason(reason)
        seat.prompt_sent = prompt_sent
        seat.partial_bytes = seen
        seat.resets_at = resets_at
        self.reviving.discard(seat.participant_id)
        sent = None if prompt_sent is None else prompt_sent.value
        self.record(
            EventName.PARTICIPANT_FAULT,
            seat,
            reason=reason,
            prompt_sent=sent,
            partial_bytes=seen,
            resets_at=resets_at,
        )

    def depart(self, seat: Seat, reason: str, now: float) -> None:
        """Let a seat go by its own choice (§8). That is no fault, but a required seat's absence pauses."""
        assert seat.session is not None
        if seat.joined:
            self.record(EventName.PARTICIPANT_LEFT, seat, reason=reason, by="choice")
        self.end_session(seat.session, "left")
        self.roster.depart(seat)
        self.reviving.discard(seat.participant_id)
        if seat.required and seat.joined and self.has_started:
            self.pause("missing_required_participant", now, missing=[seat])

    def pause(
        self, reason: str, now: float, *, missing: list[Seat] | None = None, resets_at: str | None = None
    ) -> None:
        """Assign no further turn. An open turn may finish within its own deadline."""
        if self.state not in (DebateState.RUNNING, DebateState.RESUMING):
            return
        self.enter(DebateState.PAUSED)
        self._hold(reason, missing or [], now, resets_at)

    def _hold(self, reason: str, missing: list[Seat], now: float, resets_at: str | None = None) -> None:
        self.state = DebateState.PAUSED
        self.reason = reason = as_reason(reason)
        self.reviving = set()
        self.meter.hold(now)
        patience = self.council.limits.max_pause_seconds
        self.overdue_at = None if patience is None else now + patience
        concerned = [seat.participant_id for seat in missing]
        self.record(EventName.DEBATE_PAUSED, None, reason=reason, seats=list(concerned), resets_at=resets_at)
        for seat in self.roster:
            if seat.session is not None:
                # Decision 9: in a blind debate nobody is told whose turn it was that failed.
                told = concerned if self.council.identity_visible else {seat.participant_id} & set(concerned)
                back = resets_at if told else None  # in the words of that seat's client
                paused = messages.DebatePaused(reason=reason, missing=tuple(told), resets_at=back)
                self.send(seat.session, paused)

    def restart(self, reason: str, now: float) -> list[Effect]:
        """Take up a debate whose Arbiter is back and whose connections are gone; return what to record."""
        self._effects = []
        self.record(EventName.ARBITER_RESTARTED, None)
        lost = None if self.turn is None else self.seat_of(self.turn)
        if lost is not None:
            self.close_turn(TurnOutcome.LOST, now, detail=reason)
        for seat in self.roster.joined() if self.has_started else ():
            if seat.standing is Standing.ACTIVE:
                self._mark(seat, reason, PromptSent.MAYBE if seat is lost else None)
        if self.state in (DebateState.RUNNING, DebateState.PAUSED):
            self._hold(reason, self.roster.troubled(), now)
        return self._effects

    def alert_if_overdue(self, now: float) -> None:
        """Say once that a pause has lasted longer than the operator wanted. It changes nothing (§7.3)."""
        if self.overdue_at is not None and now >= self.overdue_at:
            self.overdue_at = None
            self.record(EventName.PAUSE_OVERDUE, None, after_s=self.council.limits.max_pause_seconds)

    def _stop_by_cap(self, reached: Reached, now: float) -> None:
        self.record(
            EventName.CAP_REACHED, None, cap=reached.cap, used=round(reached.used, 3), limit=reached.limit
        )
        self.finish(DebateState.STOPPED_BY_CAP, now, reason="cap_reached", cap=reached.cap)

    def finish(self, outcome: DebateState, now: float, *, reason: str, cap: str | None = None) -> None:
        """End the debate (§5.4, §7.3)."""
        if self.turn is not None:
            self.revoke(now, "debate_ended")
        self.enter(outcome)
        self.reason = reason
        self.overdue_at = None
        self.meter.hold(now)
        self.discourse.release()
        self.record(
            EventName.DEBATE_ENDED,
            None,
            outcome=outcome.value,
            cap=cap,
            reason=reason,
            turn_counter=self.turn_counter,
        )
        self._broadcast_end(outcome, cap)

    def _broadcast_end(self, outcome: Any, cap: str | None) -> None:
        self.broadcast(messages.DebateEnded(outcome=outcome, cap=cap, turn_counter=self.turn_counter))
