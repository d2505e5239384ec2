"""Where a debate got to, from its records (§5.7): the STATUS at the head of a transcript. Pure.

1. Unknown is None and is counted; it is never zero.
2. A record may lack any field of its ``data``: what is not there is not claimed.
3. ``elapsed_s`` means what it means in STATUS: the time that the debate ran, pauses excluded.

The repetition index is not here: it is the Arbiter's to compute (§5.7).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from consilium.records import TurnOutcome
from council.tally import SeatTally, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable

    from consilium.messages import DebateState
    from consilium.records import HeaderRecord, Stored

Amount = TypeVar("Amount", int, float)


@dataclass(frozen=True, slots=True)
class SeatSummary:
    """One seat, as the records last described it, and what it did."""

    participant_id: str
    role_label: str | None
    brand: str | None
    model: str | None
    effort: str | None
    adapter: str | None
    pseudonym: str | None
    required: bool | None
    present: bool
    turns: int
    speeches: int
    tokens: int | None
    tokens_unknown_turns: int
    usd: float | None
    turns_since: int | None
    fault: str | None


@dataclass(frozen=True, slots=True)
class Summary:
    """The whole debate. ``began`` and ``updated`` are times as in the records."""

    debate_id: str
    topic: str
    arbiter: str
    state: DebateState
    reason: str | None
    cap: str | None
    phases: tuple[str, ...]
    rounds: int
    speaking: str | None
    turns: dict[TurnOutcome, int]
    tokens_total: int | None
    tokens_unknown_turns: int
    usd_total: float | None
    elapsed_s: float
    paused_s: float
    caps: dict[str, float]
    began: str | None
    updated: str | None
    seats: tuple[SeatSummary, ...]


def summarise(records: Iterable[Stored]) -> Summary:
    """Reduce the records of a transcript, in their order, to where the debate stands."""
    tally = Tally()
    for record in records:
        tally.take(record)
    seats = tuple(_seat(name, seat, tally.turns) for name, seat in _in_order(tally))
    outcomes = sum((seat.outcomes for seat in tally.seats.values()), Counter[TurnOutcome]())
    return Summary(
        debate_id=tally.header.debate_id if tally.header else "",
        topic=tally.topic,
        arbiter=tally.header.arbiter if tally.header else "",
        state=tally.state,
        reason=tally.reason,
        cap=tally.cap,
        phases=tuple(tally.phases),
        rounds=tally.rounds,
        speaking=tally.speaking,
        turns={outcome: outcomes[outcome] for outcome in TurnOutcome if outcomes[outcome]},
        tokens_total=_sum(seat.tokens for seat in seats),
        tokens_unknown_turns=sum(seat.tokens_unknown_turns for seat in seats),
        usd_total=_sum(seat.usd for seat in seats),
        elapsed_s=round(tally.clock.ran, 3),
        paused_s=round(tally.clock.paused, 3),
        caps=_caps(tally.header),
        began=tally.clock.began,
        updated=tally.clock.updated,
        seats=seats,
    )


def _in_order(tally: Tally) -> list[tuple[str, SeatTally]]:
    """The seats as the council plans them; then those that it does not, as they came."""
    roster = tally.header.council.get("roster") if tally.header else None
    planned = roster.get("participants") if isinstance(roster, dict) else None
    seats = planned if isinstance(planned, list) else []
    places = {str(seat.get("name")): place for place, seat in enumerate(seats) if isinstance(seat, dict)}
    # A participant id is the seat's name, an underscore and eight digits (§5.2).
    return sorted(tally.seats.items(), key=lambda item: places.get(item[0].rpartition("_")[0], len(seats)))


def _seat(participant_id: str, seat: SeatTally, turns: int) -> SeatSummary:
    return SeatSummary(
        participant_id=participant_id,
        role_label=seat.meta.get("role_label"),
        brand=seat.meta.get("brand"),
        model=seat.meta.get("model"),
        effort=seat.meta.get("effort"),
        adapter=seat.meta.get("adapter"),
        pseudonym=seat.pseudonym,
        required=seat.required,
        present=seat.present,
        turns=seat.outcomes.total(),
        speeches=seat.outcomes[TurnOutcome.SPEECH],
        tokens=seat.tokens,
        tokens_unknown_turns=seat.unknown,
        usd=seat.usd,
        turns_since=None if seat.spoke_at is None else turns - seat.spoke_at,
        fault=seat.fault,
    )


def _caps(header: HeaderRecord | None) -> dict[str, float]:
    caps = header.council.get("caps") if header else None
    if not isinstance(caps, dict):
        return {}
    return {name: value for name, value in caps.items() if isinstance(value, int | float)}


def _sum(values: Iterable[Amount | None]) -> Amount | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
