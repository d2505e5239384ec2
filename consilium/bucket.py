"""How often something may be done: pure counting, with the time as an argument."""

from __future__ import annotations


class TokenBucket:
    """Allow ``burst`` at once, and ``rate`` a second in the long run."""

    __slots__ = ("_at", "_level", "burst", "rate")

    def __init__(self, rate: float, burst: float) -> None:
        """Start full. Raises `ValueError` unless both are positive."""
        if not (rate > 0 and burst > 0):
            raise ValueError("a bucket needs a positive rate and a positive burst")
        self.rate = rate
        self.burst = burst
        self._level = float(burst)
        self._at: float | None = None

    def take(self, now: float, cost: float = 1) -> bool:
        """Take ``cost`` if it is there; a refusal takes nothing.

        ``now`` is in seconds of a monotonic clock. A clock that steps back gives nothing, and takes nothing.
        """
        if self._at is not None and now > self._at:
            self._level = min(self.burst, self._level + (now - self._at) * self.rate)
        if self._at is None or now > self._at:
            self._at = now
        if cost > self._level:
            return False
        self._level -= cost
        return True
