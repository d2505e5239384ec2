"""Why a debate stands still, in words for a person. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from consilium.messages import QUOTA_EXHAUSTED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

REVOKED = "certificate_revoked"
REASONS = {
    "participant_failed": "a seat cannot go on",
    QUOTA_EXHAUSTED: "a seat's quota is used up",
    "missing_required_participant": "a seat that the debate needs has left",
    "nobody_to_speak": "nobody is left to speak",
    "operator": "an operator paused it",
    "arbiter_restarted": "the Arbiter was restarted",
    "certificate_expired": "its certificate has expired",
    REVOKED: "its certificate was revoked",
    "cap_reached": "a cap is reached",
    "internal_error": "a bug in the Arbiter; its log says more",
}
"""The Arbiter's own reasons, in words. Others are an operator's, and stand as they are."""


def why(reason: str, quotas: Mapping[str, str | None] | None = None) -> str:
    """The reason of a pause in words. ``quotas`` says of a seat whose quota is used up when it comes back."""
    if reason != QUOTA_EXHAUSTED or not quotas:
        return REASONS.get(reason, reason)
    return "; ".join(
        f"the quota of {seat} is used up" + (f"; it comes back: {moment(back)}" if back else "")
        for seat, back in quotas.items()
    )


def why_paused(data: Mapping[str, JsonValue]) -> str:
    """The same, of the data of a DEBATE_PAUSED record."""
    seats, back = data.get("seats"), data.get("resets_at")
    named = seats if isinstance(seats, list) else []
    return why(str(data.get("reason") or ""), {str(seat): str(back) if back else None for seat in named})


def moment(told: str) -> str:
    """When a quota comes back, for a person: the moment to the minute, or a client's words as they are."""
    try:
        at = datetime.fromisoformat(told)
        return told if at.tzinfo is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError):  # words, or a moment that UTC has no year for
        return told
