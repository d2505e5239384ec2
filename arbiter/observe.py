"""What the Arbiter tells of its doings to whoever counts them. Whoever does not ask hears nothing.

1. Every method returns at once, raises nothing, and is called from the event loop's thread.
2. What is told once is told here. What stands somewhere (state, caps, tokens, sessions) is looked up there
   when somebody asks: a second count of it could differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arbiter.debate.effects import Channel
    from arbiter.edge.listener import HandshakeOutcome
    from consilium.errors import ErrorCode
    from consilium.records import TurnRecord


class Observer:
    """Hears what happens. This one does nothing about it: it is what an Arbiter has that nobody measures."""

    def turn_ended(self, turn: TurnRecord) -> None:
        """A turn has ended, and its record is on disk; or it was, when this Arbiter took up the debate."""

    def refused(self, code: ErrorCode) -> None:
        """Somebody was answered with an ERROR."""

    def rate_limited(self, channel: Channel) -> None:
        """Somebody sent more messages than its profile allows."""

    def shook_hands(self, outcome: HandshakeOutcome) -> None:
        """A connection came to one of the doors, and this became of it."""

    def session_opened(self, role: str) -> None:
        """A seat has registered, or an operator has connected."""

    def seat_gone(self, participant_id: str, heard: float) -> None:
        """A seat's session has ended; its last line came at ``heard``, on the monotonic clock."""

    def heartbeat_returned(self, participant_id: str, seconds: float) -> None:
        """A seat's PONG came, so long after its PING was queued."""

    def reloaded(self, *, taken: bool) -> None:
        """Certificates and profiles were read again, and taken or refused."""


NOBODY = Observer()
"""Who hears of everything and keeps nothing."""
