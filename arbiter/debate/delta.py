"""What each seat has yet to hear (§5.5): one published sequence, one cursor a seat.

1. A cursor moves only on its own seat's completed turn, to how far that turn's CONTEXT reached: what was said
   meanwhile belongs to the next one.
2. A sealed speech (decision 8) is not in the sequence until it is released, so no cursor can pass it.
3. Nobody is told their own words.
4. What is too much for one CONTEXT waits for the seat's next turn: oldest first, and nothing is left out. A
   seat that is far behind is told how much waits, and hears it in the order in which it was said.
"""

from __future__ import annotations

from dataclasses import dataclass

MODERATOR = "moderator"
"""Speaker of what the operator injects; no seat can bear it, for a participant id has a suffix."""


MAX_DELTA_BYTES = 4 * 1024 * 1024
"""Text in one delta, in UTF-8 bytes. JSON may write each as six, which leaves a quarter of the line limit.

It holds a round of 64 seats, each with the largest SPEECH: only who was long away ever has to wait.
"""

MAX_DELTA_ENTRIES = 4096
"""Contributions in one delta: what is written beside their text stays within the line, too."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """Something that was said, by a participant id or by `MODERATOR`, and how it may be attributed.

    It outlives its speaker's seat.
    """

    speaker: str
    text: str
    pseudonym: str = MODERATOR
    role_label: str | None = MODERATOR


@dataclass(frozen=True, slots=True)
class Portion:
    """What one CONTEXT tells. ``heard`` is where the cursor stands after it; ``waiting`` are left to tell."""

    told: tuple[Contribution, ...]
    heard: int
    waiting: int


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

    def portion(self, cursor: int, listener: str) -> Portion:
        """What ``listener`` has not heard, from ``cursor`` on, as far as one CONTEXT may hold it."""
        told: list[Contribution] = []
        size = 0
        for place in range(cursor, len(self._published)):
            said = self._published[place]
            if said.speaker == listener:
                continue
            size += len(said.text.encode())
            # The first is always told: a budget may delay, never silence.
            if told and (size > MAX_DELTA_BYTES or len(told) == MAX_DELTA_ENTRIES):
                rest = self._published[place:]
                return Portion(tuple(told), place, sum(later.speaker != listener for later in rest))
            told.append(said)
        return Portion(tuple(told), len(self._published), 0)
