"""What a person at a seat reads: a turn, where the debate stands, and what can be typed. Pure.

Text that somebody else wrote is cleaned, indented, and stands below its speaker's name: no line of it begins
where ours begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consilium.config import HUMAN
from consilium.console import Style, duration
from consilium.pausing import why
from wrapper.clean import boundary, clean_line, clean_text
from wrapper.envelope import LABEL_CHARS, MODERATOR, TOPIC_CHARS
from wrapper.human.commands import Command
from wrapper.prompts import phase_instruction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from consilium.console import Console
    from consilium.messages import DeltaEntry, SeatStatus, Status
    from wrapper.adapters.base import Turn

INDENT = "    "
LABEL = 9
"""Columns of a label of `status`."""


def turn(console: Console, given: Turn, seconds: float) -> None:
    """The turn that is the person's now: what is new, and how long the Arbiter waits for it."""
    context = given.context
    heading(
        console, f"turn {context.turn_id} · {context.phase} · the Arbiter waits {duration(round(seconds))}"
    )
    _field(console, "Topic", clean_text(context.topic)[:TOPIC_CHARS])
    _field(console, "Phase", phase_instruction(context.phase))
    for entry in context.delta:
        _contribution(console, entry, given.limit_chars)
    if context.waiting:
        newer = "1 newer contribution" if context.waiting == 1 else f"{context.waiting} newer contributions"
        console.line((f"(There was no room for {newer}: more with your next turn.)", Style.DIM))
    elif not context.delta:
        nobody = "Nobody has spoken yet." if given.first else "Nothing is new to you."
        console.line((f"({nobody})", Style.DIM))


def heading(console: Console, text: str) -> None:
    """A line that is found again when one scrolls back."""
    console.line((f"── {text} ".ljust(console.width, "─"), Style.BOLD))


def _contribution(console: Console, entry: DeltaEntry, limit: int) -> None:
    console.line()
    if entry.speaker == MODERATOR:
        console.line(("the moderator", Style.YELLOW))
    else:
        role = f" ({clean_line(entry.role_label, LABEL_CHARS)})" if entry.role_label else ""
        console.line((clean_line(entry.speaker, LABEL_CHARS) or "(unnamed)", Style.CYAN), role)
    text = clean_text(entry.text).strip()
    end = boundary(text, limit)
    console.text(text[:end] or "(There was no readable text in it.)", indent=INDENT)
    if end < len(text):
        console.line(f"{INDENT}(Cut here: it was longer by {len(text) - end} characters.)")


def own(console: Console, text: str) -> None:
    """What the person has sent, so that it can be read back."""
    console.line()
    console.line(("you", Style.GREEN))
    console.text(text, indent=INDENT)


def table(console: Console, status: Status, who: str) -> None:
    """Who sits there."""
    seats = ", ".join(_seat(seat, who) for seat in status.seats)
    console.text(f"At the table: {seats or 'nobody yet'}", indent="")


def _seat(seat: SeatStatus, who: str) -> str:
    if seat.participant_id == who:
        return "you"
    known = [seat.brand, seat.model, seat.role_label, "" if seat.connected else "not connected"]
    facts = ", ".join(clean_line(fact, LABEL_CHARS) for fact in known if fact)
    return f"{seat.participant_id} ({facts})" if facts else seat.participant_id


def status(console: Console, report: Status, who: str) -> None:
    """Where the debate stands (§5.7), for whoever was away."""
    heading(console, "where the debate stands")
    reason = f": {clean_line(why(report.reason), LABEL_CHARS)}" if report.reason else ""
    _field(console, "State", f"{report.debate_state}{reason}")
    _field(console, "Phase", str(report.phase))
    _field(console, "Topic", clean_text(report.topic)[:TOPIC_CHARS])
    since = report.turns_since.get(who)
    yours = "" if since is None else f"; {since:,} since you last spoke"
    _field(console, "Turns", f"{report.turn_counter:,}{yours}")
    cost = report.cost
    total = "unknown" if cost.tokens_total is None else f"{cost.tokens_total:,}"
    cap = "" if cost.cap is None else f" of {cost.cap:,}"
    usd = "" if cost.usd_total is None else f", ${cost.usd_total:,.2f}"
    _field(console, "Cost", f"{total} tokens{cap}{usd}, {duration(cost.elapsed_s)}")
    for seat in report.seats:
        facts = [_seat(seat, who), clean_line(seat.state, LABEL_CHARS), f"{seat.turns} turns"]
        if (share := report.repetition.get(seat.participant_id)) is not None:
            facts.append(f"repeats itself {share:.2f}")
        if seat.brand == HUMAN and seat.participant_id != who:
            facts.append("a person")
        _field(console, "Seat", "; ".join(facts))
    for warning in report.warnings:
        _field(console, "Warning", clean_line(warning, LABEL_CHARS * 4))


def _field(console: Console, label: str, text: str) -> None:
    console.text(text, first=f"{label:<{LABEL}}", indent=" " * LABEL)


_SHOWN = {
    Command.AWAY: "step away: your turns are skipped, and the debate does not wait for you",
    Command.BACK: "come back, and see where the debate stands",
    Command.STATUS: "see where the debate stands",
    Command.TIMEOUT: "/timeout 60 skips your turn after 60 s without a key, /timeout off never",
    Command.QUIT: "leave the debate (so does Ctrl+C)",
    Command.SKIP: "skip this turn (so does an empty line)",
    Command.HELP: "this list",
}


def commands(console: Console, keys: Mapping[str, str]) -> None:
    """What can be pressed and typed. ``keys`` are those of the commands; none without a line editor."""
    heading(console, "what you can do")
    again = f", {key_name(keys['newline'])} or Alt+Enter" if keys else ""
    console.text(f"Enter sends your text. A backslash before it{again} goes on in the next line.", indent="")
    for command, meaning in _SHOWN.items():
        key = key_name(keys[command]) if command in keys else ""
        console.text(meaning, first=f"  /{command:<9}{key:<8}", indent=" " * 19)
    console.text("A text that begins with / is written with two: //", indent="")


def hint(keys: Mapping[str, str]) -> str:
    """The same in one line, for a turn."""
    away = f" · {key_name(keys['away'])} away" if keys else ""
    return f"Enter sends · empty Enter skips · \\ Enter goes on in the next line{away} · /help"


def key_name(key: str) -> str:
    """``ctrl+a`` as it stands on a keyboard."""
    return "+".join(part.capitalize() for part in key.split("+"))
