"""What happens to a seat and what shall be done about it: the vocabulary of `wrapper.turn`.

Inputs say what happened, effects what the driver has to do. Both are values: a seat's whole life can be
replayed from its list of inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from consilium.errors import Objection
    from consilium.messages import (
        Ack,
        Context,
        ControlToSeat,
        DataHello,
        DataToSeat,
        Fault,
        PromptSent,
        Reg,
        Speech,
        StateUpdate,
        Status,
        StatusRequest,
        SystemEvent,
        TurnEnd,
        TurnFailed,
        Unreg,
        Usage,
    )
    from wrapper.reconnection import Knock

    Facts = Mapping[str, str | int | list[str]]


class Outcome(StrEnum):
    """How a seat's life ended."""

    FINISHED = "FINISHED"
    STOPPED_BY_CAP = "STOPPED_BY_CAP"
    ERROR = "ERROR"
    LEFT = "LEFT"
    REFUSED = "REFUSED"
    LINK_LOST = "LINK_LOST"
    PROTOCOL_FAULT = "PROTOCOL_FAULT"
    CLIENT_FAILED = "CLIENT_FAILED"


class Weight(StrEnum):
    """How much a note matters to the person who reads the log."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"


class News(StrEnum):
    """What of a seat's life a person, or a program, may want to follow."""

    REGISTERED = "registered"
    SEATED = "seated"
    SPEAKING = "speaking"
    SPOKE = "spoke"
    PASSED = "passed"
    FAILED = "failed"
    PAUSED = "paused"
    RESUMED = "resumed"
    RECOVERED = "recovered"
    STANDING = "standing"
    WAITING = "waiting"
    ENDED = "ended"


# --- inputs: the link --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ControlOpened:
    """The control connection stands; nobody has been told who we are yet."""


@dataclass(frozen=True, slots=True)
class DataOpened:
    """The data connection stands; it is not bound yet."""


@dataclass(frozen=True, slots=True)
class FromControl:
    """A message on the control channel. PING and PONG stay in the link."""

    message: ControlToSeat


@dataclass(frozen=True, slots=True)
class FromData:
    """A message on the data channel."""

    message: DataToSeat


@dataclass(frozen=True, slots=True)
class LinkLost:
    """A connection is gone, or never came; ``reason`` says which and why, ``hint`` what may help."""

    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class LinkRefused:
    """TLS would not connect us with the Arbiter, or with what stands in its place; ``reason`` says why."""

    reason: str
    objection: Objection


@dataclass(frozen=True, slots=True)
class PeerFaulted:
    """What the Arbiter sent is not of the protocol."""

    reason: str


# --- inputs: the adapter -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChatOpened:
    """The client is ready. ``memory_lost``: this seat had a chat, and it could not be recovered."""

    memory_lost: bool


@dataclass(frozen=True, slots=True)
class ChatFailed:
    """The client cannot be used at all."""

    detail: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The adapter produced a turn's text, cleaned."""

    turn_id: int
    text: str
    usage: Usage | None = None
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Passed:
    """The participant chose not to speak. ``usage`` is what that took, if a client was asked."""

    turn_id: int
    usage: Usage | None = None
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """A person chose not to speak, or was not there to (§9.2, §9.3)."""

    turn_id: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The client did not produce the turn. ``partial_bytes`` of an answer had come; None where unknown.

    ``resets_at`` is when a quota comes back, as TURN_FAILED has it.
    """

    turn_id: int
    fault: Fault
    prompt_sent: PromptSent
    detail: str
    partial_bytes: int | None = None
    resets_at: str | None = None
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stopped:
    """A turn that was to be cancelled has come to its end; the chat is free again."""

    turn_id: int


@dataclass(frozen=True, slots=True)
class Restarted:
    """The chat was started cold."""


@dataclass(frozen=True, slots=True)
class RestartFailed:
    """The chat could not be started cold."""

    detail: str


# --- inputs: the person ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leave:
    """The participant leaves, by choice."""

    reason: str


@dataclass(frozen=True, slots=True)
class Away:
    """The person steps away, and stays connected (§9.3)."""


@dataclass(frozen=True, slots=True)
class Back:
    """The person is at the table again (§9.4)."""


@dataclass(frozen=True, slots=True)
class StatusWanted:
    """The person wants to know where the debate stands (§5.7)."""


AdapterEvent = (
    ChatOpened | ChatFailed | Answered | Passed | Skipped | Failed | Stopped | Restarted | RestartFailed
)
PersonEvent = Leave | Away | Back | StatusWanted
LinkEvent = ControlOpened | DataOpened | FromControl | FromData | LinkLost | LinkRefused | PeerFaulted
SeatEvent = LinkEvent | AdapterEvent | PersonEvent


# --- effects -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendControl:
    """Send this on the control channel."""

    message: Reg | Ack | TurnEnd | TurnFailed | StateUpdate | StatusRequest | Unreg


@dataclass(frozen=True, slots=True)
class SendData:
    """Send this on the data channel."""

    message: DataHello | Speech | SystemEvent


@dataclass(frozen=True, slots=True)
class OpenControl:
    """Be rid of the link that there is, if there is one; wait, and connect the control channel anew.

    ``why`` says why that is necessary, when it has not been said yet, and ``hint`` what may help.
    """

    knock: Knock
    why: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class OpenData:
    """Registered: begin the heartbeat (every ``heartbeat`` seconds) and connect the data channel."""

    heartbeat: float


@dataclass(frozen=True, slots=True)
class RunTurn:
    """Give this to the adapter. The answer is worthless after ``deadline``, on the machine's clock."""

    context: Context
    deadline: float


@dataclass(frozen=True, slots=True)
class CancelTurn:
    """Stop the running turn, and say `Stopped` when nothing of it is left."""

    turn_id: int


@dataclass(frozen=True, slots=True)
class RestartChat:
    """Forget the chat and start a new one; say `Restarted` or `RestartFailed`."""


@dataclass(frozen=True, slots=True)
class Note:
    """Say this in the log."""

    weight: Weight
    text: str


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell whoever follows the seat."""

    news: News
    facts: Facts


@dataclass(frozen=True, slots=True)
class Show:
    """Show the participant where the debate stands. A program is shown nothing."""

    status: Status


@dataclass(frozen=True, slots=True)
class End:
    """It is over: stop everything. No effect follows this one, ever."""

    outcome: Outcome
    reason: str
    objection: Objection | None = None
    """What TLS had against the connection, where that is why."""


Action = (
    SendControl | SendData | OpenControl | OpenData | RunTurn | CancelTurn | RestartChat | Note | Tell | Show
)
Effect = Action | End
