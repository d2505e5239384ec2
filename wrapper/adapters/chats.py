"""Whether a turn was answered in the seat's own chat, and what it added to what that chat cost. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from consilium.messages import MAX_COUNT, MAX_USD, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wrapper.adapters.parts import Chat, Counter
    from wrapper.adapters.reading import Reading

USD_DIGITS = 9
"""Decimals of an amount that was computed as a difference: a billionth of a dollar, and no noise beyond."""


class Mismatch(ValueError):  # noqa: N818 - a state of the chat, told as one
    """Raised when a turn was answered, but not in the seat's chat; the message says how that shows."""


def is_id(rule: Chat, said: str | None) -> bool:
    """Whether ``said`` can be the id of a chat, and nothing else where it stands."""
    return said is not None and re.fullmatch(rule.pattern, said) is not None


def answered_in(rule: Chat, said: str | None, *, had: str | None, chosen: str | None) -> str:
    """The chat ``said``, in which a turn was answered, if it is this seat's (§3.3.B). Raises `Mismatch`.

    ``had`` is the seat's chat before the turn, ``chosen`` the id that we gave to the one after it.
    """
    if said is None or not is_id(rule, said):
        raise Mismatch("does not say in which chat it answered")
    expected = chosen or (had if rule.turn != "fork" else None)
    if expected is not None and said != expected:
        raise Mismatch(f"answered in the chat {said}, not in {expected}")
    if expected is None and said == had:
        raise Mismatch(f"answered in the chat {said} itself, not in a copy of it")
    return said


def began_anew(
    rule: Chat, cumulative: Sequence[Counter], now: Mapping[Counter, float], before: Mapping[Counter, float]
) -> bool:
    """Whether a copy whose id the client made up is another chat's: a counter that only grows has shrunk.

    Where the id is known beforehand, it tells better; there a counter that shrank is one nobody can read.
    """
    if (rule.id, rule.turn) != ("told", "fork"):
        return False
    return any(now[name] < before[name] for name in cumulative if name in now and name in before)


def usage_of(
    reading: Reading, cumulative: Sequence[Counter], before: Mapping[Counter, float] | None
) -> Usage:
    """What this turn cost: of ``cumulative`` counters the difference to ``before``, the chat's until then.

    ``before`` is None for a chat that this turn began.
    """

    def spent(name: Counter) -> float | None:
        total = reading.counters.get(name)
        if total is None or name not in cumulative:
            return total
        earlier = 0 if before is None else before.get(name)
        return None if earlier is None or earlier > total else total - earlier

    def tokens(name: Counter) -> int | None:
        value = spent(name)
        return None if value is None or value > MAX_COUNT else int(value)

    usd = spent("usd")
    return Usage(
        tokens_in=tokens("tokens_in"),
        tokens_out=tokens("tokens_out"),
        tokens_cached=tokens("tokens_cached"),
        usd=None if usd is None else min(round(usd, USD_DIGITS), MAX_USD),
        model=reading.model,
    )
