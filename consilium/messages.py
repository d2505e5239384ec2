"""Every message of protocol 4 (§5.4, §5.5, §3.3.D), one class a message, one union a channel and direction.

What only an operator sends or hears is written in `consilium.governing` and passed on here.

1. A message says what travels; it never says whether it may. That is `arbiter.permissions`.
2. Unknown fields are ignored and go nowhere; unknown types are refused.
3. ``protocol_version``, ``msg_id`` and ``in_reply_to`` belong to the line, not to the message:
   `consilium.codec` adds and removes them.

Wire ``TURN_START`` is class `TurnStart`. Additions to the specification are named in docs/protocol.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, computed_field

from consilium.governing import AdminOk as AdminOk
from consilium.governing import ForceTurnEnd as ForceTurnEnd
from consilium.governing import Inject as Inject
from consilium.governing import Kick as Kick
from consilium.governing import Next as Next
from consilium.governing import Pause as Pause
from consilium.governing import Record as Record
from consilium.governing import Reload as Reload
from consilium.governing import Resume as Resume
from consilium.governing import SetPhase as SetPhase
from consilium.governing import SetTopic as SetTopic
from consilium.governing import Terminate as Terminate
from consilium.governing import Watch as Watch
from consilium.words import MAX_COUNT as MAX_COUNT
from consilium.words import MAX_LABEL as MAX_LABEL
from consilium.words import MAX_REASON as MAX_REASON
from consilium.words import MAX_REFUSED as MAX_REFUSED
from consilium.words import MAX_SPEECH_BYTES as MAX_SPEECH_BYTES
from consilium.words import MAX_USD as MAX_USD
from consilium.words import QUOTA_EXHAUSTED as QUOTA_EXHAUSTED
from consilium.words import REFUSED_CHARS as REFUSED_CHARS
from consilium.words import TOO_MANY_BYTES as TOO_MANY_BYTES
from consilium.words import Count as Count
from consilium.words import DebateState as DebateState
from consilium.words import DisconnectPolicy as DisconnectPolicy
from consilium.words import Fault as Fault
from consilium.words import Finite as Finite
from consilium.words import ItemT as ItemT
from consilium.words import Label as Label
from consilium.words import Many as Many
from consilium.words import Message as Message
from consilium.words import Millis as Millis
from consilium.words import Name as Name
from consilium.words import NonEmptyText as NonEmptyText
from consilium.words import ParticipantId as ParticipantId
from consilium.words import Phase as Phase
from consilium.words import PromptSent as PromptSent
from consilium.words import Reason as Reason
from consilium.words import Recovery as Recovery
from consilium.words import Refusal as Refusal
from consilium.words import Refused as Refused
from consilium.words import SeatRef as SeatRef
from consilium.words import Text as Text
from consilium.words import Token as Token
from consilium.words import Topic as Topic
from consilium.words import Usd as Usd
from consilium.words import When as When
from consilium.words import Word as Word
from consilium.words import as_reason as as_reason

PROTOCOL_VERSION = 4
"""The one version this code speaks (§5.1)."""


class Meta(Message):
    """What a seat says of itself (§5.3, §5.6). Recorded and shown; it entitles to nothing."""

    brand: Label | None = None
    model: Label | None = None
    effort: Label | None = None
    adapter: Label | None = None
    cli_version: Label | None = None
    harness_profile: Label | None = None
    role_label: Label | None = None
    role_prompt_hash: Label | None = None
    isolation: Literal["strict", "relaxed"] | None = None
    reports_usage: bool | None = None


class Usage(Message):
    """What one turn cost, as the client reports it. Null is unknown; zero is zero."""

    tokens_in: Count | None = None
    tokens_out: Count | None = None
    tokens_cached: Count | None = None
    usd: Usd | None = None
    model: Label | None = None
    first_byte_ms: Millis | None = None


class DeltaEntry(Message):
    """One contribution since the recipient's previous completed turn (§5.5)."""

    speaker: Label = Field(alias="from")
    role_label: Label | None = Field(default=None, exclude_if=lambda label: label is None)
    text: Text


# --- control, seat -> Arbiter ------------------------------------------------------------------------


class Reg(Message):
    """Register a participant (§5.4). ``disconnect_policy`` and ``required`` are requests."""

    type: Literal["REG"] = "REG"
    name: Name
    disconnect_policy: DisconnectPolicy = DisconnectPolicy.DROP
    required: bool = False
    meta: Meta = Meta()


class StateUpdate(Message):
    """Change one's own state, in either direction (§5.4, §8.3)."""

    type: Literal["STATE_UPDATE"] = "STATE_UPDATE"
    name: Name | None = None
    required: bool | None = None
    disconnect_policy: DisconnectPolicy | None = None


