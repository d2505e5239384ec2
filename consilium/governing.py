"""What an operator orders and is answered (§3.3.D): the messages that only the admin channel carries.

`consilium.messages` passes all of them on, so that one import serves who speaks the protocol.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from consilium.words import Count, Label, Message, NonEmptyText, Phase, Reason, Recovery, SeatRef, Topic, When


class Kick(Message):
    """Remove a seat."""

    type: Literal["KICK"] = "KICK"
    seat: SeatRef


class ForceTurnEnd(Message):
    """End the open turn now; it is revoked."""

    type: Literal["FORCE_TURN_END"] = "FORCE_TURN_END"


class SetTopic(Message):
    """Replace the topic."""

    type: Literal["SET_TOPIC"] = "SET_TOPIC"
    topic: Topic


class SetPhase(Message):
    """Change the phase (§13.3), at the next turn or when a round is complete: ``round``, or else this one."""

    type: Literal["SET_PHASE"] = "SET_PHASE"
    phase: Phase
    when: When = When.NOW
    round: Count | None = None


class Inject(Message):
    """Say something to every seat, as the moderator (§9.7)."""

    type: Literal["INJECT"] = "INJECT"
    text: NonEmptyText


class Pause(Message):
    """Assign no further turn."""

    type: Literal["PAUSE"] = "PAUSE"
    reason: Reason = ""


class Resume(Message):
    """Go on (§7.3). For each faulty seat: keep its chat (the default), cold, skip or remove."""

    type: Literal["RESUME"] = "RESUME"
    seats: dict[SeatRef, Recovery] = Field(default_factory=dict)


class Next(Message):
    """Give the next turn to this seat (policy ``manual``, or once under any other)."""

    type: Literal["NEXT"] = "NEXT"
    seat: SeatRef


class Terminate(Message):
    """Close the debate: now, or when a round is complete: ``round``, or else this one."""

    type: Literal["TERMINATE"] = "TERMINATE"
    when: When = When.NOW
    round: Count | None = None
    reason: Reason = ""


class Reload(Message):
    """Read certificates and capability profiles again."""

    type: Literal["RELOAD"] = "RELOAD"


class Watch(Message):
    """Send me every record from ``from_seq`` on, and each new one as it is written."""

    type: Literal["WATCH"] = "WATCH"
    from_seq: Count = 0


class AdminOk(Message):
    """Carried out, or scheduled."""

    type: Literal["ADMIN_OK"] = "ADMIN_OK"
    operation: Label


class Record(Message):
    """One record of the transcript, as it stands on disk (answer to WATCH)."""

    type: Literal["RECORD"] = "RECORD"
    record: dict[str, JsonValue]
