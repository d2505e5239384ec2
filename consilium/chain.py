"""The records in order, held against one another and against the head.

1. A break is a place where a record does not carry the hash of the record before it. A break alone does not
   say which side is false: what the head vouches for does, through the chain, back to the break before.
2. Past a gap nothing vouches: the hash that would is missing with the record.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from consilium.findings import Finding, FindingKind, Place, span
from consilium.records import GENESIS, Head

if TYPE_CHECKING:
    from collections.abc import Sequence

START = Place(0, -1, "", GENESIS)
"""What the first record follows on."""


class Chain:
    """``places`` by ascending ``seq``; ``explained`` are those of which something is already said."""

    def __init__(self, places: Sequence[Place], explained: set[int], head: Head | None) -> None:
        self._at = {place.seq: place for place in (START, *places)}
        self._end = places[-1].seq + 1 if places else 0
        self._head = head
        self._vouched = head.count - 1 if head else -1
        found = self._at.get(self._vouched) if self._vouched >= 0 else None
        self._fits = found.digest == head.last if head and found else None
        self._mismatch_told = self._vouched in explained
        pairs = list(pairwise((START, *places)))
        self._gaps = {after.seq for before, after in pairs if after.seq != before.seq + 1}
        self._breaks = {
            after.seq
            for before, after in pairs
            if after.seq not in self._gaps
            and after.prev != before.digest
            and not {before.seq, after.seq} & explained
        }

    def breaks(self) -> list[Finding]:
        """Judge each break by what stands on either side of it."""
        findings = []
        cuts = [0, *sorted((self._breaks | self._gaps) - {0}), self._end]
        judged = -1
        for before, seq, after in zip([0, *cuts], cuts, cuts[1:], strict=False):
            if seq not in self._breaks or seq == judged:
                continue
            if seq == 0 or (after == seq + 1 and after in self._breaks):
                judged = seq + 1
                self._mismatch_told |= self._vouched == seq
                findings.append(self._edited(seq, "it does not fit what stands around it"))
            else:
                findings.append(self._judge(before, seq, after))
        return findings

    def ends(self, unreadable: int) -> list[Finding]:
        """Hold the end of the file against the head. The last ``unreadable`` lines are no records."""
        if self._head is None:
            return []
        count, end = self._head.count, self._end
        line = self._at[end - 1].line
        if count > end:
            if count - end <= unreadable:
                return []
            lost = span("record", end + unreadable, count - 1)
            message = f"the tail is cut: {lost} of the {count} that the head vouches for"
            return [Finding(line + 1, end, FindingKind.CUT, message)]
        if count < end and (self._fits or count == 0):
            message = (
                f"{span('record', count, end - 1)} after the last that the head vouches for: "
                "the debate was still being written, its Arbiter was killed, or somebody added to the file"
            )
            first = min(seq for seq in self._at if seq >= count)
            return [Finding(self._at[first].line, count, FindingKind.TRAILING, message)]
        if self._fits is False and not self._mismatch_told:
            return [self._rewritten()]
        return []

    def _judge(self, start: int, seq: int, after: int) -> Finding:
        """Judge the break before ``seq``.

        The records from ``start`` up to it hold together, and so do those from it up to ``after``. The head
        speaks for or against one of the two stretches, or about neither.
        """
        within_before, within_after = start <= self._vouched < seq, seq <= self._vouched < after
        genuine_before, genuine_after = self._fits and within_before, self._fits and within_after
        false_before = self._fits is False and self._vouched == seq - 1
        false_after = self._fits is False and within_after
        self._mismatch_told |= false_before or false_after
        if genuine_after or false_before:
            return self._edited(seq - 1, f"record {seq} carries another hash for it")
        if false_after and after == seq + 1:
            return self._edited(seq, "it does not follow on the record before it, nor does the head know it")
        rest = span("record", seq, after - 1)
        if false_after or genuine_before:
            message = f"{rest} did not follow on record {seq - 1} as it stands here"
            return self._finding(seq, FindingKind.SPLICED, message)
        message = f"record {seq - 1} was edited after it was written, or {rest} came from elsewhere"
        if after == self._end:
            return self._finding(seq - 1, FindingKind.EDITED, message)
        return self._finding(seq, FindingKind.SPLICED, message)

    def _rewritten(self) -> Finding:
        """The chain holds, and the head knows another record where it ends."""
        seq = self._vouched
        if seq == self._end - 1:
            return self._edited(seq, "the head gives another hash for it")
        message = (
            f"the head gives another hash for record {seq}: the file was written anew from there or earlier"
        )
        return self._finding(seq, FindingKind.SPLICED, message)

    def _edited(self, seq: int, proof: str) -> Finding:
        message = f"record {seq} was edited after it was written, or replaced: {proof}"
        return self._finding(seq, FindingKind.EDITED, message)

    def _finding(self, seq: int, kind: FindingKind, message: str) -> Finding:
        return Finding(self._at[seq].line, seq, kind, message)
