"""What came of the checks, as a person reads it and as a program does. Pure."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any

from consilium.console import MIN_WIDTH, printable
from council.conformance.checks import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from council.conformance.checks import Check, Result

WORDS = {Outcome.PASSED: "passed", Outcome.FAILED: "FAILED", Outcome.NOT_APPLICABLE: "n/a"}

INDENT = " " * 8


def listed(checks: Iterable[Check], width: int) -> str:
    """The names of ``checks``, and what each says."""
    return "".join(f"{check.name}\n{_below(check.says, width)}" for check in checks)


def table(results: Iterable[Result], width: int) -> str:
    """``results``: what became of a check, its name, what it says, and why it failed or does not apply."""
    rows = []
    first: dict[str, str] = {}
    for result in results:
        known = first.setdefault(result.why, result.check.name)
        why = f"as for {known}" if result.why and known != result.check.name else result.why
        rows.append(f"{WORDS[result.outcome]:<{len(INDENT)}}{result.check.name}\n")
        rows.append(_below(result.check.says, width))
        rows.append(_below(f"-> {why}", width) if why else "")
    return "".join(rows)


def summary(results: Sequence[Result]) -> str:
    """How many of ``results`` there are of each kind, and how long they took."""
    number = Counter(result.outcome for result in results)
    told = ", ".join(f"{number[outcome]} {outcome}" for outcome in Outcome if number[outcome])
    return f"{told} in {sum(result.seconds for result in results):.0f} s"


def document(preset: str, adapter: str, results: Iterable[Result]) -> dict[str, Any]:
    """The same for a program."""
    rows = [
        {
            "name": result.check.name,
            "says": result.check.says,
            "outcome": result.outcome.value,
            "why": result.why,
            "saw": result.saw,
            "seconds": round(result.seconds, 3),
        }
        for result in results
    ]
    conforms = all(row["outcome"] != Outcome.FAILED for row in rows)
    return {"preset": preset, "adapter": adapter, "conforms": conforms, "checks": rows}


def _below(text: str, width: int) -> str:
    lines = textwrap.wrap(printable(text), max(width - len(INDENT), MIN_WIDTH))
    return "".join(f"{INDENT}{line}\n" for line in lines)
