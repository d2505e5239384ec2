"""Whether a heart beats as it should, seen from a seat. Pure: the time is an argument, in seconds."""

from __future__ import annotations


class Beats:
    """The Arbiter's PINGs to one seat, and its PONGs to that seat's own PINGs.

    A beat is missed when the next PING comes more than an interval late, or a PONG takes more than one.
    """

    def __init__(self, interval: float, now: float) -> None:
        """Begin at ``now`` to expect a PING every ``interval`` seconds."""
        self._interval = interval
        self._heard = now
        self.count = 0
        self.missed = 0
        self.worst_gap = 0.0
        self.worst_pong = 0.0

    def ping(self, now: float) -> None:
        """Note a PING of the Arbiter's."""
        self.count += 1
        self._gap(now)
        self._heard = now

    def pong(self, sent: float, now: float) -> None:
        """Note the answer to a PING that was sent at ``sent``."""
        self.worst_pong = max(self.worst_pong, now - sent)
        self.missed += now - sent > self._interval

    def end(self, now: float) -> None:
        """Count what is missing at the end, after which nobody would have noticed."""
        self._gap(now)

    def _gap(self, now: float) -> None:
        gap = now - self._heard
        self.worst_gap = max(self.worst_gap, gap)
        self.missed += max(int(gap / self._interval) - 1, 0)
