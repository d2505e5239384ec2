"""What is seen while a debate runs: the record as it grows, and a sign of life when nothing is new.

Nothing here reads a clock or a terminal: time, width and colour arrive as arguments. A view forgets what it
has shown; the record is in the transcript.
"""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from consilium.console import Console, Style, obeyed_by_none, printable, wrap
from consilium.records import EventName, EventRecord, TurnRecord
from council.builtin import EMBEDDED_PRESET
from council.render import LABEL
from council.telling import INDENT, Teller, short

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from consilium.config import Council, Participant
    from consilium.records import AnyEntry, Stored
    from council.closing import Closing

SIGN_OF_LIFE_SECONDS = 1.75
"""So long may a view say nothing. Ticks come in between, so it is never two seconds."""

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class View(Protocol):
    """Where `up` tells what happens. ``now`` is seconds of one monotonic clock."""

    def begin(
        self, council: Council, folder: Path | None, now: float, *, endpoint: str | None = None
    ) -> None:
        """Show what will be debated, by whom, within which caps.

        ``folder`` is where its files are, if here; ``endpoint`` one's own model server.
        """

    def doing(self, what: str, now: float) -> None:
        """Say what is under way from now on."""

    def say(self, sentence: str, now: float) -> None:
        """Tell something once."""

    def record(self, record: Stored, now: float) -> None:
        """Show one record of the transcript."""

    def tick(self, now: float) -> None:
        """Give a sign of life, if it is time for one."""

    def end(self, closing: Closing, now: float) -> None:
        """Show how it ended."""


class Activity:
    """What is under way, and since when; the record keeps it true."""

    def __init__(self, now: float) -> None:
        self.what = "starting"
        self._since = now
        self._paused = False

    def set(self, what: str, now: float) -> None:
        """Begin something else."""
        self.what, self._since = what, now

    def follow(self, entry: AnyEntry, now: float) -> None:
        """Take from a record what is under way now."""
        match entry:
            case EventRecord(event=EventName.TURN_STARTED):
                self.set(f"{short(entry.participant_id)} is thinking", now)
            case EventRecord(event=EventName.DEBATE_PAUSED):
                self._paused = True
                self.set("the debate is paused", now)
            case EventRecord(event=EventName.DEBATE_ENDED):
                self.set("closing", now)
            case EventRecord(event=EventName.DEBATE_RESUMED | EventName.DEBATE_STARTED):
                self._paused = False
                self.set("choosing the next speaker", now)
            case TurnRecord() if not self._paused:  # a turn that was open at the pause ends in it
                self.set("choosing the next speaker", now)

    def seconds(self, now: float) -> float:
        """How long it has been under way."""
        return max(0.0, now - self._since)


class JsonView:
    """JSON lines for programs: ``council``, ``doing``, ``note``, ``record``, ``alive``, ``end``."""

    def __init__(self, write: Callable[[str], None], *, now: float) -> None:
        self._write = write
        self._activity = Activity(now)
        self._spoke = now

    def begin(
        self, council: Council, folder: Path | None, now: float, *, endpoint: str | None = None
    ) -> None:
        """Write ``council``: the whole of it, the folder with its files, and the model server if not ours."""
        tree = council.model_dump(mode="json", exclude_none=True)
        self._line(
            now, "council", council=tree, folder=None if folder is None else str(folder), endpoint=endpoint
        )

    def doing(self, what: str, now: float) -> None:
        """Write ``doing``."""
        self._activity.set(what, now)
        self._line(now, "doing", what=what)

    def say(self, sentence: str, now: float) -> None:
        """Write ``note``."""
        self._line(now, "note", text=sentence)

    def record(self, record: Stored, now: float) -> None:
        """Write ``record``, as it stands in the transcript."""
        self._activity.follow(record.entry, now)
        place = {"seq": record.seq, "prev": record.prev, "ts": record.ts}
        self._line(now, "record", record=place | record.entry.model_dump(mode="json"))

    def tick(self, now: float) -> None:
        """Write ``alive``, with what is under way and for how many seconds."""
        if now - self._spoke >= SIGN_OF_LIFE_SECONDS:
            self._line(now, "alive", doing=self._activity.what, seconds=round(self._activity.seconds(now), 1))

    def end(self, closing: Closing, now: float) -> None:
        """Write ``end``."""
        verdict = closing.verdict
        self._line(
            now,
            "end",
            outcome=verdict.outcome,
            exit=verdict.code,
            reason=verdict.sentence,
            status=dict(closing.status),
            places=dict(closing.places),
        )

    def _line(self, now: float, event: str, **fields: Any) -> None:
        self._spoke = now
        self._write(obeyed_by_none(orjson.dumps({"event": event, **fields})).decode() + "\n")


