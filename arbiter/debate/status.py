"""STATUS (§5.7): where the debate stands, for somebody who was away. Signals, never verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arbiter.debate.drift import topic_overlap
from arbiter.debate.roster import Standing
from consilium.messages import SeatStatus, Status, as_reason

if TYPE_CHECKING:
    from arbiter.debate.flow import Flow
    from arbiter.debate.roster import Seat

CHOICES_HERE = ("keep", "cold", "skip", "remove", "terminate")
CHOICES_GONE = ("skip", "remove", "terminate")


def report(debate: Flow, now: float) -> Status:
    """Describe the debate as it stands at ``now``."""
    seats = list(debate.roster)
    return Status(
        debate_state=debate.state,
        reason=debate.reason,
        phase=debate.phase,
        topic=debate.topic,
        turn_counter=debate.turn_counter,
        turns_since={
            seat.participant_id: debate.turn_counter - (seat.last_turn or 0)
            for seat in seats
            if seat.meta.brand == "human"
        },
        speaking=None if debate.turn is None else debate.turn.participant_id,
        cost=debate.meter.cost(now),
        repetition={
            seat.participant_id: round(score.share, 3)
            for seat in seats
            if (score := seat.said.latest) is not None
        },
        topic_overlap={
            seat.participant_id: round(overlap, 3)
            for seat in seats
            if seat.latest_text is not None
            and (overlap := topic_overlap(debate.topic, seat.latest_text)) is not None
        },
        seats=tuple(_seat(debate, seat) for seat in seats),
        warnings=tuple(as_reason(warning) for warning in _warnings(debate, seats)),
    )


def _seat(debate: Flow, seat: Seat) -> SeatStatus:
    troubled = seat in debate.roster.troubled()
    choices = () if not troubled else CHOICES_HERE if seat.present else CHOICES_GONE
    score = seat.said.latest
    speaking = debate.turn is not None and debate.turn.participant_id == seat.participant_id
    return SeatStatus(
        participant_id=seat.participant_id,
        connected=seat.present,
        state="speaking" if speaking else seat.standing.value,
        required=seat.required,
        disconnect_policy=seat.disconnect_policy,
        role_label=seat.meta.role_label,
        brand=seat.meta.brand,
        model=seat.meta.model,
        turns=seat.turns,
        last_turn=seat.last_turn,
        tokens=seat.tokens,
        usd=seat.usd,
        repeats_turn=None if score is None else score.turn,
        fault=seat.fault if seat.standing is Standing.FAULTY else None,
        prompt_sent=seat.prompt_sent,
        choices=choices,
    )


def _warnings(debate: Flow, seats: list[Seat]) -> list[str]:
    warnings = []
    brands = [seat.meta.brand for seat in seats if seat.meta.brand not in (None, "human")]
    if len(brands) > 1 and len(set(brands)) == 1:
        warnings.append(f"every AI seat is of one brand ({brands[0]}): expect them to agree too easily")
    if debate.council.caps.max_tokens is not None and debate.meter.unknown_turns:
        warnings.append(
            f"{debate.meter.unknown_turns} turn(s) reported no tokens: max_tokens counts"
            f" about {debate.meter.estimated} for them, from what was said"
        )
    if debate.state == "WAITING_QUORUM":
        warnings.append(f"waiting for: {', '.join(debate.roster.missing()) or 'a first seat'}")
    return warnings
