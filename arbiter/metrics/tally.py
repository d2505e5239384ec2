"""What an Arbiter counts because nobody else keeps it: everything that happens and is over. Pure.

What it knows of turns, it knows from their records: an Arbiter that takes up a debate counts from where the
transcript stands.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Self

from arbiter.debate.effects import Channel
from arbiter.edge.listener import HandshakeOutcome
from arbiter.metrics.catalogue import FIRST_BYTE_SECONDS, TURN_SECONDS
from arbiter.observe import Observer
from consilium.errors import ErrorCode
from consilium.records import TurnOutcome

if TYPE_CHECKING:
    from consilium.messages import Usage
    from consilium.records import TurnRecord

MOST_SEATS = 256
"""Seats that are told apart in counts of turns; a debate that has had more counts the rest as `OTHER`."""

OTHER = "other"

MOST_REMEMBERED = 1024
"""Seats of which is known when they were last seen: whoever may use any name can come under many."""


class Spread:
    """A histogram: how many values fell below each bound, and their sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def copy(self) -> Self:
        """The same, for somebody else to read."""
        copied = type(self)(self.bounds)
        copied.counts, copied.total = list(self.counts), self.total
        return copied


class Tally(Observer):
    """Hears what happens, and counts it."""

    def __init__(self) -> None:
        self.turns: Counter[tuple[str, str]] = Counter()
        self.faults: Counter[tuple[str, str]] = Counter()
        self.turn_seconds: dict[str, Spread] = {}
        self.first_byte_seconds: dict[str, Spread] = {}
        self.tokens: Counter[tuple[str, str]] = Counter()
        self.cached: Counter[str] = Counter()
        self.usd: dict[str, float] = {}
        self.refusals: Counter[str] = Counter(dict.fromkeys(map(str, ErrorCode), 0))
        self.rate_limits: Counter[str] = Counter(dict.fromkeys(map(str, Channel), 0))
        self.handshakes: Counter[str] = Counter(dict.fromkeys(map(str, HandshakeOutcome), 0))
        self.sessions: Counter[str] = Counter({"participant": 0, "operator": 0})
        self.reloads: Counter[str] = Counter({"taken": 0, "refused": 0})
        self.seen: dict[str, float] = {}
        self.round_trips: dict[str, float] = {}
        self._seats: set[str] = set()

    def copy(self) -> Tally:
        """The counts as they stand, for a reader in another thread."""
        copied = Tally()
        for name in ("turns", "faults", "tokens", "cached", "refusals", "rate_limits", "handshakes"):
            setattr(copied, name, Counter(getattr(self, name)))
        copied.sessions, copied.reloads = Counter(self.sessions), Counter(self.reloads)
        copied.usd, copied.seen, copied.round_trips = dict(self.usd), dict(self.seen), dict(self.round_trips)
        copied.turn_seconds = {seat: spread.copy() for seat, spread in self.turn_seconds.items()}
        copied.first_byte_seconds = {seat: spread.copy() for seat, spread in self.first_byte_seconds.items()}
        return copied

    def turn_ended(self, turn: TurnRecord) -> None:
        """See `Observer`."""
        seat = self._named(turn.participant_id)
        self.turns[seat, turn.outcome.value] += 1
        if turn.fault is not None:
            self.faults[seat, turn.fault.value] += 1
        if turn.outcome is TurnOutcome.SPEECH:
            self.turn_seconds.setdefault(seat, Spread(TURN_SECONDS)).add(turn.duration_s)
        if turn.usage is not None:
            self._charge(seat, turn.usage)

    def _charge(self, seat: str, usage: Usage) -> None:
        for kind, tokens in (("in", usage.tokens_in), ("out", usage.tokens_out)):
            if tokens is not None:
                self.tokens[seat, kind] += tokens
        if usage.tokens_cached is not None:
            self.cached[seat] += usage.tokens_cached
        if usage.usd is not None:
            self.usd[seat] = self.usd.get(seat, 0.0) + usage.usd
        if usage.first_byte_ms is not None:
            spread = self.first_byte_seconds.setdefault(seat, Spread(FIRST_BYTE_SECONDS))
            spread.add(usage.first_byte_ms / 1000)

    def _named(self, seat: str) -> str:
        if seat not in self._seats and len(self._seats) >= MOST_SEATS:
            return OTHER
        self._seats.add(seat)
        return seat

    def refused(self, code: ErrorCode) -> None:
        """See `Observer`."""
        self.refusals[code.value] += 1

    def rate_limited(self, channel: Channel) -> None:
        """See `Observer`."""
        self.rate_limits[channel.value] += 1

    def shook_hands(self, outcome: HandshakeOutcome) -> None:
        """See `Observer`."""
        self.handshakes[outcome.value] += 1

    def session_opened(self, role: str) -> None:
        """See `Observer`."""
        self.sessions[role] += 1

    def seat_gone(self, participant_id: str, heard: float) -> None:
        """See `Observer`."""
        _remember(self.seen, participant_id, heard)
        self.round_trips.pop(participant_id, None)

    def heartbeat_returned(self, participant_id: str, seconds: float) -> None:
        """See `Observer`."""
        _remember(self.round_trips, participant_id, seconds)

    def reloaded(self, *, taken: bool) -> None:
        """See `Observer`."""
        self.reloads["taken" if taken else "refused"] += 1


def _remember(values: dict[str, float], seat: str, value: float) -> None:
    """Keep the latest value, of the latest seats."""
    values.pop(seat, None)
    values[seat] = value
    if len(values) > MOST_REMEMBERED:
        del values[next(iter(values))]
