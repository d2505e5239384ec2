"""The drift gauge: how much of the topic's own words stand in a turn. Mechanical, and no verdict.

A turn may speak of the topic in other words, and name its words without speaking of it. What the gauge is
good for is to be seen falling.
"""

from __future__ import annotations

import re

SHORTEST = 4
"""Letters of the shortest word that counts: shorter ones are mostly grammar."""

_WORD = re.compile(r"\w+")


def topic_overlap(topic: str, text: str) -> float | None:
    """Return the share of the topic's distinct words that stand in ``text``, 0 to 1; None if it has none."""
    wanted = _words(topic)
    return len(wanted & _words(text)) / len(wanted) if wanted else None


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.casefold()) if len(word) >= SHORTEST}
