"""Who sits here (§7): seats, their standing, quorum, and who may speak."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from arbiter.debate.caps import tokens_of, total, total_usd
from arbiter.debate.drift import Drift
from arbiter.debate.repetition import Repetition
from consilium.errors import ErrorCode, PeerError
from consilium.messages import DisconnectPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from arbiter.debate.events import SeatRegistered
    from consilium.config import Roster as RosterRules
    from consilium.messages import Meta, PromptSent, Usage


class Standing(StrEnum):
    """What a seat is to the debate. Whether it is connected is another question."""

    ACTIVE = "active"
    ABSENT = "absent"
    FAULTY = "faulty"


HUMAN = "human"

UNPLACED = 1 << 30
"""The order of a seat that has registered but not joined: behind everybody."""


@dataclass(slots=True)
class Seat:
    """One participant's place. It outlives its connections; memory belongs to the CLI chat (§8.2).

    ``active_at`` is when its latest message came, heartbeats left out. ``leaving`` is why it leaves, while
    the turn that it has announced a SPEECH for still waits for that.
    """

    participant_id: str
    name: str
    meta: Meta
    required: bool
    disconnect_policy: DisconnectPolicy
    order: int = UNPLACED
    pseudonym: str = ""
    session: str | None = None
    bound: bool = False
    joined: bool = False
    standing: Standing = Standing.ACTIVE
    fault: str | None = None
    prompt_sent: PromptSent | None = None
    partial_bytes: int | None = None
    resets_at: str | None = None
    active_at: float | None = None
    leaving: str | None = None
    cursor: int = 0
    turns: int = 0
    last_turn: int | None = None
    last_speech: int | None = None
    tokens: int | None = None
    usd: float | None = None
    said: Repetition = field(default_factory=Repetition)
    drift: Drift = field(default_factory=Drift)

    @property
    def present(self) -> bool:
        """Whether both of its connections are there."""
        return self.session is not None and self.bound

    @property
    def in_rotation(self) -> bool:
        """Whether it may be given a turn."""
        return self.present and self.standing is Standing.ACTIVE and self.leaving is None

    @property
    def is_person(self) -> bool:
        """Whether no client is asked for its turns, so that they take no tokens."""
        return HUMAN in (self.meta.brand, self.meta.adapter)

    def charge(self, turn_id: int, usage: Usage | None) -> None:
        """Add one completed turn."""
        self.turns += 1
        self.last_turn = turn_id
        tokens = tokens_of(usage)
        if tokens is not None:
            self.tokens = total(self.tokens, tokens)
        if usage is not None and usage.usd is not None:
            self.usd = total_usd(self.usd, usage.usd)

    def heal(self) -> None:
        """Take it back into the debate; only on an operator's word."""
        self.standing = Standing.ACTIVE
        self.fault = None
        self.prompt_sent = None
        self.partial_bytes = None
        self.resets_at = None


