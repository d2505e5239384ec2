"""What the operator has ordered for later: at the end of the round, or for the next turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from consilium.messages import Phase


@dataclass(slots=True)
class Schedule:
    """Orders that wait. Each is given once and carried out once.

    ``terminate`` is the reason to close for; ``next_speaker`` is a participant id.
    """

    phase: Phase | None = None
    terminate: str | None = None
    next_speaker: str | None = None

    def take_round_end(self) -> tuple[Phase | None, str | None]:
        """Return the phase and the reason to close that wait for the end of the round, and forget them."""
        taken = (self.phase, self.terminate)
        self.phase = self.terminate = None
        return taken
