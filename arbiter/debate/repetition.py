"""The repetition index (§5.7): how much of a turn its seat has said before. Mechanical, and no verdict.

The index is the share of a turn's distinct word 3-grams that stand in the seat's own earlier turns; an
inverted index from 3-gram to turns also names the one turn that is repeated most. Both cost about the same at
the thousandth turn as at the tenth. A paraphrase in new words is not found: nothing lexical finds it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_WORD = re.compile(r"\w+")

Gram = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Score:
    """``share`` is 0 to 1; ``turn`` is the earlier turn that shares most with this one, if any does."""

    share: float
    turn: int | None


class Repetition:
    """What one seat has said, by its word 3-grams."""

    def __init__(self) -> None:
        self._turns: dict[Gram, list[int]] = {}

    def add(self, turn_id: int, text: str) -> Score | None:
        """Score a turn against the seat's earlier ones, then remember it. None: too short to be scored."""
        words = _WORD.findall(text.casefold())
        grams = set(zip(words, words[1:], words[2:], strict=False))
        if not grams:
            return None
        known = [self._turns[gram] for gram in grams if gram in self._turns]
        repeated = Counter(turn for turns in known for turn in turns)
        for gram in grams:
            self._turns.setdefault(gram, []).append(turn_id)
        # Of turns that share equally much, the earliest: it is where the words come from.
        most = min(repeated, key=lambda turn: (-repeated[turn], turn), default=None)
        return Score(len(known) / len(grams), most)