class TextView:
    """Lines for a person. On a terminal the last line is a status line, redrawn at every tick."""

    def __init__(
        self,
        write: Callable[[str], None],
        *,
        width: int,
        terminal: bool,
        colour: bool,
        now: float,
        silence: float = SIGN_OF_LIFE_SECONDS,
    ) -> None:
        """``width`` is the terminal's, in columns; without one, ``silence`` is the longest, in seconds."""
        self._write = write
        self._terminal = terminal
        self._silence = silence
        self._lines = StringIO()
        # One column stays free: some terminals begin a new line when the last one is filled.
        self._console = Console(self._lines, colour=colour, width=width - 1)
        self._teller = Teller(self._console.width)
        self._activity = Activity(now)
        self._spoke = now
        self._frame = 0

    def begin(
        self, council: Council, folder: Path | None, now: float, *, endpoint: str | None = None
    ) -> None:
        """Show topic, seats, caps and folder."""
        self._console.line(("Topic", Style.BOLD))
        self._console.text(council.topic, indent=INDENT)
        self._console.line(("Seats", Style.BOLD))
        for seat in council.participants:
            self._console.line(
                INDENT,
                self._teller.seat(seat.name),
                f": role {_role(seat)}, client {_client(seat, endpoint)}",
            )
        caps = council.caps.model_dump(exclude_none=True)
        told = ", ".join(f"{key.removeprefix('max_')} {value:,.10g}" for key, value in caps.items())
        self._console.line(("Caps    ", Style.BOLD), told)
        if folder is not None:
            self._console.line(("Folder  ", Style.BOLD), str(folder))
        self._show(now)

    def doing(self, what: str, now: float) -> None:
        """Say what is under way from now on."""
        self._activity.set(what, now)
        self._console.line((f"… {what}", Style.DIM))
        self._show(now)

    def say(self, sentence: str, now: float) -> None:
        """Tell something once."""
        self._console.text(sentence)
        self._show(now)

    def record(self, record: Stored, now: float) -> None:
        """Show one record, if it tells a person anything."""
        self._activity.follow(record.entry, now)
        for line in self._teller.tell(record.entry):
            self._console.line(*line)
        self._show(now)

    def tick(self, now: float) -> None:
        """Redraw the status line; where there is none, write a line after a long silence."""
        status = f"{self._activity.what}, {self._activity.seconds(now):.0f} s"
        if self._terminal:
            self._frame += 1
            spinner = SPINNER[self._frame % len(SPINNER)]
            self._console.line((wrap(printable(f"{spinner} {status}"), self._console.width)[0], Style.DIM))
            self._write("\r\x1b[K" + self._taken().rstrip("\n"))
        elif now - self._spoke >= self._silence:
            self._console.line((f"… {status}", Style.DIM))
            self._show(now)

    def end(self, closing: Closing, now: float) -> None:
        """Show the verdict and the status, and each place on a line that can be copied."""
        self._console.line()
        self._console.text(closing.verdict.sentence, style=Style.RED if closing.verdict.code else Style.BOLD)
        for label, values in closing.status:
            for number, value in enumerate(values):
                self._console.text(value, first=f"{'' if number else label:<{LABEL}}", indent=" " * LABEL)
        for label, place in closing.places:
            self._console.line(f"{label:<{LABEL}}{place}")
        self._show(now)

    def _show(self, now: float) -> None:
        """Write the lines that were made, in the place of the status line."""
        if lines := self._taken():
            self._spoke = now
            self._write(("\r\x1b[K" if self._terminal else "") + lines)

    def _taken(self) -> str:
        lines = self._lines.getvalue()
        self._lines.seek(0)
        self._lines.truncate()
        return lines


def _role(seat: Participant) -> str:
    return seat.role_label or seat.role or ("in its own words" if seat.role_prompt else "none")


def _client(seat: Participant, endpoint: str | None) -> str:
    named = f"{seat.preset} ({seat.model})" if seat.model is not None else seat.preset
    if seat.preset != EMBEDDED_PRESET:
        return named
    return f"{named} at {endpoint}" if endpoint is not None else f"{seat.preset} (embedded model)"
