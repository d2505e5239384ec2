"""What shall be done, as values. The shell performs them in order and decides nothing.

Every `Append` of one list is on disk before the first `Send` of it leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from consilium.errors import ErrorCode
    from consilium.messages import Message
    from consilium.records import EventRecord, HeaderRecord, TurnRecord


class Channel(StrEnum):
    """The three channels (§4)."""

    CONTROL = "control"
    DATA = "data"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Append:
    """Write this to the transcript."""

    entry: HeaderRecord | TurnRecord | EventRecord


@dataclass(frozen=True, slots=True)
class Send:
    """Send this to a session."""

    session: str
    channel: Channel
    message: Message
    in_reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer a message with an ERROR; nothing else happened."""

    session: str
    channel: Channel
    code: ErrorCode
    message: str
    in_reply_to: str


@dataclass(frozen=True, slots=True)
class EndSession:
    """Close a session's connections, after what is queued for it."""

    session: str
    reason: str


Effect = Append | Send | Refuse | EndSession
