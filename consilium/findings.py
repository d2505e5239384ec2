"""What can be wrong with a transcript, and how it is said (§5.6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class FindingKind(StrEnum):
    """What can be wrong with a transcript."""

    TORN = "torn"
    EDITED = "edited"
    MISSING = "missing"
    SPLICED = "spliced"
    DUPLICATE = "duplicate"
    MOVED = "moved"
    NUL = "nul"
    UNREADABLE = "unreadable"
    TRAILING = "trailing"
    CUT = "cut"
    WRONG_HEAD = "wrong_head"


UNFINISHED = frozenset({FindingKind.TORN, FindingKind.TRAILING})
"""What a file also shows while its debate is being written, or after its Arbiter was killed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. ``line`` counts from 1; ``seq`` is the first record it concerns, if known."""

    line: int
    seq: int | None
    kind: FindingKind
    message: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """The verdict on a file: how many records it holds, the hash of the last, and all that is wrong."""

    count: int
    last: str
    findings: tuple[Finding, ...]

    @property
    def whole(self) -> bool:
        """Nothing is wrong."""
        return not self.findings

    @property
    def sound(self) -> bool:
        """Nothing is wrong that a debate still being written does not show too."""
        return all(finding.kind in UNFINISHED for finding in self.findings)


class Place(NamedTuple):
    """A record as the chain sees it: the line it stands on, its place, the hash it carries and its own."""

    line: int
    seq: int
    prev: str
    digest: str


def span(word: str, first: int, last: int) -> str:
    """``record 7`` or ``records 7 to 9``."""
    return f"{word} {first}" if first == last else f"{word}s {first} to {last}"
