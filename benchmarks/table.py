"""Targets, figures and verdicts, and the table that shows them. Pure.

1. A ratio is made within a round, of two figures taken next to each other; the measured value is the median
   of the rounds' ratios. What the machine did to one round it did to both sides of it.
2. A figure that was not taken, or that a busy machine would falsify, is skipped with its reason. It is not a
   failure, and not a success.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BUSY = 2.0
"""A load of more than so many tasks a core falsifies wall times."""


class Verdict(StrEnum):
    """Whether a target was reached."""

    YES = "yes"
    NO = "no"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure has to be: at most, or at least, ``value``."""

    sense: Literal["<=", ">="]
    value: float

    def reached_by(self, figure: float) -> bool:
        """Compare."""
        return figure <= self.value if self.sense == "<=" else figure >= self.value

    def __str__(self) -> str:
        return f"{self.sense} {self.value:g}"


@dataclass(frozen=True, slots=True)
class Row:
    """One target and what was measured.

    ``figures`` is one value a round; ``basis`` says in absolute terms what they were made of. ``wall`` marks
    what a busy machine falsifies.
    """

    number: str
    what: str
    target: Target
    figures: tuple[float, ...]
    basis: str
    wall: bool
    skipped: str | None = None
    detail: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def measured(self) -> float | None:
        """The median of the rounds, if there were any."""
        return statistics.median(self.figures) if self.figures else None

    @property
    def verdict(self) -> Verdict:
        """Whether the target was reached."""
        measured = self.measured
        if self.skipped is not None or measured is None:
            return Verdict.SKIPPED
        return Verdict.YES if self.target.reached_by(measured) else Verdict.NO

    def as_json(self) -> dict[str, Any]:
        """Everything that is known of it."""
        plain = asdict(self)
        return plain | {"target": str(self.target), "measured": self.measured, "verdict": self.verdict.value}


def ratios(subject: Sequence[float], reference: Sequence[float]) -> tuple[float, ...]:
    """The rounds' ratios. Raises `ValueError` when one side has more rounds than the other."""
    return tuple(one / other for one, other in zip(subject, reference, strict=True))


def p10(figures: Sequence[float]) -> float:
    """The value that one in ten is below: what the work takes when nothing comes between."""
    return percentile(figures, 0.10)


def percentile(figures: Sequence[float], share: float) -> float:
    """The value at ``share`` (0 to 1) of the sorted figures, between two of them in proportion."""
    ordered = sorted(figures)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def too_busy(before: float, after: float, cores: int) -> str | None:
    """Why a wall figure taken between two looks at the load means nothing, if that is so."""
    worst = max(before, after)
    if worst > BUSY * cores:
        return f"load {worst:.1f} on {cores} cores"
    return None


def judged(rows: Sequence[Row], busy: str | None) -> list[Row]:
    """``rows``, with the wall figures among them skipped when the machine was too busy."""
    return [replace(row, skipped=row.skipped or busy) if row.wall else row for row in rows]


def render(rows: Sequence[Row]) -> str:
    """The table for a person, one line a row, and the reasons of what was skipped."""
    lines = [("", "what", "target", "measured", "range", "reached", "basis")]
    lines += [
        (row.number, row.what, str(row.target), *_measured(row), row.verdict.value, row.basis) for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    reasons = sorted({f"{row.number} skipped: {row.skipped}" for row in rows if row.skipped})
    return "\n".join([*text, *([""] if reasons else []), *reasons])


def _measured(row: Row) -> tuple[str, str]:
    if row.measured is None:
        return "-", "-"
    return f"{row.measured:.3g}", f"{min(row.figures):.3g}-{max(row.figures):.3g}"
