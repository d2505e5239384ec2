"""STATUS (§5.7): where the debate stands, for somebody who was away. Signals, never verdicts.

A blind debate stays blind (decision 9): a seat that asks is told of itself, and of the others nothing that
would say who they are. The operator is told everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from arbiter.debate.roster import Standing
from consilium.config import TurnPolicy
from consilium.messages import SeatStatus, Status, as_reason

if TYPE_CHECKING:
    from arbiter.debate.flow import Flow
    from arbiter.debate.roster import Seat

CHOICES_HERE = ("keep", "cold", "skip", "remove", "terminate")
CHOICES_GONE = ("skip", "remove", "terminate")

SCORED_AT_ONCE = 32
"""Turns that a report scores at most, some milliseconds: it may lag behind a debate that never pauses."""


def report(debate: Flow, now: float, *, asker: Seat | None = None) -> Status:
    """Describe the debate as it stands at ``now``: to the seat that asks, or else to an operator."""
    debate.catch_up(SCORED_AT_ONCE)
    blind = asker is not None and not debate.council.identity_visible
    seats = [seat for seat in debate.roster if not blind or seat is asker]
    troubled = debate.roster.troubled()
    speaker = None if debate.turn is None else debate.seat_of(debate.turn)
    brands = _brands(seats)
    return Status(
        debate_state=debate.state,
        reason=debate.reason,
        phase=debate.phase,
        topic=debate.topic,
        turn_counter=debate.turn_counter,
        turns_since={
            # A skip is no sign of a person: a wrapper skips by itself for one who is away (§9.3).
            seat.participant_id: debate.turn_counter - (seat.last_speech or 0)
            for seat in seats
            if seat.meta.brand == "human"
        },
        speaking=speaker.participant_id if speaker is not None and speaker in seats else None,
        cost=debate.meter.cost(now),
        repetition={
            seat.participant_id: round(score.share, 3)
            for seat in seats
            if (score := seat.said.latest) is not None
        },
        topic_overlap={
            seat.participant_id: round(overlap, 3)
            for seat in seats
            if (overlap := seat.drift.overlap(debate.topic)) is not None
        },
        brands=None if blind else len(set(brands)),
        seats=tuple(_seat(debate, seat, asker, now, troubled=seat in troubled) for seat in seats),
        warnings=tuple(as_reason(warning) for warning in _warnings(debate, seats, brands, blind=blind)),
    )


def _brands(seats: list[Seat]) -> list[str]:
    """The brand of each client that says its own. A person is of none."""
    return [brand for seat in seats if (brand := seat.meta.brand) is not None and brand != "human"]


def _seat(debate: Flow, seat: Seat, asker: Seat | None, now: float, *, troubled: bool) -> SeatStatus:
    choices = () if not troubled else CHOICES_HERE if seat.present else CHOICES_GONE
    score = seat.said.latest
    speaking = debate.turn is not None and debate.turn.participant_id == seat.participant_id
    return SeatStatus(
        participant_id=seat.participant_id,
        connected=seat.present,
        state="speaking" if speaking else seat.standing.value,
        required=seat.required,
        disconnect_policy=seat.disconnect_policy,
        role_label=seat.meta.role_label if debate.council.role_visible or asker in (None, seat) else None,
        brand=seat.meta.brand,
        model=seat.meta.model,
        isolation=seat.meta.isolation,
        turns=seat.turns,
        last_turn=seat.last_turn,
        tokens=seat.tokens,
        usd=seat.usd,
        repeats_turn=None if score is None else score.turn,
        fault=seat.fault if seat.standing is Standing.FAULTY else None,
        prompt_sent=seat.prompt_sent,
        partial_bytes=seat.partial_bytes,
        resets_at=seat.resets_at,
        last_active_s=None if seat.active_at is None else round(now - seat.active_at, 3),
        choices=choices,
    )


def _warnings(debate: Flow, seats: list[Seat], brands: list[str], *, blind: bool) -> list[str]:
    warnings = []
    if len(brands) > 1 and len(set(brands)) == 1:
        warnings.append(f"every AI seat is of one brand ({brands[0]}): expect them to agree too easily")
    capped = debate.council.caps.max_tokens is not None
    silent = [seat.participant_id for seat in seats if seat.meta.reports_usage is False]
    if capped and silent:
        clients = "the client of" if len(silent) == 1 else "the clients of"
        warnings.append(
            f"{clients} {', '.join(silent)} will report no tokens: max_tokens can only count an estimate"
            " there, from what is said"
        )
    if capped and debate.meter.unknown_turns:
        count = debate.meter.unknown_turns
        turns = "1 turn" if count == 1 else f"{count} turns"
        warnings.append(
            f"{turns} reported no tokens: max_tokens counts about {debate.meter.estimated} for"
            f" {'it' if count == 1 else 'them'}, from what was said"
        )
    by_hand = debate.council.turn_policy is TurnPolicy.MANUAL
    if by_hand and debate.state == "RUNNING" and debate.turn is None:
        warnings.append("turn_policy is manual: the next turn waits for an operator's NEXT")
    if debate.state == "WAITING_QUORUM":
        missing = debate.roster.missing()
        names = f"{len(missing)} of the planned seats" if blind else ", ".join(missing)
        warnings.append(f"waiting for: {names if missing else 'a first seat'}")
    return warnings
