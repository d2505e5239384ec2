"""`consilium transcript verify`: what is wrong with a file, what is proved, and what is not (§5.6)."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from datetime import datetime
from os import environ
from typing import TYPE_CHECKING, Any

from consilium.console import Console, Style, json_text
from consilium.errors import TranscriptError, UserError
from consilium.headseal import Seal, Verdict, check
from consilium.inspection import inspect
from consilium.records import EventName, EventRecord, unseal
from consilium.transcript import head_path, read_head, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from consilium.findings import Inspection
    from consilium.records import Head

MOST_FINDINGS = 20
"""How many findings a person is told; a program is told all."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that was checked. ``problem`` is what is wrong with the head file, if it cannot be read.

    ``ended``: the last record is DEBATE_ENDED.
    """

    path: Path
    inspection: Inspection
    head: Head | None
    problem: str | None
    seal: Seal | None
    authority_given: bool
    ended: bool

    @property
    def vouched(self) -> bool:
        """The head does its part: absent (which is said), or signed, and by whom if that was asked."""
        if self.seal is None:
            return self.problem is None and not self.authority_given
        wanted = (Verdict.GOOD,) if self.authority_given else (Verdict.GOOD, Verdict.NOT_CHECKED)
        return self.seal.signature is Verdict.GOOD and self.seal.issuer in wanted

    @property
    def good(self) -> bool:
        """Whole, as far as it was asked."""
        return self.inspection.whole and self.vouched


def verify(path: Path, *, authority: Path | None, as_json: bool) -> int:
    """Check the transcript at ``path``, print the report, return the exit code: 0 whole, 1 not."""
    report = examine(path, authority)
    if as_json:
        sys.stdout.write(json_text(_fields(report)) + "\n")
    else:
        _tell(report, Console.on(sys.stdout, environ))
    return 0 if report.good else 1


def examine(path: Path, authority: Path | None) -> Report:
    """Check everything.

    Raises `UserError` when one of the files cannot be read, `TranscriptError` when ``path`` is nothing like a
    transcript.
    """
    anchors = None if authority is None else _read(authority)
    head, problem = None, None
    try:
        head = read_head(path)  # before the records: see `consilium.transcript`
    except TranscriptError as error:
        problem = str(error)
    last = _Last()
    inspection = inspect(last.watch(read_lines(path)), head)
    seal = None if head is None else check(head, authority=anchors, at=last.written())
    return Report(path, inspection, head, problem, seal, authority is not None, last.ended())


class _Last:
    """Remembers the last line that passes: it says when the file was written."""

    def __init__(self) -> None:
        self._line = b""

    def watch(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            if line.endswith(b"\n"):
                self._line = line
            yield line

    def written(self) -> datetime | None:
        try:
            return datetime.fromisoformat(unseal(self._line).ts)
        except (TranscriptError, ValueError):
            return None

    def ended(self) -> bool:
        try:
            entry = unseal(self._line).entry
        except TranscriptError:
            return False
        return isinstance(entry, EventRecord) and entry.event is EventName.DEBATE_ENDED


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}", hint="give the ca.pem of the council"
        ) from error


def _tell(report: Report, console: Console) -> None:
    inspection = report.inspection
    verdict, style = ("whole", Style.GREEN) if report.good else ("NOT WHOLE", Style.RED)
    if inspection.whole and not report.good:
        verdict = "its records fit together, but NOT PROVED"
    console.line((f"{report.path}: {verdict}", style))
    for finding in inspection.findings[:MOST_FINDINGS]:
        console.text(f"line {finding.line}: {finding.message}", first="  ! ", indent="    ")
    more = len(inspection.findings) - MOST_FINDINGS
    if more > 0:
        console.text(f"and {more} more", first="  ! ", indent="    ")
    for sentence in _sentences(report):
        console.text(sentence, first="  - ", indent="    ")


def _sentences(report: Report) -> list[str]:
    inspection, head = report.inspection, report.head
    said = [f"It holds {inspection.count} records."]
    if inspection.whole:
        said[0] = f"It holds {inspection.count} records, each with the hash of the one before it."
    if report.problem is not None:
        said.append(f"{report.problem}: nothing proves that the end was not cut off, nor who wrote the file.")
    elif head is None or report.seal is None:
        name = head_path(report.path).name
        said.append(
            f"There is no {name} beside it: that its end was not cut off is not proved, nor who wrote it."
        )
        if not report.ended:
            said.append("The debate in it has not ended.")
    else:
        said.append(f"The head vouches for {head.count} records; {report.seal.sentence}.")
    return said


def _fields(report: Report) -> dict[str, Any]:
    head = None if report.head is None else {"count": report.head.count, "last": report.head.last}
    return {
        "file": str(report.path),
        "whole": report.good,
        "records": report.inspection.count,
        "findings": [asdict(finding) for finding in report.inspection.findings],
        "ended": report.ended,
        "head": head,
        "head_problem": report.problem,
        "signature": None if report.seal is None else asdict(report.seal),
    }
