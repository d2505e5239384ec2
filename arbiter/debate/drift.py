"""The drift gauge: how much of the topic's own words stand in a turn. Mechanical, and no verdict.

A turn may speak of the topic in other words, and name its words without speaking of it. What the gauge is
good for is to be seen falling.
"""

from __future__ import annotations

import re

SHORTEST = 4
"""Letters of the shortest word that counts: shorter ones are mostly grammar."""

_WORD = re.compile(r"\w+")


class Drift:
    """One seat's gauge, of its latest speech. Read once for each speech, however often somebody asks."""

    def __init__(self) -> None:
        self._text: str | None = None
        self._read: tuple[str, float | None] | None = None  # against which topic, and what came of it

    def hear(self, text: str) -> None:
        """Go by this speech from now on."""
        self._text, self._read = text, None

    def overlap(self, topic: str) -> float | None:
        """`topic_overlap` of the latest speech and ``topic``; None as well before there is a speech."""
        if self._text is None:
            return None
        if self._read is None or self._read[0] != topic:
            self._read = topic, topic_overlap(topic, self._text)
        return self._read[1]


def topic_overlap(topic: str, text: str) -> float | None:
    """Return the share of the topic's distinct words that stand in ``text``, 0 to 1; None if it has none."""
    wanted = _words(topic)
    return len(wanted & _words(text)) / len(wanted) if wanted else None


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.casefold()) if len(word) >= SHORTEST}
