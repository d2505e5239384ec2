"""The course of a debate as its operator orders it (§13.3). Pure.

OPENING lasts one round, REBUTTAL the council's number of rounds, CLOSING one; then the debate ends. All of it
is ordered before the first seat is there, by the numbers of the rounds: an order that is given while a round
runs may come after its end, however fast it is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consilium.messages import Phase, Resume, SetPhase, Terminate, When
from consilium.records import EventName, EventRecord

if TYPE_CHECKING:
    from consilium.config import Council
    from consilium.records import AnyEntry

Order = SetPhase | Terminate

COMPLETED = "the planned rounds are complete"
"""The reason that TERMINATE gives when a debate has run its course."""


def course(council: Council) -> list[Order]:
    """Return the whole course of ``council``'s debate, to be ordered before it begins."""
    rebutted = 1 + council.rebuttal_rounds
    orders: list[Order] = []
    if council.rebuttal_rounds:
        orders.append(SetPhase(phase=Phase.REBUTTAL, when=When.ROUND_END, round=1))
    orders.append(SetPhase(phase=Phase.CLOSING, when=When.ROUND_END, round=rebutted))
    orders.append(Terminate(when=When.ROUND_END, round=rebutted + 1, reason=COMPLETED))
    return orders


class Starter:
    """Orders the start where nobody is waited for: the Arbiter then leaves it to its operator (§7.3)."""

    def __init__(self, council: Council) -> None:
        self._to_be_seated = 0 if council.roster.awaited else len(council.participants)

    def observe(self, entry: AnyEntry) -> Resume | None:
        """Take one record; return the start, once everybody has joined."""
        newcomer = (
            isinstance(entry, EventRecord)
            and entry.event is EventName.PARTICIPANT_JOINED
            and not entry.data.get("returned")
        )
        if not newcomer:
            return None
        self._to_be_seated -= 1
        return Resume() if self._to_be_seated == 0 else None
