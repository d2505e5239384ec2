"""The repetition index (§5.7): how much of a turn its seat has said before. Mechanical, and no verdict.

The index is the share of a turn's distinct word 3-grams that stand in the seat's own earlier turns; an
index from each 3-gram to the turn that said it first also names the one turn that most of it comes from. Both
cost about the same at the thousandth turn as at the tenth, also for a seat that says one thing over and over:
what is said again adds nothing to the index. A paraphrase in new words is not found: nothing lexical finds
it.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass

_WORD = re.compile(r"\w+")

Gram = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Score:
    """``share`` is 0 to 1; ``turn`` is the earlier turn in which most of it was said first, if any was."""

    share: float
    turn: int | None


class Repetition:
    """What one seat has said, by its word 3-grams.

    A turn is not scored while others wait for what follows from it: the owner calls `read` when nobody does.
    """

    def __init__(self) -> None:
        self._first: dict[Gram, int] = {}
        self._unread: deque[tuple[int, str]] = deque()
        self._latest: Score | None = None

    def add(self, turn_id: int, text: str) -> None:
        """Remember a turn, to be scored by a `read`."""
        self._unread.append((turn_id, text))

    def read(self) -> None:
        """Score the earliest turn that has not been scored yet. Raises `IndexError` when there is none."""
        self._latest = self._score(*self._unread.popleft()) or self._latest

    @property
    def latest(self) -> Score | None:
        """The score of the latest turn read and long enough to have one, against the seat's earlier turns."""
        return self._latest

    def _score(self, turn_id: int, text: str) -> Score | None:
        words = _WORD.findall(text.casefold())
        grams = set(zip(words, words[1:], words[2:], strict=False))
        if not grams:
            return None
        repeated = Counter(self._first[gram] for gram in grams if gram in self._first)
        for gram in grams:
            self._first.setdefault(gram, turn_id)
        most = min(repeated, key=lambda turn: (-repeated[turn], turn), default=None)
        return Score(repeated.total() / len(grams), most)
