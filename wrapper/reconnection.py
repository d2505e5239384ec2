"""When a seat tries to reach its Arbiter again, and when it stops trying: exponential, full jitter. Pure.

1. A wait is somewhere between two bounds, drawn evenly by whoever waits: seats that lost the same Arbiter at
   the same moment come back spread.
2. No two tries are closer than the pace's ``least``, whatever happens between them.
3. Only a seat that sat for a good while begins anew with short waits: one that is thrown out as soon as it
   sits tries ever more rarely.
"""

from __future__ import annotations

from dataclasses import dataclass

GOOD_WHILE = 60.0
"""Seconds that a seat has to have sat, so that its loss counts as a new one."""

KNOCK_SECONDS = 10.0
"""How long one try may take."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The first wait lies between ``least`` and ``first`` seconds; the bound doubles up to ``longest``."""

    least: float
    first: float
    longest: float

    def most(self, tries: int) -> float:
        """The upper bound of the wait after so many tries that failed."""
        # 2.0**tries would overflow for a seat that has tried for years.
        return min(self.longest, self.first * 2.0 ** min(tries, 64))


ARRIVING = Pace(least=0.05, first=0.2, longest=2.0)
"""For a seat that starts beside its Arbiter, which will listen in a moment."""

RETURNING = Pace(least=0.5, first=2.0, longest=30.0)
"""For a seat that had its place: its Arbiter is restarting, or a cable is out."""


@dataclass(frozen=True, slots=True)
class Knock:
    """The next try: after ``least`` to ``most`` seconds, evenly drawn, and for at most ``within`` seconds."""

    least: float
    most: float
    within: float

    def wait(self, share: float) -> float:
        """The wait for a ``share`` that was drawn from 0 to 1."""
        return self.least + share * (self.most - self.least)


class Reconnection:
    """What one seat has tried, and for how long it may go on."""

    def __init__(self, *, patience: float, give_up_after: float) -> None:
        """In seconds: ``patience`` for the time before it ever sat, ``give_up_after`` from a loss on."""
        self._patience = patience
        self._give_up_after = give_up_after
        self._pace = ARRIVING
        self._since = 0.0
        self._tries = 0
        self._sat_from: float | None = None

    @property
    def limit(self) -> float:
        """For how many seconds it tries, as things are."""
        return self._patience if self._pace is ARRIVING else self._give_up_after

    def begin(self, now: float) -> Knock:
        """The very first try, at once."""
        self._since = now
        return Knock(0.0, 0.0, self._within(now))

    def sat(self, now: float) -> None:
        """It has its place."""
        self._sat_from = now

    def failed(self, now: float) -> Knock | None:
        """The next try after one that failed, or after a loss; None to give up."""
        if self._sat_from is not None:
            if self._pace is ARRIVING or now - self._sat_from >= GOOD_WHILE:
                self._tries = 0
            self._pace, self._since, self._sat_from = RETURNING, now, None
        left = self._since + self.limit - now
        if left < self._pace.least:
            return None
        most = min(self._pace.most(self._tries), left)
        self._tries += 1
        return Knock(self._pace.least, most, self._within(now + most))

    def _within(self, start: float) -> float:
        """A try that begins at the latest at ``start`` may take what is left, and a second in any case."""
        return min(KNOCK_SECONDS, max(1.0, self._since + self.limit - start))
