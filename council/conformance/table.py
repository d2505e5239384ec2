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

OUTCOME_WIDTH = 8


def listed(checks: Sequence[Check], width: int) -> str:
    """The names of ``checks``, and what each says."""
    column = _column(checks)
    return "".join(_row(check.name.ljust(column), (check.says,), width) for check in checks)


def table(results: Sequence[Result], width: int) -> str:
    """A row for each of ``results``: name, outcome, what the check says, why it failed or does not apply."""
    column = _column([result.check for result in results])
    return "".join(
        _row(
            f"{result.check.name.ljust(column)}{WORDS[result.outcome].ljust(OUTCOME_WIDTH)}",
            (result.check.says, *((f"But: {result.why}",) if result.why else ())),
            width,
        )
        for result in results
    )


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


def _column(checks: Iterable[Check]) -> int:
    return max((len(check.name) for check in checks), default=0) + 2


def _row(head: str, paragraphs: Sequence[str], width: int) -> str:
    room = max(width - len(head), MIN_WIDTH)
    lines = [line for text in paragraphs for line in textwrap.wrap(printable(text), room)]
    return "".join(f"{head if not number else ' ' * len(head)}{line}\n" for number, line in enumerate(lines))