@dataclass(slots=True)
class Roster:
    """All seats, planned and present."""

    rules: RosterRules
    max_seats: int
    _seats: dict[str, Seat] = field(default_factory=dict)
    _by_session: dict[str, Seat] = field(default_factory=dict)
    _removed: set[str] = field(default_factory=set)
    _pseudonyms: dict[str, str] = field(default_factory=dict)
    _numbered: int = 0

    def __iter__(self) -> Iterator[Seat]:
        """Yield the seats in speaking order."""
        return iter(sorted(self._seats.values(), key=lambda seat: seat.order))

    def admit(self, event: SeatRegistered, *, started: bool) -> Seat:
        """Seat a newcomer or give a returning seat its place back (§5.2, §7.1, §7.2, §9.6).

        Raises `PeerError`: DUPLICATE_DISPLAY_NAME, POLICY_DENIED, AT_CAPACITY, INVALID_STATE. Nothing has
        changed then.
        """
        if event.session in self._by_session:
            raise PeerError(ErrorCode.INVALID_STATE, "this connection has registered already")
        seat = self._seats.get(event.participant_id)
        if seat is None:
            self._check_newcomer(event, started=started)
            seat = self._seats[event.participant_id] = Seat(
                participant_id=event.participant_id,
                name=event.name,
                meta=event.meta,
                required=event.required or self.requires(event.name),
                disconnect_policy=event.disconnect_policy,
            )
        elif seat.session is not None:
            raise PeerError(ErrorCode.DUPLICATE_DISPLAY_NAME, f"{event.participant_id} is already registered")
        else:
            seat.meta = event.meta
            seat.required = event.required or self.requires(event.name)
            seat.disconnect_policy = event.disconnect_policy
        seat.session = event.session
        seat.bound = False
        self._by_session[event.session] = seat
        return seat

    def _check_newcomer(self, event: SeatRegistered, *, started: bool) -> None:
        if event.participant_id in self._removed:
            raise PeerError(ErrorCode.POLICY_DENIED, "the operator removed this seat from the debate")
        if self.rules.mode == "static" and event.name not in self._planned():
            raise PeerError(ErrorCode.POLICY_DENIED, f"the roster has no seat named {event.name}")
        if len(self._seats) >= self.max_seats:
            raise PeerError(ErrorCode.AT_CAPACITY, f"all {self.max_seats} seats are taken")
        if started and not self.rules.cold_entry:
            raise PeerError(ErrorCode.INVALID_STATE, "the debate has started and admits nobody new")

    def _planned(self) -> list[str]:
        return [seat.name for seat in self.rules.participants]

    def requires(self, name: str) -> bool:
        """Whether the roster itself requires this name (§7.1, §7.2), whatever a certificate may ask for."""
        return name in self.rules.awaited

    def seated(self, session: str) -> Seat | None:
        """Return the seat of a session, if it has one."""
        return self._by_session.get(session)

    def known(self, participant_id: str) -> Seat | None:
        """Return the seat with this participant id, if there is one."""
        return self._seats.get(participant_id)

    def place(self, seat: Seat, cursor: int) -> None:
        """Put a seat of a former run on the roster, unconnected."""
        self._seats[seat.participant_id] = seat
        self.join(seat, cursor)

    def join(self, seat: Seat, cursor: int) -> None:
        """Give a newcomer, now that it is bound, its place in the order and its pseudonym."""
        seat.order = self._order(seat.name)
        # Decision 9: who comes back is the speaker whom the others know, also where its seat was given up.
        unused = f"Speaker {_letters(len(self._pseudonyms))}"
        seat.pseudonym = self._pseudonyms.setdefault(seat.participant_id, unused)
        seat.cursor = cursor
        seat.joined = True
        self._numbered += 1

    def _order(self, name: str) -> int:
        """Planned seats speak in the order of the plan, others after them as they come; no two share one."""
        planned = self._planned()
        place = planned.index(name) if name in planned else None
        if place is None or any(seat.order == place for seat in self):
            return len(planned) + self._numbered
        return place

    def of_session(self, session: str) -> Seat:
        """Return the seat of a session. Raises `PeerError` (NOT_REGISTERED)."""
        seat = self._by_session.get(session)
        if seat is None:
            raise PeerError(ErrorCode.NOT_REGISTERED, "register first")
        return seat

    def resolve(self, reference: str) -> Seat:
        """Find a seat by participant id, or else by a name that only one has. Raises `PeerError`.

        A name may read like the participant id of another seat: that one is meant then.
        """
        if (seat := self.known(reference)) is not None:
            return seat
        found = [seat for seat in self if seat.name == reference]
        if len(found) == 1:
            return found[0]
        known = ", ".join(seat.participant_id for seat in self) or "none"
        problem = "several seats are named" if found else "there is no seat"
        raise PeerError(ErrorCode.INVALID_STATE, f"{problem} {reference} (seats: {known})")

    def detach(self, session: str) -> Seat | None:
        """Forget a session whose connection is gone; return its seat, if it had one."""
        seat = self._by_session.pop(session, None)
        if seat is not None:
            seat.session = None
            seat.bound = False
            seat.leaving = None
            if not seat.joined:
                del self._seats[seat.participant_id]
        return seat

    def depart(self, seat: Seat) -> bool:
        """Let a seat go by its own choice (§8): kept as absent, or taken off. Say whether it is kept."""
        kept = seat.disconnect_policy is DisconnectPolicy.KEEP_ALIVE or seat.required
        if kept:
            if seat.session is not None:
                self.detach(seat.session)
            seat.heal()
            seat.leaving = None
            seat.standing = Standing.ABSENT
        else:
            self.remove(seat)
        return kept

    def remove(self, seat: Seat) -> None:
        """Take a seat off the roster."""
        del self._seats[seat.participant_id]
        if seat.session is not None:
            del self._by_session[seat.session]

    def ban(self, participant_id: str) -> None:
        """Take a seat off the roster, if it is there, for good: its certificate cannot take it again."""
        self._removed.add(participant_id)
        seat = self._seats.get(participant_id)
        if seat is not None:
            self.remove(seat)

    def sessions(self) -> list[str]:
        """The sessions of all connected seats, in speaking order."""
        return [seat.session for seat in self if seat.session is not None]

    def joined(self) -> list[Seat]:
        """The seats that have ever been bound, in speaking order."""
        return [seat for seat in self if seat.joined]

    def rotation(self) -> list[Seat]:
        """The seats that may be given a turn, in speaking order."""
        return [seat for seat in self if seat.in_rotation]

    def troubled(self) -> list[Seat]:
        """The seats on which the operator has to decide before the debate can go on."""
        return [
            seat
            for seat in self
            if seat.standing is Standing.FAULTY or (seat.standing is Standing.ABSENT and seat.required)
        ]

    def missing(self) -> list[str]:
        """The awaited names that have no present seat (§7.1, §7.2)."""
        here = {seat.name for seat in self._seats.values() if seat.in_rotation}
        return sorted(self.rules.awaited - here)

    def quorum(self) -> bool:
        """Whether everybody who is awaited is here, and somebody is."""
        return not self.missing() and bool(self.rotation())


def _letters(number: int) -> str:
    """0 is A, 25 is Z, 26 is AA: any number of speakers."""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
