"""What happened, told to the debate. Identity is verified and rights are capped before an event is made.

``session`` is the Arbiter's own name of one registration; ``msg_id`` is the message to answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from consilium.messages import (
    DisconnectPolicy,
    Fault,
    ForceTurnEnd,
    Inject,
    Kick,
    Meta,
    Next,
    Pause,
    PromptSent,
    Resume,
    SetPhase,
    SetTopic,
    Terminate,
    Usage,
)

if TYPE_CHECKING:
    from arbiter.debate.effects import Channel


@dataclass(frozen=True, slots=True)
class SeatRegistered:
    """A REG that admission let through; ``required`` and ``disconnect_policy`` are already capped."""

    session: str
    msg_id: str
    participant_id: str
    name: str
    required: bool
    disconnect_policy: DisconnectPolicy
    meta: Meta
    data_token: str


@dataclass(frozen=True, slots=True)
class DataBound:
    """The seat's data connection presented its token (§5.5)."""

    session: str
    msg_id: str


@dataclass(frozen=True, slots=True)
class TurnAcknowledged:
    """ACK."""

    session: str
    msg_id: str
    turn_id: int


@dataclass(frozen=True, slots=True)
class SpeechReceived:
    """SPEECH."""

    session: str
    msg_id: str
    turn_id: int
    text: str
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """TURN_END; ``speech`` says that a SPEECH belongs to it, arrived or not."""

    session: str
    msg_id: str
    turn_id: int
    speech: bool
    usage: Usage | None = None
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnFaulted:
    """TURN_FAILED."""

    session: str
    msg_id: str
    turn_id: int
    fault: Fault
    prompt_sent: PromptSent
    detail: str
    partial_bytes: int | None = None
    resets_at: str | None = None
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateUpdated:
    """STATE_UPDATE, capped by the profile; None leaves a value as it is.

    ``over_required``: it asked to be required, above its profile's ceiling; ``over_policy`` likewise.
    """

    session: str
    msg_id: str
    required: bool | None
    disconnect_policy: DisconnectPolicy | None
    over_required: bool = False
    over_policy: bool = False


@dataclass(frozen=True, slots=True)
class SeatLeft:
    """UNREG: the seat leaves by choice (§8.1, §8.2)."""

    session: str
    msg_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class SeatReported:
    """SYSTEM_EVENT of a wrapper (§5.5)."""

    session: str
    msg_id: str
    event: str


@dataclass(frozen=True, slots=True)
class StatusAsked:
    """STATUS on the control or the admin channel."""

    session: str
    msg_id: str
    channel: Channel


@dataclass(frozen=True, slots=True)
class SessionLost:
    """A registered session's connection is gone, for ``reason``, without an UNREG."""

    session: str
    reason: str


@dataclass(frozen=True, slots=True)
class AlarmRang:
    """The moment of `Debate.next_deadline` has come."""


@dataclass(frozen=True, slots=True)
class RecordFailed:
    """The transcript could not be written; what it would have said has not happened."""

    reason: str


@dataclass(frozen=True, slots=True)
class RecordDelayed:
    """The transcript could not be written for a while, and now is: nothing is missing in it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The Arbiter goes by certificates and profiles that were read again; ``changed`` names what differs.

    Without a session, a signal asked for it, or a file that changed: ``by`` says which.
    """

    session: str | None
    msg_id: str | None
    changed: tuple[str, ...]
    by: Literal["signal", "file"] = "signal"


Command = Kick | ForceTurnEnd | SetTopic | SetPhase | Inject | Pause | Resume | Next | Terminate
"""The operator's commands that change a debate (§3.3.D)."""


@dataclass(frozen=True, slots=True)
class Operated:
    """An operator's command."""

    session: str
    msg_id: str
    command: Command


SeatEvent = (
    SeatRegistered
    | DataBound
    | TurnAcknowledged
    | SpeechReceived
    | TurnEnded
    | TurnFaulted
    | StateUpdated
    | SeatLeft
    | SeatReported
    | StatusAsked
)
Event = SeatEvent | Operated | Reloaded | SessionLost | AlarmRang | RecordFailed | RecordDelayed
