"""The running count behind `council.summary`: one record after the other. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from consilium.messages import DebateState
from consilium.records import EventName, EventRecord, HeaderRecord, Stored, TurnOutcome, TurnRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

HUMAN = "human"


@dataclass(slots=True)
class SeatTally:
    """What is known of one seat so far. ``spoke_at`` counts the debate's turns, this one included."""

    meta: dict[str, str | None] = field(default_factory=dict)
    pseudonym: str | None = None
    required: bool | None = None
    present: bool = True
    outcomes: Counter[TurnOutcome] = field(default_factory=Counter)
    tokens: int | None = None
    unknown: int = 0
    usd: float | None = None
    spoke_at: int | None = None
    fault: str | None = None

    def describe(self, meta: Mapping[str, object]) -> None:
        """Take what ``meta`` says; keep what it does not say."""
        self.meta |= {key: value for key, value in meta.items() if isinstance(value, str)}

    @property
    def human(self) -> bool:
        """A person's turn costs no tokens: that it reports none leaves nothing unknown."""
        return HUMAN in (self.meta.get("brand"), self.meta.get("adapter"))


class Clock:
    """Time that ran and time that was paused, between records."""

    def __init__(self) -> None:
        self.ran = 0.0
        self.paused = 0.0
        self.began: str | None = None
        self.updated: str | None = None
        self._now = 0.0
        self._running: bool | None = None

    def tick(self, ts: str, *, counts: bool) -> None:
        """Move on to ``ts``. What lies behind counts unless the Arbiter was away."""
        try:
            now = datetime.fromisoformat(ts).timestamp()
        except ValueError:
            return
        passed = max(0.0, now - self._now) if self.updated else 0.0
        if counts and self._running:
            self.ran += passed
        elif self._running is not None:
            self.paused += passed
        self._now, self.updated = now, ts

    def set(self, *, running: bool | None) -> None:
        """From here on it runs, is paused, or (None) is over."""
        if running and self.began is None:
            self.began = self.updated
        self._running = running


_STATES = {
    EventName.DEBATE_STARTED: DebateState.RUNNING,
    EventName.DEBATE_PAUSED: DebateState.PAUSED,
    EventName.DEBATE_RESUMING: DebateState.RESUMING,
    EventName.DEBATE_RESUMED: DebateState.RUNNING,
}
_OUTCOMES = ("FINISHED", "STOPPED_BY_CAP", "ERROR")


class Tally:
    """Takes the records one by one; its attributes say where the debate stands after the last."""

    def __init__(self) -> None:
        self.header: HeaderRecord | None = None
        self.topic = ""
        self.state = DebateState.WAITING_QUORUM
        self.reason: str | None = None
        self.cap: str | None = None
        self.phases: list[str] = []
        self.rounds = 0
        self.speaking: str | None = None
        self.turns = 0
        self.seats: dict[str, SeatTally] = {}
        self.clock = Clock()

    def take(self, record: Stored) -> None:
        """Count ``record``, which follows on those before."""
        entry = record.entry
        restarted = isinstance(entry, EventRecord) and entry.event is EventName.ARBITER_RESTARTED
        self.clock.tick(record.ts, counts=not restarted)
        if isinstance(entry, HeaderRecord):
            self.header, self.topic = entry, entry.topic
        elif isinstance(entry, TurnRecord):
            self._turn(entry)
        else:
            self._event(entry)

    def _turn(self, turn: TurnRecord) -> None:
        self.turns += 1
        self.speaking = None
        self._phase(turn.phase.value)
        seat = self._seat(turn.participant_id)
        seat.describe(turn.meta.model_dump())
        seat.outcomes[turn.outcome] += 1
        if turn.outcome is TurnOutcome.SPEECH:
            seat.spoke_at = self.turns
            seat.fault = None
        tokens = _tokens(turn)
        if tokens is not None:
            seat.tokens = (seat.tokens or 0) + tokens
        elif not seat.human:  # a client that passes was asked all the same
            seat.unknown += 1
        if turn.usage is not None and turn.usage.usd is not None:
            seat.usd = (seat.usd or 0.0) + turn.usage.usd

    def _event(self, entry: EventRecord) -> None:
        data = entry.data
        if entry.event in _STATES:
            self._enter(_STATES[entry.event], _text(data, "reason"))
        if entry.participant_id is not None:
            self._seat_event(entry.event, self._seat(entry.participant_id), data)
        match entry.event:
            case EventName.DEBATE_ENDED:
                self._ended(data)
            case EventName.ARBITER_RESTARTED:
                self._restarted()
            case EventName.DEBATE_STARTED | EventName.PHASE_CHANGED:
                self._phase(_text(data, "phase"))
            case EventName.TOPIC_CHANGED:
                self.topic = _text(data, "topic") or self.topic
            case EventName.ROUND_COMPLETED:
                self.rounds += 1
            case EventName.TURN_STARTED:
                self.speaking = entry.participant_id

    def _seat_event(self, event: EventName, seat: SeatTally, data: Mapping[str, JsonValue]) -> None:
        match event:
            case EventName.PARTICIPANT_JOINED | EventName.PARTICIPANT_JOINED_COLD:
                seat.present = True
                self._described(seat, data)
            case EventName.PARTICIPANT_UPDATED:
                self._described(seat, data)
            case EventName.PARTICIPANT_FAULT:
                seat.fault = _text(data, "reason") or "failed"
            case EventName.PARTICIPANT_LEFT:
                seat.present = False

    def _described(self, seat: SeatTally, data: Mapping[str, JsonValue]) -> None:
        meta, required = data.get("meta"), data.get("required")
        seat.describe(meta if isinstance(meta, dict) else {})
        seat.pseudonym = _text(data, "pseudonym") or seat.pseudonym
        seat.required = required if isinstance(required, bool) else seat.required

    def _enter(self, state: DebateState, reason: str | None) -> None:
        self.state = state
        self.reason = reason or self.reason
        if state is DebateState.RUNNING:
            self.reason = None
            for seat in self.seats.values():
                seat.fault = None  # the operator has looked at each, and chosen (§7.3)
        self.clock.set(running=state is DebateState.RUNNING)

    def _restarted(self) -> None:
        """A debate that ran is paused by the restart of its Arbiter; one that did not is as it was."""
        if self.state in (DebateState.RUNNING, DebateState.RESUMING):
            self._enter(DebateState.PAUSED, "the Arbiter was restarted")
            self.speaking = None

    def _ended(self, data: Mapping[str, JsonValue]) -> None:
        outcome = _text(data, "outcome")
        self.state = DebateState(outcome) if outcome in _OUTCOMES else DebateState.FINISHED
        self.reason = _text(data, "reason")
        self.cap = _text(data, "cap")
        self.speaking = None
        self.clock.set(running=None)

    def _phase(self, phase: str | None) -> None:
        if phase and self.phases[-1:] != [phase]:
            self.phases.append(phase)

    def _seat(self, participant_id: str) -> SeatTally:
        return self.seats.setdefault(participant_id, SeatTally())


def _tokens(turn: TurnRecord) -> int | None:
    """Tokens in and out of one turn; None where the client reported neither."""
    known = [count for count in (turn.tokens or {}).values() if count is not None]
    return sum(known) if known else None


def _text(data: Mapping[str, JsonValue], key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) and value else None
