"""One record of the transcript, told to a person as it happens. Pure.

A line is parts for `consilium.console.Console`, which makes whatever a seat wrote harmless to a terminal.
How a record reads afterwards is `council.render`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from consilium.console import Style, duration, printable, wrap
from consilium.messages import Phase, When
from consilium.records import EventName, EventRecord, TurnOutcome, TurnRecord
from council.render import NOT_ALLOWED, describe

if TYPE_CHECKING:
    from consilium.console import Part
    from consilium.records import AnyEntry

    Line = tuple[Part, ...]

INDENT = "  "
RULE = "─" * 30

COLOURS = (Style.CYAN, Style.YELLOW, Style.GREEN, Style.MAGENTA, Style.BLUE)
"""A seat keeps its colour; more seats share them."""

STYLES = {
    EventName.PARTICIPANT_FAULT: Style.RED,
    EventName.DEBATE_PAUSED: Style.RED,
    EventName.CAP_REACHED: Style.YELLOW,
    EventName.USAGE_UNREPORTED: Style.YELLOW,
    EventName.PARTICIPANT_LEFT: Style.YELLOW,
    EventName.PARTICIPANT_MEMORY_LOST: Style.YELLOW,
    EventName.ARBITER_RESTARTED: Style.YELLOW,
}
"""What a person has to see; other events are dim."""

SILENT = frozenset({EventName.PARTICIPANT_UPDATED, EventName.HUMAN_SKIP, EventName.DEBATE_ENDED})
"""What other lines tell already."""

_SUFFIX = re.compile(r"_[0-9A-F]{8}$")


def short(participant_id: str | None) -> str:
    """A seat's logical name: its id without the display suffix (§5.2)."""
    return _SUFFIX.sub("", participant_id or "")


class Teller:
    """Tells records in their order. Remembers only who has which role and colour."""

    def __init__(self, width: int) -> None:
        """``width`` is in columns."""
        self._width = width
        self._roles: dict[str, str] = {}
        self._colours: dict[str, Style] = {}

    def tell(self, entry: AnyEntry) -> list[Line]:
        """The lines for one record; none where it tells a person nothing new."""
        match entry:
            case TurnRecord():
                return self._turn(entry)
            case EventRecord():
                return self._event(entry)
            case _:
                return []

    def seat(self, name: str) -> Part:
        """A seat's name, in its colour."""
        colour = COLOURS[len(self._colours) % len(COLOURS)]
        return name, self._colours.setdefault(name, colour)

    def _turn(self, turn: TurnRecord) -> list[Line]:
        who = self._who(turn.participant_id)
        cost: Part = (f" · {_tokens(turn)}, {duration(turn.duration_s)}", Style.DIM)
        refused = [((f"{INDENT}{NOT_ALLOWED}: {line}", Style.YELLOW),) for line in turn.refused]
        match turn.outcome:
            case TurnOutcome.SPEECH:
                return [(*who, cost), *self._paragraphs(turn.text or ""), *refused]
            case TurnOutcome.SKIP:
                return [(*who, " has nothing to add", cost), *refused]
            case outcome:
                return [(*who, (f" gave no speech: {turn.detail or outcome}", Style.RED), cost), *refused]

    def _event(self, entry: EventRecord) -> list[Line]:
        match entry.event:
            case EventName.DEBATE_STARTED | EventName.PHASE_CHANGED:
                return [("",), ((f"── {entry.data.get('phase', Phase.OPENING)} {RULE}", Style.BOLD),)]
            case EventName.TURN_STARTED:
                start = f"▸ turn {entry.turn_id}, {entry.data.get('phase')}: "
                return [((start, Style.DIM), *self._who(entry.participant_id))]
            case EventName.MODERATOR_STEERING:
                return [(("moderator", Style.BOLD),), *self._paragraphs(str(entry.data.get("text")))]
            case EventName.ROUND_COMPLETED:
                told = f"round {entry.data.get('round')} is complete"
            case EventName.PARTICIPANT_JOINED:
                self._note_role(entry)
                told = f"{short(entry.participant_id)} is seated"
            case EventName.OPERATOR_COMMAND if entry.data.get("when") == When.ROUND_END:
                return []  # what it changes shows when it does
            case name if name in SILENT:
                return []
            case _:
                self._note_role(entry)
                told = describe(entry)
        return [((INDENT + told, STYLES.get(entry.event, Style.DIM)),)]

    def _note_role(self, entry: EventRecord) -> None:
        """Keep a role that says more than the seat's name does."""
        meta = entry.data.get("meta")
        label = meta.get("role_label") if isinstance(meta, dict) else None
        name = short(entry.participant_id)
        if label and _letters(str(label)) != _letters(name):
            self._roles[name] = f" ({label})"

    def _who(self, participant_id: str | None) -> Line:
        name = short(participant_id)
        return self.seat(name), self._roles.get(name, "")

    def _paragraphs(self, text: str) -> list[Line]:
        return [((INDENT + line).rstrip(),) for line in wrap(printable(text), self._width - len(INDENT))]


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()


def _tokens(turn: TurnRecord) -> str:
    """Tokens in and out; unknown is said, and never shown as 0."""
    counts = turn.tokens or {}
    if all(count is None for count in counts.values()):
        return "tokens unknown"
    told = {way: "unknown" if (count := counts.get(way)) is None else f"{count:,}" for way in ("in", "out")}
    return f"tokens {told['in']} in, {told['out']} out"