class Unreg(Message):
    """Leave, by choice (§5.4)."""

    type: Literal["UNREG"] = "UNREG"
    name: Name | None = None
    reason: Reason = ""


class Ack(Message):
    """The wrapper has the turn (§5.4). Sent by the wrapper, never by the AI."""

    type: Literal["ACK"] = "ACK"
    turn_id: Count


class TurnEnd(Message):
    """The turn is over (§5.4). Without a SPEECH it is a skip.

    ``speech`` says that a SPEECH was sent on the data channel: the two channels are two connections,
    and this message can overtake it. ``usage`` is what a turn without one took: a client that passes was
    asked all the same. ``refused`` tells, a line each, what the client was not allowed to do in this turn.
    """

    type: Literal["TURN_END"] = "TURN_END"
    turn_id: Count
    speech: bool = False
    usage: Usage | None = None
    refused: Refused = ()


class TurnFailed(Message):
    """The client did not produce the turn: pause now, not at the deadline.

    ``partial_bytes`` is how much of an answer the wrapper had received; null is unknown, 0 is nothing.
    ``resets_at`` is when a quota that is used up comes back: RFC 3339 in UTC, or the client's own words where
    those name no moment. ``refused`` as in TURN_END.
    """

    type: Literal["TURN_FAILED"] = "TURN_FAILED"
    turn_id: Count
    fault: Fault
    prompt_sent: PromptSent
    detail: Reason = ""
    partial_bytes: Count | None = None
    resets_at: Label | None = None
    refused: Refused = ()


class StatusRequest(Message):
    """Ask for STATUS (§10, Ctrl+S; §3.3.D)."""

    type: Literal["STATUS"] = "STATUS"


# --- control, both ways ------------------------------------------------------------------------------


class Ping(Message):
    """Are you there? (§5.4)."""

    type: Literal["PING"] = "PING"
    ts: Millis


class Pong(Message):
    """I am; your ``ts`` comes back (§5.4)."""

    type: Literal["PONG"] = "PONG"
    ts: Millis


# --- control, Arbiter -> seat ------------------------------------------------------------------------


class RegOk(Message):
    """Registered (§5.4). ``required`` and ``disconnect_policy`` are the values applied.

    Two are additions: ``speech_bytes`` is the longest SPEECH that is taken, for a seat without the council
    file, and ``debate_id`` says which debate this is, so that no chat is carried from one into another.
    """

    type: Literal["REG_OK"] = "REG_OK"
    session_id: Token
    participant_id: ParticipantId
    debate_state: DebateState
    topic: Topic
    phase: Phase
    turn_counter: Count
    required: bool
    disconnect_policy: DisconnectPolicy
    data_token: Token
    heartbeat_interval_ms: Millis
    speech_bytes: Count | None = None
    debate_id: Label | None = None


class StateOk(Message):
    """One's own state as applied (§5.4)."""

    type: Literal["STATE_OK"] = "STATE_OK"
    required: bool
    disconnect_policy: DisconnectPolicy
    capped_by_profile: bool


class TurnStart(Message):
    """The floor is yours for ``deadline_ms`` (§5.4)."""

    type: Literal["TURN_START"] = "TURN_START"
    turn_id: Count
    phase: Phase
    deadline_ms: Millis


class TurnRevoked(Message):
    """The turn is no longer yours, for ever (§5.4, §6.4)."""

    type: Literal["TURN_REVOKED"] = "TURN_REVOKED"
    turn_id: Count
    reason: Reason


class SeatRecovery(Message):
    """The operator resumes: keep your chat, or start cold."""

    type: Literal["SEAT_RECOVERY"] = "SEAT_RECOVERY"
    mode: Literal[Recovery.KEEP, Recovery.COLD]


class DebatePaused(Message):
    """No turn will be assigned until the operator resumes (§5.4, §7.3). ``resets_at`` as in TURN_FAILED."""

    type: Literal["DEBATE_PAUSED"] = "DEBATE_PAUSED"
    reason: Reason
    missing: Many[ParticipantId] = ()
    resets_at: Label | None = None


class DebateResumed(Message):
    """Turns are assigned again (§5.4)."""

    type: Literal["DEBATE_RESUMED"] = "DEBATE_RESUMED"
    turn_counter: Count


class DebateEnded(Message):
    """The debate reached a terminal state (§5.4). ``cap`` names the cap that stopped it."""

    type: Literal["DEBATE_ENDED"] = "DEBATE_ENDED"
    outcome: Literal[DebateState.FINISHED, DebateState.STOPPED_BY_CAP, DebateState.ERROR]
    cap: Label | None = None
    turn_counter: Count


