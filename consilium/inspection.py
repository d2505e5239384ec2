"""Whether a transcript is whole, and if not, what happened to which record (§5.6).

1. A record is judged by its neighbours: ``seq`` gives its place, and the record after it carries its hash.
2. The chain shows an edit, a gap, a splice. A cut tail, and a record added at the end, only the head shows.
3. A finding says no more than the bytes prove: where two readings fit, its sentence gives both.

What a record means is not asked here, so that a reader can check a file of a later version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import orjson

from consilium.chain import START, Chain
from consilium.findings import Finding, FindingKind, Inspection, Place, span
from consilium.records import GENESIS, Head, digest

if TYPE_CHECKING:
    from collections.abc import Iterable


def inspect(lines: Iterable[bytes], head: Head | None = None) -> Inspection:
    """Walk ``lines`` (each with its newline, as a file gives them) and report everything that is wrong.

    Without ``head``, a cut tail and an added record go unseen. Whether the head is signed, and by whom, is
    asked by `consilium.headseal`. Memory: some hundred bytes a record.
    """
    survey = _survey(lines)
    found = list(survey.torn)
    if head is not None and _of_another_debate(head, survey):
        found.append(Finding(1, None, FindingKind.WRONG_HEAD, f"the head is that of debate {head.debate_id}"))
        head = None
    places, misnumbered, explained = _renumber(survey, head)
    ordered, strays = _order(places)
    chain = Chain(ordered, explained, head)
    found += [*misnumbered, *strays, *_holes(survey, places, ordered), *chain.breaks()]
    found += chain.ends(survey.unreadable_at_end)
    if not found and not ordered:
        found.append(Finding(1, 0, FindingKind.MISSING, "the file holds no record, not even the header"))
    found.sort(key=lambda finding: finding.line)
    return Inspection(len(ordered), ordered[-1].digest if ordered else GENESIS, tuple(found))


# --- reading: which lines are records, and what each says of its place -------------------------------


@dataclass(slots=True)
class _Survey:
    """The lines of a file. ``bad`` says of each line that is no record (by number) what it is instead."""

    places: list[Place] = field(default_factory=list)
    bad: dict[int, tuple[FindingKind, str]] = field(default_factory=dict)
    torn: list[Finding] = field(default_factory=list)
    debate_id: object = None
    unreadable_at_end: int = 0


def _survey(lines: Iterable[bytes]) -> _Survey:
    survey = _Survey()
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            survey.torn.append(_torn(number, line, survey))
            continue
        _take(survey, number, line[:-1])
        survey.unreadable_at_end = survey.unreadable_at_end + 1 if number in survey.bad else 0
    return survey


def _take(survey: _Survey, number: int, line: bytes) -> None:
    if b"\0" in line:
        survey.bad[number] = FindingKind.NUL, f"holds a run of {line.count(0)} NUL bytes"
        return
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        survey.bad[number] = FindingKind.UNREADABLE, "is not JSON"
        return
    if not isinstance(fields, dict):
        fields = {}
    seq, prev = fields.get("seq"), fields.get("prev")
    if type(seq) is not int or seq < 0 or not isinstance(prev, str):
        survey.bad[number] = FindingKind.UNREADABLE, "is JSON but not a record"
        return
    if not survey.places:
        survey.debate_id = fields.get("debate_id")
    survey.places.append(Place(number, seq, prev, digest(line)))


def _of_another_debate(head: Head, survey: _Survey) -> bool:
    """The header names another debate than the head, and the head knows no record of the file."""
    named = survey.debate_id
    known = any(place.digest == head.last for place in survey.places)
    return isinstance(named, str) and named != head.debate_id and not known


def _torn(number: int, line: bytes, survey: _Survey) -> Finding:
    seq = survey.places[-1].seq + 1 if survey.places else 0
    kind, what = FindingKind.TORN, f"{len(line)} bytes and no newline"
    if b"\0" in line:
        kind, what = FindingKind.NUL, f"no newline, and {line.count(0)} NUL bytes among its {len(line)}"
    return Finding(number, seq, kind, f"line {number}, the last, is torn: {what}")


# --- placing: every record at its seq ----------------------------------------------------------------


def _renumber(survey: _Survey, head: Head | None) -> tuple[list[Place], list[Finding], set[int]]:
    """Put records whose ``seq`` is wrong, but whose neighbours fit around them, back in their place."""
    runs = _runs(survey.places)
    unique = len({place.seq for place in survey.places}) == len(survey.places)
    places: list[Place] = []
    findings: list[Finding] = []
    explained: set[int] = set()
    following = [*(run[0].seq for run in runs[1:]), head.count if head else None]
    for run, after in zip(runs, following, strict=False):
        expected = places[-1].seq + 1 if places else 0
        beside = {run[0].line - 1, run[-1].line + 1}
        if run[0].seq == expected or after != expected + len(run) or beside & survey.bad.keys():
            places += run
            continue
        moved = unique and run[-1].seq < len(survey.places)
        findings.append(_misnumbered(run, expected, moved=moved))
        explained.update(range(expected, expected + len(run)))
        places += [place._replace(seq=seq) for seq, place in enumerate(run, expected)]
    return places, findings, explained


def _runs(places: list[Place]) -> list[list[Place]]:
    """Cut the records, in the order of the file, wherever ``seq`` does not count on."""
    runs: list[list[Place]] = []
    for place in places:
        if runs and place.seq == runs[-1][-1].seq + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _misnumbered(run: list[Place], expected: int, *, moved: bool) -> Finding:
    kind = FindingKind.EDITED if len(run) == 1 else FindingKind.SPLICED
    where = span("line", run[0].line, run[-1].line)
    belongs = span("record", expected, expected + len(run) - 1)
    claims = span("record", run[0].seq, run[-1].seq)
    message = f"{where}, where {belongs} should be, holds {claims} by its own count"
    return Finding(run[0].line, expected, FindingKind.MOVED if moved else kind, message)


def _order(places: list[Place]) -> tuple[list[Place], list[Finding]]:
    """Order the records by ``seq``; report those that stand twice, or after one that follows on them."""
    at: dict[int, Place] = {}
    strays: list[tuple[bool | None, Place]] = []
    highest = -1
    for place in places:
        first = at.setdefault(place.seq, place)
        if first is not place:
            strays.append((first.digest == place.digest, place))
        elif place.seq < highest:
            strays.append((None, place))
        highest = max(highest, place.seq)
    findings = []
    for (same, *_), group in groupby(enumerate(strays), key=_stride):
        run = [place for _, (_, place) in group]
        findings.append(_stray(run, same=same, first=at[run[0].seq]))
    return [at[seq] for seq in sorted(at)], findings


def _stride(item: tuple[int, tuple[bool | None, Place]]) -> tuple[bool | None, int, int]:
    """What stays the same along a run of strays that stand together."""
    index, (same, place) = item
    return same, place.seq - index, place.line - index


def _stray(run: list[Place], *, same: bool | None, first: Place) -> Finding:
    what = f"{span('record', run[0].seq, run[-1].seq)} ({span('line', run[0].line, run[-1].line)})"
    stands = "stands" if len(run) == 1 else "stand"
    if same is None:
        message = f"{what} {stands} after a record that was written later"
        return Finding(run[0].line, run[0].seq, FindingKind.MOVED, message)
    other = "" if same else ", with other content"
    message = f"{what} {stands} in the file twice: the first time from line {first.line} on{other}"
    return Finding(run[0].line, run[0].seq, FindingKind.DUPLICATE, message)


# --- holes -------------------------------------------------------------------------------------------


def _holes(survey: _Survey, places: list[Place], ordered: list[Place]) -> list[Finding]:
    """The lines that are no records, and the records that no line holds."""
    at = {place.line: place.seq for place in places} if survey.bad else {}
    findings = []
    explained: set[tuple[int, int]] = set()
    for lines in _together(sorted(survey.bad)):
        first = at.get(lines[0] - 1, -1) + 1
        last = at.get(lines[-1] + 1, first + len(lines)) - 1
        explained.add((first, last))
        findings.append(_unreadable(lines, first, last, survey))
    for before, after in pairwise([START, *ordered]):
        hole = before.seq + 1, after.seq - 1
        if hole[0] <= hole[1] and hole not in explained:
            message = f"{span('record', *hole)} {'is' if hole[0] == hole[1] else 'are'} missing"
            findings.append(Finding(after.line, hole[0], FindingKind.MISSING, message))
    return findings


def _together(numbers: list[int]) -> list[list[int]]:
    """Cut ascending numbers into runs without a gap."""
    runs = groupby(enumerate(numbers), key=lambda item: item[1] - item[0])
    return [[number for _, number in run] for _, run in runs]


def _unreadable(lines: list[int], first: int, last: int, survey: _Survey) -> Finding:
    kind, what = min(survey.bad[line] for line in lines)  # NUL says more than that it is not JSON
    place = f"where {span('record', first, last)} should be" if first <= last else f"before record {first}"
    message = f"{span('line', lines[0], lines[-1])}, {place}, {what}"
    return Finding(lines[0], first, kind, message)
