"""Which operator's command is due when: a debate moved through its phases from the record alone (§13.3).

Pure. OPENING lasts one round, REBUTTAL the council's number of rounds, CLOSING one; then the debate ends.
Each change is ordered while the last round of its phase runs, to take effect when that round is complete: an
order after the round would come one turn late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consilium.messages import Phase, Resume, SetPhase, Terminate, When
from consilium.records import EventName, EventRecord

if TYPE_CHECKING:
    from consilium.config import Council
    from consilium.records import AnyEntry

Order = Resume | SetPhase | Terminate

COMPLETED = "the planned rounds are complete"
"""The reason that TERMINATE gives when a debate has run its course."""


class Plan:
    """The course of one debate. Feed it every record in order; it answers with what to order now.

    It follows the phase that the record shows, so an operator who changes it by hand is not fought:
    the plan goes on from there.
    """

    def __init__(self, council: Council) -> None:
        self._rebuttals = council.rebuttal_rounds
        # With nobody to wait for, the Arbiter leaves the start to its operator (§7.3).
        self._to_be_seated = 0 if council.roster.awaited else len(council.participants)
        self._phase: Phase | None = None
        self._left = 0
        self._ordered = False

    def observe(self, entry: AnyEntry) -> Order | None:
        """Take one record; return the command that is due, if one is."""
        if not isinstance(entry, EventRecord):
            return None
        match entry.event:
            case EventName.PARTICIPANT_JOINED if not entry.data.get("returned"):
                self._to_be_seated -= 1
                return Resume() if self._to_be_seated == 0 else None
            case EventName.DEBATE_STARTED | EventName.PHASE_CHANGED:
                self._enter(Phase(str(entry.data.get("phase", Phase.OPENING))))
            case EventName.ROUND_COMPLETED if self._phase is not None:
                self._left -= 1
            case EventName.DEBATE_ENDED:
                self._phase = None
            case _:
                return None
        return self._due()

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._left = self._rebuttals if phase is Phase.REBUTTAL else 1
        self._ordered = False

    def _due(self) -> Order | None:
        if self._phase is None or self._left > 1 or self._ordered:
            return None
        self._ordered = True
        following = self._following(self._phase)
        if following is None:
            return Terminate(when=When.ROUND_END, reason=COMPLETED)
        return SetPhase(phase=following, when=When.ROUND_END)

    def _following(self, phase: Phase) -> Phase | None:
        if phase is Phase.OPENING and self._rebuttals:
            return Phase.REBUTTAL
        return None if phase is Phase.CLOSING else Phase.CLOSING
