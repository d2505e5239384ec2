"""The last lines of `consilium up`: how it ended, where it stood (§5.7), and where its record is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilium.errors import ConsiliumError
from consilium.transcript import read_records
from council.render import status_lines
from council.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from consilium.records import Stored
    from council.course import Verdict
    from council.workspace import Workspace

SHOWN_BEFORE = frozenset({"Topic", "Caps"})
"""What the first lines of `up` showed."""


@dataclass(frozen=True, slots=True)
class Closing:
    """What is shown at the end. ``status`` and ``places`` are values by their labels."""

    verdict: Verdict
    status: tuple[tuple[str, tuple[str, ...]], ...]
    places: tuple[tuple[str, str], ...]


def close(space: Workspace, verdict: Verdict) -> Closing:
    """Tell how a debate ended, from its verdict and its record."""
    logs = ("Logs", str(space.logs))
    try:
        records, _ = read_records(space.transcript)
    except ConsiliumError:  # none was begun, or it is damaged; `consilium transcript` says how
        records = []
    status = stood(records)
    places = [("Record", str(space.transcript)), ("Read it", f"consilium transcript {space.transcript}")]
    if not space.transcript.exists():
        return Closing(verdict, (), (logs,))
    return Closing(verdict, status, (*places, logs) if verdict.code else tuple(places))


def stood(records: Sequence[Stored]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The status lines of a debate, from its record; none where there is no record."""
    if not records:
        return ()
    return tuple(line for line in status_lines(summarise(records)) if line[0] not in SHOWN_BEFORE)