class Error(Message):
    """One refusal, one code (§5.4). The codes are `consilium.errors.ErrorCode`."""

    type: Literal["ERROR"] = "ERROR"
    code: Label
    message: Reason


class Cost(Message):
    """Consumption against the caps (§5.7). Unknown is null."""

    tokens_total: Count | None
    tokens_unknown_turns: Count
    tokens_estimated: Count
    usd_total: Usd | None
    rounds: Count
    elapsed_s: Finite
    caps: dict[Label, Finite]

    @computed_field  # type: ignore[prop-decorator]  # mypy: a property may not be decorated; pydantic's way
    @property
    def cap(self) -> int | None:
        """The cap on tokens, under the name that §5.7 gives it."""
        return None if (tokens := self.caps.get("max_tokens")) is None else int(tokens)


class SeatStatus(Message):
    """What is known of one seat, and what may be done about it where it is faulty (§5.7, §7.3)."""

    participant_id: ParticipantId
    connected: bool
    state: Label
    required: bool
    disconnect_policy: DisconnectPolicy
    role_label: Label | None
    brand: Label | None
    model: Label | None
    isolation: Literal["strict", "relaxed"] | None
    turns: Count
    last_turn: Count | None
    tokens: Count | None
    usd: Usd | None
    repeats_turn: Count | None
    fault: Reason | None
    prompt_sent: PromptSent | None
    partial_bytes: Count | None
    resets_at: Label | None
    last_active_s: Finite | None
    choices: Many[Label]


class Status(Message):
    """§5.7: where the debate stands, for somebody who was away."""

    type: Literal["STATUS"] = "STATUS"
    debate_state: DebateState
    reason: Reason | None
    phase: Phase
    topic: Topic
    turn_counter: Count
    turns_since: dict[ParticipantId, Count]
    speaking: ParticipantId | None
    cost: Cost
    repetition: dict[ParticipantId, Finite]
    topic_overlap: dict[ParticipantId, Finite]
    brands: Count | None
    seats: Many[SeatStatus]
    warnings: Many[Reason]


# --- data --------------------------------------------------------------------------------------------


class DataHello(Message):
    """Bind this data connection to a registered session, once (§5.5)."""

    type: Literal["DATA_HELLO"] = "DATA_HELLO"
    session_id: Token
    data_token: Token


class DataOk(Message):
    """Bound: only now is the seat in the rotation."""

    type: Literal["DATA_OK"] = "DATA_OK"


class Context(Message):
    """What the seat needs for its turn: topic and delta, never the history (§5.5).

    ``waiting`` counts the contributions for which there was no room: they come with the seat's next turn.
    """

    type: Literal["CONTEXT"] = "CONTEXT"
    turn_id: Count
    phase: Phase
    topic: Topic
    delta: Many[DeltaEntry]
    waiting: Count = 0


class Speech(Message):
    """The turn's text, clean (§5.5), with what the client says it cost."""

    type: Literal["SPEECH"] = "SPEECH"
    turn_id: Count
    text: NonEmptyText
    usage: Usage | None = None


class SystemEvent(Message):
    """Something happened that the record must show (§5.5)."""

    type: Literal["SYSTEM_EVENT"] = "SYSTEM_EVENT"
    event: Literal["HUMAN_SKIP", "PARTICIPANT_MEMORY_LOST"]
    participant_id: ParticipantId | None = None
    visible: bool = False


ControlFromSeat = Annotated[
    Reg | StateUpdate | Unreg | Ack | TurnEnd | TurnFailed | StatusRequest | Ping | Pong,
    Field(discriminator="type"),
]
ControlToSeat = Annotated[
    RegOk
    | StateOk
    | TurnStart
    | TurnRevoked
    | SeatRecovery
    | DebatePaused
    | DebateResumed
    | DebateEnded
    | Status
    | Ping
    | Pong
    | Error,
    Field(discriminator="type"),
]
DataFromSeat = Annotated[DataHello | Speech | SystemEvent, Field(discriminator="type")]
DataToSeat = Annotated[DataOk | Context | Error, Field(discriminator="type")]
AdminFromOperator = Annotated[
    StatusRequest
    | Inject
    | SetTopic
    | SetPhase
    | Kick
    | ForceTurnEnd
    | Next
    | Pause
    | Resume
    | Terminate
    | Reload
    | Watch
    | Ping
    | Pong,
    Field(discriminator="type"),
]
AdminToOperator = Annotated[AdminOk | Status | Record | Ping | Pong | Error, Field(discriminator="type")]
