"""What the operator has ordered for later: at the end of a round, or for the next turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from consilium.messages import Phase


@dataclass(slots=True)
class Schedule:
    """Orders that wait. Each is given once and carried out once; a later one for the same moment replaces it.

    ``phases`` and ``endings`` (reasons to close) are by the number of the round at whose end they are due;
    ``next_speaker`` is a participant id.
    """

    phases: dict[int, Phase] = field(default_factory=dict)
    endings: dict[int, str] = field(default_factory=dict)
    next_speaker: str | None = None

    def take_round_end(self, number: int) -> tuple[Phase | None, str | None]:
        """Return the phase and the reason to close that wait for the end of this round, and forget them."""
        return self.phases.pop(number, None), self.endings.pop(number, None)
