"""Lines to typed messages and back (§5.1). Any failure is one `PeerError` with one code.

1. JSON is strict: one object a line, UTF-8, no NaN, no duplicate keys, bounded depth and width.
2. The version is judged before the type, and the type before the fields, so that each refusal has its code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args

import orjson
from pydantic import TypeAdapter, ValidationError

from consilium import messages
from consilium.errors import ErrorCode, PeerError

MAX_DEPTH = 16
MAX_MEMBERS = 2048
MAX_ID = 64

MessageT = TypeVar("MessageT", bound=messages.Message)


@dataclass(frozen=True, slots=True)
class Line(Generic[MessageT]):
    """One decoded line: the message and what correlates it (§5.1)."""

    msg_id: str
    in_reply_to: str | None
    message: MessageT


class Codec(Generic[MessageT]):
    """Reads the messages of one channel and direction."""

    def __init__(self, union: Any) -> None:
        """``union`` is one of the unions of `consilium.messages`."""
        self._adapter: TypeAdapter[MessageT] = TypeAdapter(union)
        self.types = frozenset(wire_type(member) for member in get_args(get_args(union)[0]))

    def decode(self, line: bytes) -> Line[MessageT]:
        """Read one line. Raises `PeerError`: MALFORMED, PROTOCOL_VERSION_UNSUPPORTED or POLICY_DENIED."""
        fields = parse_object(line)
        msg_id = fields.get("msg_id")
        if not isinstance(msg_id, str) or not 0 < len(msg_id) <= MAX_ID:
            raise PeerError(ErrorCode.MALFORMED, "msg_id must be a string of 1 to 64 characters")
        version = fields.get("protocol_version")
        if type(version) is not int or version != messages.PROTOCOL_VERSION:
            raise PeerError(
                ErrorCode.PROTOCOL_VERSION_UNSUPPORTED,
                f"this end speaks protocol_version {messages.PROTOCOL_VERSION}",
                in_reply_to=msg_id,
            )
        in_reply_to = fields.get("in_reply_to")
        if in_reply_to is not None and not (isinstance(in_reply_to, str) and len(in_reply_to) <= MAX_ID):
            raise PeerError(ErrorCode.MALFORMED, "in_reply_to must be a msg_id", in_reply_to=msg_id)
        kind = fields.get("type")
        if not isinstance(kind, str) or kind not in self.types:
            raise self._refuse_type(kind, msg_id)
        try:
            message = self._adapter.validate_json(line)
        except ValidationError as error:
            raise PeerError(
                ErrorCode.MALFORMED, f"{kind}: {_first_problem(error)}", in_reply_to=msg_id
            ) from None
        return Line(msg_id, in_reply_to, message)

    def _refuse_type(self, kind: Any, msg_id: str) -> PeerError:
        if isinstance(kind, str) and kind in ALL_TYPES:
            return PeerError(
                ErrorCode.POLICY_DENIED, f"{kind} may not be sent on this channel", in_reply_to=msg_id
            )
        return PeerError(ErrorCode.MALFORMED, "unknown message type", in_reply_to=msg_id)


def encode(message: messages.Message, msg_id: str, in_reply_to: str | None = None) -> bytes:
    """Write one line, newline included."""
    fields: dict[str, Any] = {"protocol_version": messages.PROTOCOL_VERSION, "msg_id": msg_id}
    if in_reply_to is not None:
        fields["in_reply_to"] = in_reply_to
    fields |= message.model_dump(by_alias=True)
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


def parse_object(line: bytes) -> dict[str, Any]:
    """Parse one strict JSON object. Raises `PeerError` (MALFORMED)."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise PeerError(ErrorCode.MALFORMED, "not one JSON object", detail=str(error)) from None
    if type(value) is not dict:
        raise PeerError(ErrorCode.MALFORMED, "not one JSON object", detail=type(value).__name__)
    members, colons = _measure(value, MAX_DEPTH)
    if members > MAX_MEMBERS:
        raise PeerError(ErrorCode.MALFORMED, f"more than {MAX_MEMBERS} members")
    # A parser that keeps the last of two equal keys loses one colon of the text. An escaped colon
    # would hide that, and is rare enough for the slow and certain way.
    if b"\\u003" in line:
        _refuse_duplicates(line)
    elif line.count(b":") != colons:
        raise PeerError(ErrorCode.MALFORMED, "duplicate key")
    return value


def wire_type(model: type[messages.Message]) -> str:
    """The ``type`` that a message class carries on the wire."""
    return str(model.model_fields["type"].default)


def _measure(value: Any, depth: int) -> tuple[int, int]:
    """Count the members below ``value``, and the colons that its text must hold."""
    if depth == 0:
        raise PeerError(ErrorCode.MALFORMED, f"nested deeper than {MAX_DEPTH}")
    members = len(value)
    colons = 0
    children = value
    if type(value) is dict:
        colons += members + sum(key.count(":") for key in value)
        children = value.values()
    for child in children:
        if type(child) is str:
            colons += child.count(":")
        elif type(child) in (dict, list):
            below, inside = _measure(child, depth - 1)
            members += below
            colons += inside
    return members, colons


def _refuse_duplicates(line: bytes) -> None:
    def pairs(items: list[tuple[str, Any]]) -> None:
        if len({key for key, _ in items}) != len(items):
            raise PeerError(ErrorCode.MALFORMED, "duplicate key")

    json.loads(line, object_pairs_hook=pairs)


def _first_problem(error: ValidationError) -> str:
    """Name the field and the rule, never the value: it may be anything."""
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in problem["loc"][1:]) or "message"
    return f"{where}: {problem['msg']}"[:300]


ALL_TYPES = frozenset(
    wire_type(model)
    for model in vars(messages).values()
    if isinstance(model, type) and issubclass(model, messages.Message) and "type" in model.model_fields
)
