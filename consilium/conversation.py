"""What both ends of a control connection do, whoever they are (§5.4): the heartbeat.

1. Any line is a sign of life, not only a PONG: a peer that sends is not dead.
2. Silence is counted in intervals that were waited through. An end that was itself held up (a suspended
   machine, a blocked loop) may not conclude from one late look that the other end is gone.
"""

from __future__ import annotations

from enum import Enum, auto

SILENT_INTERVALS = 3
"""So many whole intervals without a line, and the link is lost (§5.4)."""


class Beat(Enum):
    """What a look at the clock calls for."""

    WAIT = auto()
    PING = auto()
    LOST = auto()


class Heartbeat:
    """One end's heartbeat: when to send a PING, and when to give the other end up.

    Times are seconds of one monotonic clock, the caller's.
    """

    def __init__(self, interval: float, now: float, patience: int = SILENT_INTERVALS) -> None:
        """Begin an interval of ``interval`` seconds; after ``patience`` silent ones the link is lost.

        Raises `ValueError` unless the interval is above zero.
        """
        if not interval > 0:
            raise ValueError("a heartbeat needs an interval above zero")
        self.interval = interval
        self.patience = patience
        self._began = now
        self._heard = now
        self._silent = 0

    @property
    def next_at(self) -> float:
        """The time of the next look that is worth taking."""
        return self._began + self.interval

    @property
    def heard_at(self) -> float:
        """The time of the last sign of life; at first, that of the beginning."""
        return self._heard

    @property
    def silent_intervals(self) -> int:
        """How many whole intervals have passed since the last sign of life."""
        return self._silent

    def heard(self, now: float) -> None:
        """Note a sign of life."""
        self._heard = now
        self._silent = 0

    def tick(self, now: float) -> Beat:
        """Look at the clock: nothing yet, send a PING, or take the link for lost.

        A late look ends one interval, not several.
        """
        if now < self.next_at:
            return Beat.WAIT
        if self._heard <= self._began:
            self._silent += 1
        self._began = now
        return Beat.LOST if self._silent >= self.patience else Beat.PING
