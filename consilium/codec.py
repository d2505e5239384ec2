"""Lines to typed messages and back (§5.1). Any failure is one `PeerError` with one code.

1. JSON is strict: one object a line, UTF-8, no NaN, no duplicate keys, bounded depth and width.
2. The id is read before the version is judged, the version before the type, and the type before the fields,
   so that each refusal has its code and names its message.
3. What a peer wrote never comes back in the text of a refusal: it may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeGuard, TypeVar, get_args

import orjson
from pydantic import TypeAdapter, ValidationError

from consilium import messages
from consilium.errors import ErrorCode, PeerError

MAX_DEPTH = 16
"""How deep objects and arrays may be nested, the line's own object included."""

MAX_MEMBERS = 2048
"""How many members all objects and arrays of a line may have together."""

MAX_ARBITER_MEMBERS = 128 * 1024
"""The same for a line from the Arbiter: a STATUS tells of every seat."""

MAX_ID = 64
"""Longest ``msg_id``, in characters."""

MessageT = TypeVar("MessageT", bound=messages.Message)


@dataclass(frozen=True, slots=True)
class Line(Generic[MessageT]):
    """One decoded line: the message and what correlates it (§5.1)."""

    msg_id: str
    in_reply_to: str | None
    message: MessageT


class Codec(Generic[MessageT]):
    """Reads the messages of one channel and direction.

    ``types`` are the wire types that it lets through. Only the Arbiter sends ERROR: a union that holds it is
    of lines from the Arbiter, which may have more members.
    """

    def __init__(self, union: Any) -> None:
        """``union`` is one of the unions of `consilium.messages`."""
        adapter: TypeAdapter[MessageT] = TypeAdapter(union)
        self._validate = adapter.validator.validate_python
        self.types = frozenset(wire_type(member) for member in get_args(get_args(union)[0]))
        self.max_members = MAX_ARBITER_MEMBERS if wire_type(messages.Error) in self.types else MAX_MEMBERS

    def decode(self, line: bytes) -> Line[MessageT]:
        """Read one line.

        Raises `PeerError`: MALFORMED, PROTOCOL_VERSION_UNSUPPORTED, POLICY_DENIED (a type of another channel
        or direction) or TOO_LARGE (a text).
        """
        fields = parse_object(line, self.max_members)
        msg_id, in_reply_to = _read_envelope(fields)
        kind = fields.get("type")
        if not isinstance(kind, str) or kind not in self.types:
            raise self._refuse_type(kind, msg_id)
        try:
            # On the wire a field has one name: the alias, where there is one.
            message: MessageT = self._validate(fields, by_alias=True, by_name=False)
        except ValidationError as error:
            raise _refuse_fields(kind, error, msg_id) from None
        return Line(msg_id, in_reply_to, message)

    @staticmethod
    def _refuse_type(kind: Any, msg_id: str) -> PeerError:
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


def parse_object(line: bytes, max_members: int = MAX_MEMBERS) -> dict[str, Any]:
    """Parse one strict JSON object. Raises `PeerError` (MALFORMED)."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise PeerError(ErrorCode.MALFORMED, "not one JSON object", detail=str(error)) from None
    if type(value) is not dict:
        raise PeerError(ErrorCode.MALFORMED, "not one JSON object", detail=type(value).__name__)
    _check_shape(value, max_members)
    # Written again, each key stands once: a line that comes out the same, as ours do, had none twice.
    if orjson.dumps(value) != line and _count_colons(value) != _count_written_colons(line):
        raise PeerError(ErrorCode.MALFORMED, "duplicate key")
    return value


def wire_type(model: type[messages.Message]) -> str:
    """The ``type`` that a message class carries on the wire."""
    return str(model.model_fields["type"].default)


def _check_shape(document: dict[str, Any], max_members: int) -> None:
    """Judge depth and width, one level after the other."""
    members = 0
    level: list[Any] = [document]
    for _ in range(MAX_DEPTH):
        members += sum(map(len, level))
        if members > max_members:
            raise PeerError(ErrorCode.MALFORMED, f"more than {max_members} members")
        level = [
            child
            for container in level
            for child in (container.values() if type(container) is dict else container)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return
    raise PeerError(ErrorCode.MALFORMED, f"nested deeper than {MAX_DEPTH}")


def _count_colons(value: Any) -> int:
    """Count the colons that the text of ``value`` holds; of two equal keys ``value`` has but one."""
    if type(value) is str:
        return value.count(":")
    if type(value) is list:
        return sum(map(_count_colons, value))
    if type(value) is dict:
        return sum(key.count(":") + 1 + _count_colons(child) for key, child in value.items())
    return 0


def _count_written_colons(line: bytes) -> int:
    """Count the colons of a JSON text, those that are written as an escape included."""
    escapes = line.replace(rb"\\", b"")  # an escaped backslash begins no escape
    return line.count(b":") + escapes.count(rb"\u003a") + escapes.count(rb"\u003A")


def _read_envelope(fields: dict[str, Any]) -> tuple[str, str | None]:
    """Judge what every line carries (§5.1); return msg_id and in_reply_to."""
    msg_id = fields.get("msg_id")
    if not _is_id(msg_id):
        raise PeerError(ErrorCode.MALFORMED, f"msg_id must be a string of 1 to {MAX_ID} characters")
    version = fields.get("protocol_version")
    if type(version) is not int or version != messages.PROTOCOL_VERSION:
        raise PeerError(
            ErrorCode.PROTOCOL_VERSION_UNSUPPORTED,
            f"this end speaks protocol_version {messages.PROTOCOL_VERSION}",
            in_reply_to=msg_id,
        )
    in_reply_to = fields.get("in_reply_to")
    if in_reply_to is not None and not _is_id(in_reply_to):
        raise PeerError(ErrorCode.MALFORMED, "in_reply_to must be a msg_id", in_reply_to=msg_id)
    return msg_id, in_reply_to


def _is_id(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= MAX_ID


def _refuse_fields(kind: str, error: ValidationError, msg_id: str) -> PeerError:
    """Name the first wrong field and the rule that it breaks."""
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    # The first part is the type. A key of a map is the peer's own word, and no field's name.
    parts = [str(part) for part in problem["loc"][1:] if isinstance(part, int) or part in FIELDS]
    code = ErrorCode.TOO_LARGE if problem["type"] == messages.TOO_MANY_BYTES else ErrorCode.MALFORMED
    return PeerError(code, f"{kind}: {'.'.join(parts)}: {problem['msg']}"[:300], in_reply_to=msg_id)


ALL_TYPES = frozenset(
    wire_type(model)
    for model in vars(messages).values()
    if isinstance(model, type) and issubclass(model, messages.Message) and "type" in model.model_fields
)

FIELDS = frozenset(
    field.alias or name
    for model in vars(messages).values()
    if isinstance(model, type) and issubclass(model, messages.Message)
    for name, field in model.model_fields.items()
)
