"""What messages are made of: their base, what a field may hold, and the few words that some choose from.

`consilium.messages` passes all of them on, so that one import serves who speaks the protocol.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, StringConstraints
from pydantic_core import CoreSchema, PydanticCustomError


class Message(BaseModel):
    """Base of everything that travels and of its parts: strict, frozen, deaf to unknown fields."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", populate_by_name=True)


MAX_SPEECH_BYTES = 64 * 1024
"""Largest text of one contribution in UTF-8 bytes; a council may say less (``limits.speech_bytes``)."""

TOO_MANY_BYTES = "too_many_bytes"
"""Pydantic's name of the problem that `Text` has with a longer one."""


def _at_most_speech_bytes(text: str) -> str:
    # No character takes more than four bytes, so an ordinary text is not encoded to be counted.
    if len(text) > MAX_SPEECH_BYTES // 4 and len(text.encode()) > MAX_SPEECH_BYTES:
        raise PydanticCustomError(
            TOO_MANY_BYTES, "Text should have at most {limit} bytes", {"limit": MAX_SPEECH_BYTES}
        )
    return text


Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,64}$")]
"""A logical name (§5.2): lower-case letters, digits, underscore; nothing that merely looks alike."""

ParticipantId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,64}_[0-9A-F]{8}$")]
"""A display identifier (§5.2): the logical name and eight digits of the certificate's fingerprint."""

SeatRef = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,64}(_[0-9A-F]{8})?$")]
"""How an operator names a seat: by display identifier, or by logical name where only one has it."""

MAX_LABEL = 200
"""Longest `Label`, in characters."""

Label = Annotated[str, StringConstraints(max_length=MAX_LABEL)]
"""A short line that a person reads: a role, a model, a version."""

QUOTA_EXHAUSTED = "quota_exhausted"
"""The reason of a pause for a seat whose client has nothing left of its quota."""

MAX_REFUSED = 20
"""Most lines in which a turn tells what its client wanted to do and was not allowed to."""

REFUSED_CHARS = 300
"""Longest of these lines, in characters."""

MAX_REASON = 2000
"""Longest `Reason`, in characters."""

Reason = Annotated[str, StringConstraints(max_length=MAX_REASON)]
"""Why something happened, for a person."""


def as_reason(text: str) -> str:
    """Cut ``text`` to what a `Reason` holds, visibly."""
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 1] + "…"


ItemT = TypeVar("ItemT")
Many = Annotated[tuple[ItemT, ...], Field(strict=False)]
"""A list, which a frozen message holds as a tuple."""

Refusal = Annotated[str, StringConstraints(max_length=REFUSED_CHARS)]
"""One thing that a client wanted to do and was not allowed to: its own words, like any text of its."""

Refused = Annotated[tuple[Refusal, ...], Field(strict=False, max_length=MAX_REFUSED)]
"""What a client was not allowed to do in a turn."""

Topic = Annotated[str, StringConstraints(min_length=1, max_length=8000)]
Text = Annotated[str, AfterValidator(_at_most_speech_bytes)]
NonEmptyText = Annotated[str, StringConstraints(min_length=1), AfterValidator(_at_most_speech_bytes)]
Token = Annotated[str, StringConstraints(max_length=200)]
MAX_COUNT = 2**53
"""Largest whole number on the wire: every reader of JSON holds it exactly."""

MAX_USD = 1e12
"""Largest amount on the wire."""

Millis = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Usd = Annotated[float, Field(ge=0, le=MAX_USD, allow_inf_nan=False)]


class Word(StrEnum):
    """Base of every field that is one of a few words. On the wire it is a string, also to a strict model."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Word], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Take the string for the word."""
        return cast("CoreSchema", {**handler(source), "strict": False})


class Phase(Word):
    """The moderator's three buttons (§13.3)."""

    OPENING = "OPENING"
    REBUTTAL = "REBUTTAL"
    CLOSING = "CLOSING"


class DebateState(Word):
    """§7.3."""

    WAITING_QUORUM = "WAITING_QUORUM"
    READY = "READY"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    RESUMING = "RESUMING"
    FINISHED = "FINISHED"
    STOPPED_BY_CAP = "STOPPED_BY_CAP"
    ERROR = "ERROR"


class DisconnectPolicy(Word):
    """What an explicit absence means for the seat (§8)."""

    DROP = "drop"
    KEEP_ALIVE = "keep_alive"


class PromptSent(Word):
    """Whether a failed turn's prompt may have reached the client: decides what may be tried again."""

    NO = "no"
    MAYBE = "maybe"
    YES = "yes"


class Fault(Word):
    """What kept a client from producing its turn."""

    START_FAILED = "start_failed"
    FIRST_BYTE_TIMEOUT = "first_byte_timeout"
    STALLED = "stalled"
    DEADLINE = "deadline"
    CLIENT_ERROR = "client_error"
    EMPTY_ANSWER = "empty_answer"
    UNREADABLE_ANSWER = "unreadable_answer"
    ANSWER_TOO_LARGE = "answer_too_large"
    SESSION_MISMATCH = "session_mismatch"
    QUOTA = "quota"
    INTERNAL = "internal"


class Recovery(Word):
    """What the operator chooses for a faulty seat when resuming (§7.3)."""

    KEEP = "keep"
    COLD = "cold"
    SKIP = "skip"
    REMOVE = "remove"


class When(Word):
    """When an operator's change takes effect: at the next turn, or when the present round is complete."""

    NOW = "now"
    ROUND_END = "round_end"
