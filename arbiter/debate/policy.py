"""Who speaks next (§7.4, decision 11). A policy sees the floor and names a seat, or nobody."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilium.config import TurnPolicy

if TYPE_CHECKING:
    from arbiter.debate.roster import Seat


@dataclass(frozen=True, slots=True)
class Floor:
    """What a policy may look at.

    ``rotation`` is in speaking order and not empty. ``last`` is the order of the seat that had the latest
    turn, -1 before the first. ``named`` are participant ids, in the order in which others named them.
    """

    rotation: tuple[Seat, ...]
    last: int
    named: tuple[str, ...]


Policy = Callable[[Floor], "Seat | None"]


def round_robin(floor: Floor) -> Seat:
    """The next seat in speaking order."""
    return next((seat for seat in floor.rotation if seat.order > floor.last), floor.rotation[0])


def least_recently_spoken(floor: Floor) -> Seat:
    """The seat whose latest turn is the longest ago; those who never had one first."""
    return min(floor.rotation, key=lambda seat: (seat.last_turn or 0, seat.order))


def most_recently_contradicted(floor: Floor) -> Seat:
    """The seat most recently named by another seat's speech; round-robin when none.

    This is mechanical: to be named is not to be contradicted. Whoever had the latest turn does not
    speak again.
    """
    candidates = {seat.participant_id: seat for seat in floor.rotation if seat.order != floor.last}
    for participant_id in reversed(floor.named):
        if participant_id in candidates:
            return candidates[participant_id]
    return round_robin(floor)


def manual(floor: Floor) -> None:
    """Nobody, until the operator's NEXT."""


POLICIES: Mapping[TurnPolicy, Policy] = {
    TurnPolicy.ROUND_ROBIN: round_robin,
    TurnPolicy.LEAST_RECENTLY_SPOKEN: least_recently_spoken,
    TurnPolicy.MOST_RECENTLY_CONTRADICTED: most_recently_contradicted,
    TurnPolicy.MANUAL: manual,
}


def named_in(text: str, speaker: Seat, seats: list[Seat]) -> list[str]:
    """The participant ids that ``text`` names, in the order in which they are named last."""
    found: list[tuple[int, str]] = []
    for seat in seats:
        if seat is not speaker:
            names = "|".join(re.escape(n) for n in (seat.participant_id, seat.name, seat.pseudonym))
            places = [match.start() for match in re.finditer(rf"(?<!\w)(?:{names})(?!\w)", text)]
            if places:
                found.append((places[-1], seat.participant_id))
    return [participant_id for _, participant_id in sorted(found)]
