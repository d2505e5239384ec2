"""What each seat has yet to hear (§5.5): one published sequence, one cursor a seat.

1. A cursor moves only on its own seat's completed turn, to where the sequence stood when that turn's CONTEXT
   was made: what was said meanwhile belongs to the next one.
2. A sealed speech (decision 8) is not in the sequence until it is released, so no cursor can pass it.
3. Nobody is told their own words.
"""

from __future__ import annotations

from dataclasses import dataclass

MODERATOR = "moderator"
"""Speaker of what the operator injects; no seat can bear it, for a participant id has a suffix."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """Something that was said, by a participant id or by `MODERATOR`, and how it may be attributed.

    It outlives its speaker's seat.
    """

    speaker: str
    text: str
    pseudonym: str = MODERATOR
    role_label: str | None = MODERATOR


class Discourse:
    """Everything said, in the order in which seats may hear it."""

    def __init__(self) -> None:
        self._published: list[Contribution] = []
        self._sealed: list[Contribution] = []

    @property
    def position(self) -> int:
        """Where the sequence ends now."""
        return len(self._published)

    @property
    def sealed(self) -> int:
        """How many contributions wait for their release."""
        return len(self._sealed)

    def publish(self, contribution: Contribution) -> None:
        """Say it to everybody."""
        self._published.append(contribution)

    def seal(self, contribution: Contribution) -> None:
        """Hold it back until `release`."""
        self._sealed.append(contribution)

    def release(self) -> None:
        """Publish what was sealed, in the order in which it was said."""
        self._published += self._sealed
        self._sealed = []

    def since(self, cursor: int, listener: str) -> list[Contribution]:
        """What ``listener`` has not heard, from ``cursor`` on, without its own words."""
        return [said for said in self._published[cursor:] if said.speaker != listener]
