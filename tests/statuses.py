"""STATUS for tests: seats that are well, that failed or are gone, and debates with them."""

from __future__ import annotations

import shlex
from typing import Any

from consilium import messages as m

ADA, BOB, ANA = "ada_AB12CD34", "bob_77AA11BB", "ana_0F0F0F0F"


def seat(participant_id: str = ADA, **changes: Any) -> m.SeatStatus:
    fields: dict[str, Any] = {
        "participant_id": participant_id,
        "connected": True,
        "state": "active",
        "required": False,
        "disconnect_policy": m.DisconnectPolicy.KEEP_ALIVE,
        "role_label": "sceptic",
        "brand": "claude",
        "model": "sonnet",
        "isolation": None,
        "turns": 3,
        "last_turn": 7,
        "tokens": 12_500,
        "usd": None,
        "repeats_turn": None,
        "fault": None,
        "prompt_sent": None,
        "partial_bytes": None,
        "resets_at": None,
        "last_active_s": 4.0,
        "choices": (),
    }
    return m.SeatStatus(**fields | changes)


def faulty(participant_id: str = ADA, **changes: Any) -> m.SeatStatus:
    fields: dict[str, Any] = {
        "state": "faulty",
        "fault": "stalled: nothing for 120 s",
        "prompt_sent": m.PromptSent.MAYBE,
        "choices": ("keep", "cold", "skip", "remove", "terminate"),
    }
    return seat(participant_id, **fields | changes)


def gone(participant_id: str = BOB, **changes: Any) -> m.SeatStatus:
    fields: dict[str, Any] = {
        "connected": False,
        "fault": "connection_lost",
        "prompt_sent": None,
        "choices": ("skip", "remove", "terminate"),
    }
    return faulty(participant_id, **fields | changes)


def cost(**changes: Any) -> m.Cost:
    fields: dict[str, Any] = {
        "tokens_total": 412_000,
        "tokens_unknown_turns": 0,
        "tokens_estimated": 0,
        "usd_total": None,
        "rounds": 9,
        "elapsed_s": 4310.5,
        "caps": {},
    }
    return m.Cost(**fields | changes)


def status(*seats: m.SeatStatus, **changes: Any) -> m.Status:
    fields: dict[str, Any] = {
        "debate_state": m.DebateState.RUNNING,
        "reason": None,
        "phase": m.Phase.REBUTTAL,
        "topic": "Wrap it or rewrite it?",
        "turn_counter": 187,
        "turns_since": {},
        "speaking": None,
        "cost": cost(),
        "repetition": {},
        "topic_overlap": {},
        "brands": None,
        "seats": seats,
        "warnings": (),
    }
    return m.Status(**fields | changes)


def paused(*seats: m.SeatStatus, **changes: Any) -> m.Status:
    return status(*seats, **{"debate_state": m.DebateState.PAUSED, "reason": "participant_failed"} | changes)


def command(*words: str) -> str:
    """What an operator types."""
    return shlex.join(["consilium", "admin", "--bundle", "anna", *words])
