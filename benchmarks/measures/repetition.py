"""P14: the repetition score of a turn, for a seat with a thousand turns against one with ten."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from arbiter.debate.repetition import Repetition
from benchmarks.table import Row, Target, p10, ratios
from benchmarks.texts import discourse

if TYPE_CHECKING:
    from benchmarks.setting import Setting

FEW, MANY = 10, 1000
CHARS = 1500
"""Of a turn: some 250 words."""

LOT = 40
"""Turns that a round scores on each side."""

TARGET = Target("<=", 3)
WHAT = f"score of a turn of {CHARS} characters after {MANY:,} own turns, CPU, x after {FEW}"


def measure(setting: Setting) -> list[Row]:
    """Fill P14."""
    rounds, lot = setting.rounds, setting.some(LOT)
    text = discourse(CHARS * (MANY + rounds * lot))
    turns = [text[start : start + CHARS] for start in range(0, len(text), CHARS)]
    many = _who_said(turns[:MANY])
    later: list[float] = []
    early: list[float] = []
    for number in range(rounds):
        start = MANY + number * lot
        fresh = turns[start : start + lot]
        later.append(p10([_scored(many, turn) for turn in fresh]))
        early.append(p10([_scored(_who_said(turns[:FEW]), turn) for turn in fresh]))
    basis = f"{statistics.median(later) * 1e6:.0f} us to {statistics.median(early) * 1e6:.0f} us"
    detail = {"subject_s": later, "reference_s": early}
    return [Row("P14", WHAT, TARGET, ratios(later, early), basis, wall=False, detail=detail)]


def _who_said(turns: list[str]) -> Repetition:
    """A seat that has said ``turns``, all of them scored."""
    said = Repetition()
    for number, turn in enumerate(turns):
        said.add(number, turn)
        said.read()
    return said


def _scored(said: Repetition, turn: str) -> float:
    """CPU seconds that scoring one more turn takes."""
    said.add(MANY, turn)
    then = time.process_time()
    said.read()
    return time.process_time() - then
