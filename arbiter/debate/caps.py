"""What the debate has cost, against what it may cost (§5.7, decision 10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilium.messages import MAX_COUNT, MAX_USD, Cost

if TYPE_CHECKING:
    from consilium.config import Caps
    from consilium.messages import Usage


BYTES_PER_TOKEN = 4
"""A common rule of thumb for English. It leaves out what went in, which nobody but the client knows."""


def tokens_of(usage: Usage | None) -> int | None:
    """Tokens in and out of one turn; None where the client reported neither."""
    if usage is None or (usage.tokens_in is None and usage.tokens_out is None):
        return None
    return (usage.tokens_in or 0) + (usage.tokens_out or 0)


def total(so_far: int | None, more: int) -> int:
    """Add up tokens, as far as a `Count` can tell: no client may make the sum unspeakable."""
    return min((so_far or 0) + more, MAX_COUNT)


def total_usd(so_far: float | None, more: float) -> float:
    """Add up money, likewise."""
    return min((so_far or 0.0) + more, MAX_USD)


@dataclass(frozen=True, slots=True)
class Reached:
    """A cap that is reached: its name, what was used, what was allowed."""

    cap: str
    used: float
    limit: float


class Meter:
    """Counts tokens, money, rounds and running time. A pause costs nothing and does not count."""

    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self.tokens: int | None = None
        self.usd: float | None = None
        self.unknown_turns = 0
        self.estimated = 0
        self.rounds = 0
        self._ran = 0.0
        self._running_since: float | None = None

    def charge(self, usage: Usage | None, text: str | None) -> None:
        """Add one turn's cost. Unknown stays unknown; what it was at least is estimated from the text.

        The estimate counts towards max_tokens, so that a client that reports nothing cannot pass it by.
        """
        tokens = tokens_of(usage)
        if tokens is None:
            self.unknown_turns += 1
            self.estimated = total(self.estimated, -(-len((text or "").encode()) // BYTES_PER_TOKEN))
        else:
            self.tokens = total(self.tokens, tokens)
        if usage is not None and usage.usd is not None:
            self.usd = total_usd(self.usd, usage.usd)

    def run(self, now: float) -> None:
        """Start the clock."""
        self._running_since = now

    def hold(self, now: float) -> None:
        """Stop the clock, if it runs."""
        if self._running_since is not None:
            self._ran += now - self._running_since
            self._running_since = None

    def elapsed(self, now: float) -> float:
        """Seconds run so far, pauses excluded."""
        return self._ran + (now - self._running_since if self._running_since is not None else 0.0)

    def time_is_up_at(self) -> float | None:
        """The moment at which max_seconds is reached, while the clock runs."""
        if self.caps.max_seconds is None or self._running_since is None:
            return None
        return self._running_since + self.caps.max_seconds - self._ran

    def reached(self, now: float) -> Reached | None:
        """The first cap that is reached, or None."""
        up_at = self.time_is_up_at()
        if self.caps.max_rounds is not None and self.rounds >= self.caps.max_rounds:
            return Reached("max_rounds", self.rounds, self.caps.max_rounds)
        tokens = total(self.tokens, self.estimated)
        if self.caps.max_tokens is not None and tokens >= self.caps.max_tokens:
            return Reached("max_tokens", tokens, self.caps.max_tokens)
        if self.caps.max_usd is not None and (self.usd or 0.0) >= self.caps.max_usd:
            return Reached("max_usd", self.usd or 0.0, self.caps.max_usd)
        # Compared with the moment that the alarm is set to: a sum of floats may fall just short of the cap.
        if self.caps.max_seconds is not None and up_at is not None and now >= up_at:
            return Reached("max_seconds", self.elapsed(now), self.caps.max_seconds)
        return None

    def cost(self, now: float) -> Cost:
        """Report for STATUS."""
        caps = {name: float(value) for name, value in self.caps.model_dump(exclude_none=True).items()}
        return Cost(
            tokens_total=self.tokens,
            tokens_unknown_turns=self.unknown_turns,
            tokens_estimated=self.estimated,
            usd_total=self.usd,
            rounds=self.rounds,
            elapsed_s=round(self.elapsed(now), 3),
            caps=caps,
        )
