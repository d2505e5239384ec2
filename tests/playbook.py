"""A debate told in the domain's words: what happened, then what the core did about it.

    play = Playbook()
    ada, bob, cyn = play.everybody_joins()
    play.speaks(ada, "First.")
    assert play.speaking == bob

Seats are named by their session, which is their name; time stands still until `after`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from arbiter.debate import Debate, events
from arbiter.debate.effects import Append, Channel, Effect, EndSession, Refuse, Send
from consilium.config import Council
from consilium.messages import (
    Context,
    DebateState,
    DisconnectPolicy,
    Fault,
    Message,
    Meta,
    PromptSent,
    StatusRequest,
    TurnStart,
    Usage,
)
from consilium.records import EventName, EventRecord, TurnRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arbiter.debate.events import Command, Event
    from arbiter.debate.roster import Seat

MessageT = TypeVar("MessageT", bound=Message)

SUFFIX = "AB12CD34"
NAMES = ("ada", "bob", "cyn")


def participant(name: str) -> str:
    """The participant id of a seat in a playbook."""
    return f"{name}_{SUFFIX}"


def council(names: Sequence[str] = NAMES, **changes: Any) -> Council:
    """A council file with one seat a name, generous caps, and the given changes."""
    fields: dict[str, Any] = {
        "topic": "Should we rewrite the billing service or wrap it?",
        "participants": [{"name": name} for name in names],
        "caps": {"max_rounds": 100},
        "opening": "open",
    }
    return Council(**fields | changes)


class Playbook:
    """One debate, its clock, and everything that it ever did."""

    def __init__(self, names: Sequence[str] = NAMES, **changes: Any) -> None:
        self.names = tuple(names)
        self.debate = Debate("debate-1", council(names, **changes), arbiter="sha256:aa")
        self.now = 1000.0
        self.effects: list[Effect] = list(self.debate.open())
        self.latest: list[Effect] = list(self.effects)
        self._messages = 0

    # --- what happens ---------------------------------------------------------------------------------

    def happens(self, event: Event) -> list[Effect]:
        """Feed any event; return what was done about it."""
        self.latest = self.debate.handle(event, self.now)
        self.effects += self.latest
        return self.latest

    def _id(self) -> str:
        self._messages += 1
        return f"m-{self._messages}"

    def registers(self, name: str, session: str | None = None, **changes: Any) -> str:
        """REG; the session is called like the name unless told otherwise."""
        session = session or name
        fields: dict[str, Any] = {
            "session": session,
            "msg_id": self._id(),
            "participant_id": participant(name),
            "name": name,
            "required": False,
            "disconnect_policy": DisconnectPolicy.KEEP_ALIVE,
            "meta": Meta(brand="test", role_label=f"role of {name}"),
            "data_token": "token",
        }
        self.happens(events.SeatRegistered(**fields | changes))
        return session

    def binds(self, session: str) -> list[Effect]:
        """DATA_HELLO with the right token."""
        return self.happens(events.DataBound(session, self._id()))

    def joins(self, name: str, session: str | None = None, **changes: Any) -> str:
        """REG and DATA_HELLO."""
        session = self.registers(name, session, **changes)
        self.binds(session)
        return session

    def everybody_joins(self) -> tuple[str, ...]:
        """Every planned seat joins, in the order of the plan."""
        return tuple(self.joins(name) for name in self.names)

    def says(
        self, session: str, text: str, usage: Usage | None = None, turn: int | None = None
    ) -> list[Effect]:
        """SPEECH, for the open turn unless told otherwise."""
        turn_id = self.turn if turn is None else turn
        return self.happens(events.SpeechReceived(session, self._id(), turn_id, text, usage))

    def ends(
        self,
        session: str,
        *,
        speech: bool = False,
        turn: int | None = None,
        usage: Usage | None = None,
        refused: tuple[str, ...] = (),
    ) -> list[Effect]:
        """TURN_END, for the open turn unless told otherwise."""
        turn_id = self.turn if turn is None else turn
        return self.happens(events.TurnEnded(session, self._id(), turn_id, speech, usage, refused))

    def acknowledges(self, session: str, turn: int | None = None) -> list[Effect]:
        """ACK."""
        turn_id = self.turn if turn is None else turn
        return self.happens(events.TurnAcknowledged(session, self._id(), turn_id))

    def speaks(self, session: str, text: str, usage: Usage | None = None) -> list[Effect]:
        """ACK, SPEECH, TURN_END (§6.1); returns what the last one led to."""
        turn = self.turn
        self.acknowledges(session, turn)
        self.says(session, text, usage, turn)
        return self.ends(session, speech=True, turn=turn)

    def skips(self, session: str) -> list[Effect]:
        """ACK, TURN_END (§6.2)."""
        self.acknowledges(session)
        return self.ends(session)

    def fails(
        self,
        session: str,
        sent: PromptSent = PromptSent.MAYBE,
        partial_bytes: int | None = None,
        *,
        fault: Fault = Fault.CLIENT_ERROR,
        resets_at: str | None = None,
        refused: tuple[str, ...] = (),
    ) -> list[Effect]:
        """TURN_FAILED."""
        return self.happens(
            events.TurnFaulted(
                session, self._id(), self.turn, fault, sent, "exit 1", partial_bytes, resets_at, refused
            )
        )

    def round(self, text: str = "Well.") -> None:
        """Everybody in the rotation speaks once, whoever is next."""
        for _ in self.debate.roster.rotation():
            speaker = self.speaking
            assert speaker is not None
            self.speaks(speaker, f"{text} ({speaker}, turn {self.turn})")

    def leaves(self, session: str, reason: str = "user_quit") -> list[Effect]:
        """UNREG."""
        return self.happens(events.SeatLeft(session, self._id(), reason))

    def is_lost(self, session: str, reason: str = "connection_lost") -> list[Effect]:
        """The connection is gone."""
        return self.happens(events.SessionLost(session, reason))

    def updates(self, session: str, **changes: Any) -> list[Effect]:
        """STATE_UPDATE."""
        fields: dict[str, Any] = {"required": None, "disconnect_policy": None}
        return self.happens(events.StateUpdated(session, self._id(), **fields | changes))

    def reports(self, session: str, event: str) -> list[Effect]:
        """SYSTEM_EVENT of a wrapper."""
        return self.happens(events.SeatReported(session, self._id(), event))

    def commands(self, command: Command) -> list[Effect]:
        """An operator's command."""
        return self.happens(events.Operated("operator", self._id(), command))

    def after(self, seconds: float) -> list[Effect]:
        """Time passes, and the alarm rings if one was set for before then."""
        due = self.debate.next_deadline()
        self.now += seconds
        self.latest = []
        if due is not None and due <= self.now:
            self.happens(events.AlarmRang())
        return self.latest

    # --- what the core did ----------------------------------------------------------------------------

    def state(self) -> DebateState:
        """Where the debate is now. A call, so that a type checker does not hold it to its last answer."""
        return self.debate.state

    @property
    def turn(self) -> int:
        """The id of the open turn, 0 when none is open."""
        return self.debate.turn.turn_id if self.debate.turn else 0

    @property
    def speaking(self) -> str | None:
        """The session whose turn it is."""
        return self.seat_of(self.debate.turn.participant_id).session if self.debate.turn else None

    def seat(self, name: str) -> Seat:
        """The seat with this name."""
        return self.debate.roster.resolve(name)

    def seat_of(self, participant_id: str) -> Seat:
        return self.debate.roster.resolve(participant_id)

    def sent(self, kind: type[MessageT], session: str | None = None) -> list[MessageT]:
        """Messages of a kind that the latest event caused, to one session or to all."""
        return [
            effect.message
            for effect in self.latest
            if isinstance(effect, Send)
            and isinstance(effect.message, kind)
            and session in (None, effect.session)
        ]

    def ever_sent(self, kind: type[MessageT], session: str | None = None) -> list[MessageT]:
        """Messages of a kind that were ever sent."""
        return [
            effect.message
            for effect in self.effects
            if isinstance(effect, Send)
            and isinstance(effect.message, kind)
            and session in (None, effect.session)
        ]

    @property
    def refusal(self) -> Refuse | None:
        """The refusal of the latest event, if it was refused."""
        refusals = [effect for effect in self.latest if isinstance(effect, Refuse)]
        return refusals[0] if refusals else None

    @property
    def closed(self) -> list[str]:
        """Sessions that the latest event closed."""
        return [effect.session for effect in self.latest if isinstance(effect, EndSession)]

    def turns(self) -> list[TurnRecord]:
        """Every turn on the record."""
        return [e.entry for e in self.effects if isinstance(e, Append) and isinstance(e.entry, TurnRecord)]

    def events(self, name: EventName | None = None) -> list[EventRecord]:
        """Every event on the record, or those of one name."""
        entries = [e.entry for e in self.effects if isinstance(e, Append)]
        found = [entry for entry in entries if isinstance(entry, EventRecord)]
        return [entry for entry in found if name in (None, entry.event)]

    def latest_events(self) -> list[EventName]:
        """Names of the events that the latest event put on the record."""
        return [
            e.entry.event for e in self.latest if isinstance(e, Append) and isinstance(e.entry, EventRecord)
        ]

    def heard(self, session: str) -> list[tuple[str, str]]:
        """Speaker and text of the delta in the latest CONTEXT sent to a session."""
        context = self.ever_sent(Context, session)[-1]
        return [(entry.speaker, entry.text) for entry in context.delta]

    def status(self) -> Any:
        """STATUS as the operator gets it."""
        self.happens(events.StatusAsked("operator", self._id(), Channel.ADMIN))
        return next(e.message for e in self.latest if isinstance(e, Send))

    def was_given_the_floor(self, session: str) -> bool:
        """Whether the latest event sent TURN_START and CONTEXT to this session, in step."""
        starts, contexts = self.sent(TurnStart, session), self.sent(Context, session)
        return len(starts) == 1 == len(contexts) and starts[0].turn_id == contexts[0].turn_id


def frozen(value: Any) -> Any:
    """A value that is equal for two debates in the same state, however deep."""
    if value is None or isinstance(value, BaseModel | str | int | float):
        return value  # it cannot change, and says itself what it equals
    if isinstance(value, dict):
        return {str(key): frozen(item) for key, item in value.items()}
    if isinstance(value, list | tuple | deque):
        return [frozen(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(item) for item in value)
    names = list(getattr(value, "__dict__", {})) + list(getattr(type(value), "__slots__", ()))
    if names:
        return {name: frozen(getattr(value, name)) for name in names if name != "_effects"}
    return repr(value)


__all__ = ["NAMES", "Playbook", "StatusRequest", "council", "frozen", "participant"]
