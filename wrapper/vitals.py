"""How a seat is, from what it tells of its life; for `consilium health wrapper`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from consilium.health import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Say = Callable[[Mapping[str, Any]], None]


class Vitals:
    """Passes on what a seat says, and knows from it whether the seat is taken.

    A seat that is not at the table is not well: whoever looks after containers has to see it.
    """

    def __init__(self, say: Say, clock: Callable[[], float]) -> None:
        """``clock`` is monotonic, in seconds."""
        self._say = say
        self._clock = clock
        self._state = "it takes its seat"
        self._trouble: str | None = "it has not taken its seat yet"
        self.busy_since: Callable[[], float | None] = lambda: None
        """Asked since when the seat's owner has been at work on one event."""

    def __call__(self, line: Mapping[str, Any]) -> None:
        """Take one line of a seat's life, and pass it on."""
        match line.get("event"):
            case "seated":
                self._state, self._trouble = f"seated as {line.get('participant_id')}", None
            case "waiting":
                self._trouble = f"it has lost the Arbiter, and tries again: {line.get('reason')}"
            case "ended":
                self._state, self._trouble = "it has ended", None
        self._say(line)

    def report(self) -> Report:
        """How it is now."""
        problems = (self._trouble,) if self._trouble else ()
        return Report("wrapper", self._clock(), self._state, busy_since=self.busy_since(), problems=problems)
