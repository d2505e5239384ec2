# ruff: noqa: RUF001 - the typographic characters are what is measured with
"""What the seats say: English as models write it, with typographic quotes, dashes and an accent or two."""

from __future__ import annotations

import itertools
import random  # noqa: TID251 - one fixed seed: the same words in every run

_PARAGRAPH = (
    "I would separate two questions that the last speaker ran together — what the old system costs us today, "
    "and what we believe a new one would cost. The first can be measured: “three incidents a quarter” is a "
    "number, and I accept it. The second is an estimate, and it’s the kind of estimate that teams get wrong "
    "in one direction only. Nobody’s rewrite was ever finished early. So when my colleague says that “the "
    "naïve path is to wrap it”, I’d ask for the evidence – not for the confidence. Wrapping leaves every "
    "behaviour in place, including the ones that customers rely on without telling us; rewriting means "
    "finding those one complaint at a time. That said, I concede the point on testing… a façade one can’t "
    "test is only another layer of the same trouble. My proposal is narrower: put the boundary where the "
    "money is counted, write the contract down, and replace what lies behind it piece by piece — each piece "
    "small enough to be thrown away. If after two quarters the incidents haven’t halved, I’ll argue for the "
    "rewrite myself. "
)

_SYLLABLES = (
    "an",
    "be",
    "cor",
    "de",
    "el",
    "fa",
    "gi",
    "ho",
    "in",
    "lu",
    "mé",
    "no",
    "or",
    "pe",
    "ri",
    "su",
    "ta",
)


def english(size: int) -> str:
    """A text of ``size`` UTF-8 bytes, or up to two fewer where a character would have been cut."""
    repeated = _PARAGRAPH.encode() * (size // len(_PARAGRAPH) + 1)
    return repeated[:size].decode(errors="ignore")


def discourse(size: int) -> str:
    """A text of ``size`` characters that does not repeat itself, to be cut into speeches.

    Its words are made up and fall off in frequency as those of a language do. A debate whose seats said the
    same thing every time would be no debate, and the Arbiter's repetition index would work for it.
    """
    vocabulary = ["".join(parts) for parts in itertools.product(_SYLLABLES, repeat=3)]
    frequencies = [1 / (rank + 10) for rank in range(len(vocabulary))]
    chance = random.Random(4)
    chance.shuffle(vocabulary)
    words = chance.choices(vocabulary, frequencies, k=size // 6)
    for place in range(0, len(words), 12):
        words[place] = f"“{words[place]}” —"
    return " ".join(words)[:size]
