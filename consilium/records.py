"""The transcript's records (§5.6), their chain, and what proves that a file is whole.

1. One record is one line of JSON, with nothing raw in it that a terminal obeys. ``seq`` counts from 0 without
   a gap; ``prev`` is the SHA-256 of the line before it, newline excluded, so that a cut, a splice or an edit
   shows.
2. A record holds what happened, never what a peer sent beyond the fields that are named here.
3. The head (`Head`) is kept beside the file, signed by the Arbiter: a chain alone cannot show a cut tail.

`consilium.inspection` judges a file by these rules; `consilium.transcript` reads one.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from consilium.console import obeyed_by_none
from consilium.errors import TranscriptError
from consilium.messages import Fault, Label, Meta, ParticipantId, Phase, Refused, Usage

FORMAT: Literal[1] = 1
GENESIS = "sha256:" + "0" * 64
"""What the first record gives as the hash of the record before it."""

MAX_RECORD_BYTES = 16 * 1024 * 1024
"""Longest line that is written or read, newline excluded: a reader of a file from anywhere stays bounded."""


class TurnOutcome(StrEnum):
    """How a turn ended. Each turn ends exactly once."""

    SPEECH = "speech"
    SKIP = "skip"
    REVOKED = "revoked"
    FAILED = "failed"
    LOST = "lost"
    FORCED = "forced"


class EventName(StrEnum):
    """What an event record may say (§5.5). The last group are additions: the journal needs them."""

    HUMAN_SKIP = "HUMAN_SKIP"
    PARTICIPANT_MEMORY_LOST = "PARTICIPANT_MEMORY_LOST"
    PARTICIPANT_JOINED_COLD = "PARTICIPANT_JOINED_COLD"
    MODERATOR_STEERING = "MODERATOR_STEERING"
    PHASE_CHANGED = "PHASE_CHANGED"
    CAP_REACHED = "CAP_REACHED"

    PARTICIPANT_JOINED = "PARTICIPANT_JOINED"
    PARTICIPANT_LEFT = "PARTICIPANT_LEFT"
    PARTICIPANT_UPDATED = "PARTICIPANT_UPDATED"
    PARTICIPANT_FAULT = "PARTICIPANT_FAULT"
    PARTICIPANT_RECOVERED = "PARTICIPANT_RECOVERED"
    TURN_STARTED = "TURN_STARTED"
    ROUND_COMPLETED = "ROUND_COMPLETED"
    TOPIC_CHANGED = "TOPIC_CHANGED"
    OPERATOR_COMMAND = "OPERATOR_COMMAND"
    DEBATE_STARTED = "DEBATE_STARTED"
    DEBATE_PAUSED = "DEBATE_PAUSED"
    DEBATE_RESUMING = "DEBATE_RESUMING"
    DEBATE_RESUMED = "DEBATE_RESUMED"
    DEBATE_ENDED = "DEBATE_ENDED"
    PAUSE_OVERDUE = "PAUSE_OVERDUE"
    USAGE_UNREPORTED = "USAGE_UNREPORTED"
    ARBITER_RESTARTED = "ARBITER_RESTARTED"


class Entry(BaseModel):
    """Base of every record's body: what the debate decides to say. The journal adds seq, prev and ts."""

    # JSON has no infinity and no NaN: orjson would write null, and the record could not be read back.
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


class HeaderRecord(Entry):
    """The first record: what the debate is."""

    kind: Literal["header"] = "header"
    format: Literal[1] = FORMAT
    debate_id: Label
    topic: str
    council: dict[str, JsonValue]
    arbiter: Label


class TurnRecord(Entry):
    """One turn, ended (§5.6). ``tokens`` and ``usage`` are null where the client reports none.

    ``fault`` is why a turn FAILED; ``refused`` is what its client was not allowed to do, in that one's words.
    """

    kind: Literal["turn"] = "turn"
    turn_id: int
    participant_id: ParticipantId
    phase: Phase
    outcome: TurnOutcome
    meta: Meta
    tokens: dict[Literal["in", "out"], int | None] | None
    usage: Usage | None
    duration_s: float
    text: str | None
    detail: str | None = None
    fault: Fault | None = None
    refused: Refused = ()


class EventRecord(Entry):
    """One event (§5.5)."""

    kind: Literal["event"] = "event"
    event: EventName
    participant_id: ParticipantId | None = None
    turn_id: int | None = None
    visible: bool = False
    data: dict[str, JsonValue] = {}


AnyEntry = HeaderRecord | TurnRecord | EventRecord
_ENTRY: TypeAdapter[AnyEntry] = TypeAdapter(Annotated[AnyEntry, Field(discriminator="kind")])


class Stored(BaseModel):
    """A record as read back: its place in the chain, its time, its entry."""

    model_config = ConfigDict(strict=True, frozen=True)

    seq: int
    prev: str
    ts: str
    entry: AnyEntry


class Head(BaseModel):
    """How much of the file the Arbiter vouches for.

    ``signature`` is base64 of an ECDSA-SHA256 signature over `signed_bytes`, by the key of ``certificate``
    (PEM).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = FORMAT
    debate_id: str
    count: Annotated[int, Field(ge=0)]
    last: str
    certificate: str = ""
    signature: str = ""

    def signed_bytes(self) -> bytes:
        """What the signature covers: everything but itself."""
        return orjson.dumps(self.model_dump(exclude={"signature"}), option=orjson.OPT_SORT_KEYS)


def seal(entry: AnyEntry, *, seq: int, prev: str, ts: str) -> bytes:
    """Write ``entry`` as the line at ``seq``, newline excluded. ``ts`` is RFC 3339 in UTC.

    Raises `TranscriptError` when ``entry`` cannot be written so that it reads back: a lone surrogate, an
    integer over 64 bits, or more than `MAX_RECORD_BYTES`.
    """
    body: dict[str, Any] = {"seq": seq, "prev": prev, "ts": ts}
    try:
        line = obeyed_by_none(orjson.dumps(body | entry.model_dump(mode="json")))
    except (orjson.JSONEncodeError, ValueError) as error:
        raise TranscriptError(f"record {seq} cannot be written as JSON: {error}") from None
    if len(line) > MAX_RECORD_BYTES:
        raise TranscriptError(f"record {seq} is longer than {MAX_RECORD_BYTES} bytes")
    return line


def digest(line: bytes) -> str:
    """The hash that the next record carries as ``prev``."""
    return "sha256:" + hashlib.sha256(line).hexdigest()


def timestamp(seconds: float) -> str:
    """The ``ts`` of a record: ``seconds`` since the epoch as RFC 3339 in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def unseal(line: bytes) -> Stored:
    """Read one line back. Raises `TranscriptError` when it is not a record of ours."""
    try:
        fields = orjson.loads(line)
        place = {key: fields.pop(key) for key in ("seq", "prev", "ts")}
        return Stored(**place, entry=_ENTRY.validate_json(orjson.dumps(fields)))
    except (orjson.JSONDecodeError, KeyError, AttributeError, TypeError, ValidationError) as error:
        raise TranscriptError(f"not a record: {type(error).__name__}") from None
