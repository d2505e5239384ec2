"""What a debate is between two events, and how it says what shall be done. `flow` moves it.

Records come before the messages that follow from them; the shell keeps that order on disk and wire.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from arbiter.debate.caps import Meter
from arbiter.debate.delta import Discourse
from arbiter.debate.effects import Append, Channel, Effect, EndSession, Send
from arbiter.debate.roster import Roster
from arbiter.debate.schedule import Schedule
from arbiter.debate.states import TRANSITIONS
from consilium.messages import DebateState, Phase
from consilium.records import EventName, EventRecord, HeaderRecord

if TYPE_CHECKING:
    from arbiter.debate.repetition import Repetition
    from arbiter.debate.roster import Seat
    from arbiter.debate.turn import OpenTurn
    from consilium.config import Council
    from consilium.messages import Message


class Stage:
    """Everything a debate is, between two events."""

    def __init__(self, debate_id: str, council: Council, *, arbiter: str) -> None:
        """``arbiter`` names the Arbiter's certificate (its fingerprint) in the record."""
        self.debate_id = debate_id
        self.arbiter = arbiter
        self.council = council
        self.topic = council.topic
        self.state = DebateState.WAITING_QUORUM
        self.reason: str | None = None
        self.phase = Phase.OPENING
        self.turn_counter = 0
        self.roster = Roster(council.roster, council.limits.max_seats)
        self.discourse = Discourse()
        self.meter = Meter(council.caps)
        self.turn: OpenTurn | None = None
        self.schedule = Schedule()
        self.overdue_at: float | None = None
        self.reviving: set[str] = set()
        self._had_turn: set[str] = set()
        self._passed_over: set[str] = set()
        self._last = -1
        self._named: tuple[str, ...] = ()
        self._unread: deque[Repetition] = deque()
        self._quiet_at: float | None = None
        self._effects: list[Effect] = []

    def open(self) -> list[Effect]:
        """Return what starts the record. Call once, before anything else."""
        rules = self.council.model_dump(mode="json", exclude={"topic", "participants"})
        return [
            Append(
                HeaderRecord(debate_id=self.debate_id, topic=self.topic, council=rules, arbiter=self.arbiter)
            )
        ]

    @property
    def has_started(self) -> bool:
        """Whether a first turn was due: from here on, a newcomer enters cold and a loss pauses."""
        return self.state not in (DebateState.WAITING_QUORUM, DebateState.READY)

    def seat_of(self, turn: OpenTurn) -> Seat:
        """Return the seat whose turn it is."""
        seat = self.roster.known(turn.participant_id)
        assert seat is not None, "a seat that is lost or leaves has no open turn"
        return seat

    def record(self, event: EventName, seat: Seat | None, **data: Any) -> None:
        """Put an event on the record."""
        participant_id = None if seat is None else seat.participant_id
        visible = event is EventName.MODERATOR_STEERING
        self._effects.append(
            Append(EventRecord(event=event, participant_id=participant_id, visible=visible, data=data))
        )

    def send(
        self,
        session: str,
        message: Message,
        *,
        channel: Channel = Channel.CONTROL,
        in_reply_to: str | None = None,
    ) -> None:
        """Send a message to one session."""
        self._effects.append(Send(session, channel, message, in_reply_to))

    def broadcast(self, message: Message) -> None:
        """Send a message to every connected seat."""
        for session in self.roster.sessions():
            self.send(session, message)

    def end_session(self, session: str, reason: str) -> None:
        """Close a session, after what is queued for it."""
        self._effects.append(EndSession(session, reason))

    def enter(self, state: DebateState) -> None:
        """Change the state, along `TRANSITIONS`."""
        assert state in TRANSITIONS[self.state], f"{self.state} -> {state}"
        self.state = state
        self.reason = None
