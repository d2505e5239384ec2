"""A debate rebuilt from its record, after the Arbiter that held it is gone (architecture page, "Durability").

1. What the record says has happened; what it does not say has not. No turn is run twice: one that was open is
   closed as lost, and its seat is the operator's to decide on.
2. Connections do not survive. Every seat that had joined is waited for, and the debate is PAUSED until the
   operator resumes: reconnection alone never does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arbiter.debate.delta import MODERATOR, Contribution
from arbiter.debate.machine import Debate
from arbiter.debate.roster import Seat, Standing
from arbiter.debate.turn import OpenTurn
from consilium.config import Council
from consilium.errors import PeerError, TranscriptError
from consilium.messages import DebateState, DisconnectPolicy, Meta, Phase, PromptSent, Recovery
from consilium.records import EventName, EventRecord, HeaderRecord, TurnRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from consilium.records import AnyEntry

RESTARTED = "arbiter_restarted"
"""Why a debate is paused after its Arbiter came back, and what the fault of every seat then is."""


def restore(header: HeaderRecord, told: Iterable[tuple[float, AnyEntry]]) -> Debate:
    """Rebuild the debate that ``header`` opens from what follows it, as (seconds, entry) in order.

    The seconds are of any one clock; only their differences count. `Flow.restart` then says what is still
    to be recorded. Raises `TranscriptError` when the record does not tell a debate.
    """
    try:
        council = Council(topic=header.topic, **_rules(header))
        debate = Debate(header.debate_id, council, arbiter=header.arbiter)
        narrator = _Narrator(debate)
        at = 0.0
        for at, entry in told:
            narrator.hear(entry, at)
    except (KeyError, TypeError, ValueError, PeerError) as nonsense:
        raise TranscriptError(f"the record tells no debate: {nonsense}") from nonsense
    debate.meter.hold(at)
    return debate


def _rules(header: HeaderRecord) -> dict[str, Any]:
    return {key: value for key, value in header.council.items() if value is not None}


Data = dict[str, Any]


class _Narrator:
    """Retells a record to a debate that has no connections."""

    def __init__(self, debate: Debate) -> None:
        self._debate = debate

    def hear(self, entry: AnyEntry, at: float) -> None:
        """Let what ``entry`` says have happened, at ``at``."""
        if isinstance(entry, TurnRecord):
            self._turn_ended(entry, at)
        elif isinstance(entry, EventRecord):
            handler = self._HANDLERS.get(entry.event)
            if handler is not None:
                handler(self, entry, dict(entry.data), at)
        else:
            raise TranscriptError("a second header stands in the record")

    def _turn_ended(self, entry: TurnRecord, at: float) -> None:
        turn = self._debate.turn
        if turn is None or turn.turn_id != entry.turn_id:
            raise TranscriptError(f"turn {entry.turn_id} ends without having begun")
        turn.text, turn.usage = entry.text, entry.usage
        self._debate.close_turn(entry.outcome, at)

    def _seat(self, entry: EventRecord) -> Seat:
        return self._debate.roster.resolve(str(entry.participant_id))

    def _joined(self, entry: EventRecord, data: Data, _at: float) -> None:
        roster, participant_id = self._debate.roster, str(entry.participant_id)
        seat = roster.known(participant_id)
        meta = Meta.model_validate(data["meta"])
        policy = DisconnectPolicy(data["disconnect_policy"])
        if seat is None:
            seat = Seat(participant_id, data["name"], meta, data["required"], policy)
            roster.place(seat, self._debate.discourse.position)
        if seat.standing is Standing.ABSENT:
            seat.standing = Standing.ACTIVE

    def _updated(self, entry: EventRecord, data: Data, _at: float) -> None:
        seat = self._seat(entry)
        seat.required = data["required"]
        seat.disconnect_policy = DisconnectPolicy(data["disconnect_policy"])
        seat.meta = Meta.model_validate(data["meta"])

    def _left(self, entry: EventRecord, data: Data, _at: float) -> None:
        match data["by"]:
            case "choice":
                self._debate.roster.depart(self._seat(entry))
            case "operator":
                self._debate.roster.ban(str(entry.participant_id))

    def _failed(self, entry: EventRecord, data: Data, _at: float) -> None:
        seat, sent = self._seat(entry), data["prompt_sent"]
        seat.standing, seat.fault = Standing.FAULTY, data["reason"]
        seat.prompt_sent = None if sent is None else PromptSent(sent)
        seat.partial_bytes, seat.resets_at = data.get("partial_bytes"), data.get("resets_at")

    def _recovered(self, entry: EventRecord, data: Data, _at: float) -> None:
        seat = self._seat(entry)
        seat.heal()
        if data["choice"] == Recovery.SKIP:
            self._debate.skip(seat, gone=data["gone"])
        elif data["again"]:
            self._debate.schedule.next_speaker = seat.participant_id

    def _turn_started(self, entry: EventRecord, data: Data, at: float) -> None:
        debate, seat = self._debate, self._seat(entry)
        debate.turn_counter = int(entry.turn_id or 0)
        if debate.schedule.next_speaker == seat.participant_id:
            debate.schedule.next_speaker = None
        debate.turn = OpenTurn(
            turn_id=debate.turn_counter,
            participant_id=seat.participant_id,
            phase=Phase(data["phase"]),
            started=at,
            deadline=at,
            heard=debate.discourse.portion(seat.cursor, seat.participant_id).heard,
        )

    def _round_completed(self, _entry: EventRecord, _data: Data, _at: float) -> None:
        self._debate.end_round()

    def _phase_changed(self, _entry: EventRecord, data: Data, _at: float) -> None:
        self._debate.phase = Phase(data["phase"])
        self._debate.discourse.release()

    def _topic_changed(self, _entry: EventRecord, data: Data, _at: float) -> None:
        self._debate.topic = data["topic"]

    def _steered(self, _entry: EventRecord, data: Data, _at: float) -> None:
        self._debate.discourse.publish(Contribution(MODERATOR, data["text"]))

    def _commanded(self, entry: EventRecord, data: Data, _at: float) -> None:
        """What an order did at once stands in the records after it; what it left for later does not."""
        schedule, due = self._debate.schedule, data.get("round")
        match data["operation"]:
            case "SET_PHASE" if due is not None:
                schedule.phases[due] = Phase(data["phase"])
            case "TERMINATE" if due is not None:
                schedule.endings[due] = data["reason"]
            case "NEXT":
                schedule.next_speaker = entry.participant_id
            case "FORCE_TURN_END":
                self._debate.skip(self._seat(entry))

    def _ran(self, _entry: EventRecord, _data: Data, at: float) -> None:
        self._debate.state, self._debate.reason = DebateState.RUNNING, None
        self._debate.meter.run(at)

    def _paused(self, _entry: EventRecord, data: Data, at: float) -> None:
        self._debate.state, self._debate.reason = DebateState.PAUSED, data.get("reason")
        self._debate.meter.hold(at)

    def _ended(self, _entry: EventRecord, data: Data, at: float) -> None:
        self._debate.state, self._debate.reason = DebateState(data["outcome"]), data["reason"]
        self._debate.discourse.release()
        self._debate.meter.hold(at)

    _HANDLERS: Mapping[EventName, Callable[[_Narrator, EventRecord, Data, float], None]] = {
        EventName.PARTICIPANT_JOINED: _joined,
        EventName.PARTICIPANT_JOINED_COLD: _joined,
        EventName.PARTICIPANT_UPDATED: _updated,
        EventName.PARTICIPANT_LEFT: _left,
        EventName.PARTICIPANT_FAULT: _failed,
        EventName.PARTICIPANT_RECOVERED: _recovered,
        EventName.TURN_STARTED: _turn_started,
        EventName.ROUND_COMPLETED: _round_completed,
        EventName.PHASE_CHANGED: _phase_changed,
        EventName.TOPIC_CHANGED: _topic_changed,
        EventName.MODERATOR_STEERING: _steered,
        EventName.OPERATOR_COMMAND: _commanded,
        EventName.DEBATE_STARTED: _ran,
        EventName.DEBATE_RESUMED: _ran,
        EventName.DEBATE_PAUSED: _paused,
        EventName.DEBATE_RESUMING: _paused,
        EventName.DEBATE_ENDED: _ended,
    }


UNMOVED = frozenset(EventName) - _Narrator._HANDLERS.keys()  # noqa: SLF001 - of this module
"""The events that leave the debate as it was: what they tell has its own records, or concerns nobody here."""
