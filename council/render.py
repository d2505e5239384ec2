"""A transcript for a person to read: where the debate got to, then what was said. Text goes to a `Console`.

Nothing here cleans text: the console does, all of it, whatever it is given.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from consilium.console import Style, duration
from consilium.messages import QUOTA_EXHAUSTED, DebateState
from consilium.pausing import why, why_paused
from consilium.records import EventName, EventRecord, HeaderRecord, TurnOutcome, TurnRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from consilium.console import Console
    from consilium.records import Stored
    from council.summary import SeatSummary, Summary

LABEL = 10
"""How wide the names at the left of the status are."""

_COLOURS = (Style.CYAN, Style.GREEN, Style.YELLOW, Style.MAGENTA, Style.BLUE)

_STATES = {
    DebateState.WAITING_QUORUM: "waiting for its seats",
    DebateState.RUNNING: "running",
    DebateState.PAUSED: "paused",
    DebateState.RESUMING: "resuming",
    DebateState.FINISHED: "finished",
    DebateState.STOPPED_BY_CAP: "stopped by a cap",
    DebateState.ERROR: "ended by an error",
}

NOT_ALLOWED = "was not allowed to do this"
"""What is said before each thing that a client wanted to do in its turn."""

QUIET = frozenset(
    {
        EventName.PARTICIPANT_JOINED,
        EventName.PARTICIPANT_UPDATED,
        EventName.TURN_STARTED,
        EventName.ROUND_COMPLETED,
        EventName.OPERATOR_COMMAND,
        EventName.DEBATE_STARTED,
        EventName.DEBATE_RESUMING,
        EventName.HUMAN_SKIP,
    }
)
"""Events that tell a reader of the debate nothing that the turns and the status do not."""

_SAID: dict[EventName, tuple[str, str]] = {
    EventName.PHASE_CHANGED: ("phase", "phase"),
    EventName.MODERATOR_STEERING: ("moderator", "text"),
    EventName.TOPIC_CHANGED: ("the topic is now", "topic"),
    EventName.DEBATE_PAUSED: ("paused", "reason"),
    EventName.DEBATE_RESUMED: ("resumed", "reason"),
    EventName.DEBATE_ENDED: ("the debate ended", "reason"),
    EventName.CAP_REACHED: ("a cap is reached", "cap"),
    EventName.USAGE_UNREPORTED: ("reports no tokens; estimated towards", "cap"),
    EventName.PARTICIPANT_FAULT: ("failed", "reason"),
    EventName.PARTICIPANT_LEFT: ("left", "reason"),
    EventName.PARTICIPANT_JOINED: ("took a seat", "name"),
    EventName.PARTICIPANT_JOINED_COLD: ("took a seat in the middle, without the history", "name"),
    EventName.PARTICIPANT_MEMORY_LOST: ("was restarted and has no memory of the debate", "reason"),
    EventName.ARBITER_RESTARTED: ("the Arbiter was restarted", "reason"),
}
"""How an event is told, and which field of its data says the most. What is not here is told by its name."""


def render(records: Iterable[Stored], summary: Summary, console: Console, *, events: bool) -> None:
    """Write the status and then the debate; with ``events``, every event, else those that matter to it.

    What a seat said is indented, what is said about the debate is not: a speech cannot pass for an event.
    """
    render_status(summary, console)
    colours: dict[str, Style] = {}
    spoke = True  # the status too is set off by a blank line
    for record in records:
        entry = record.entry
        if isinstance(entry, HeaderRecord) or not shown(record, events=events):
            continue
        speech = isinstance(entry, TurnRecord) and entry.outcome is TurnOutcome.SPEECH
        if speech or spoke:
            console.line()
        spoke = speech
        if isinstance(entry, TurnRecord):
            _turn(entry, console, colours)
        else:
            _aside(describe(entry), console)


def shown(record: Stored, *, events: bool) -> bool:
    """Whether a record is part of the debate as it is read, or, with ``events``, of its full course."""
    entry = record.entry
    return isinstance(entry, TurnRecord) or (
        isinstance(entry, EventRecord) and (events or entry.event not in QUIET)
    )


def render_status(summary: Summary, console: Console) -> None:
    """Write where the debate stands (§5.7)."""
    for label, values in status_lines(summary):
        first = f"{label:<{LABEL}}"
        for value in values:
            console.text(value, first=first, indent=" " * LABEL)
            first = " " * LABEL


def status_lines(summary: Summary) -> list[tuple[str, tuple[str, ...]]]:
    """The status: names, and for each its value, or several (the lines of the topic; the seats)."""
    cost = () if summary.usd_total is None else (f"${summary.usd_total:,.4f}, as far as it was reported",)
    paused = f", and {duration(summary.paused_s)} paused" if summary.paused_s else ""
    caps = ", ".join(f"{name} {_number(value)}" for name, value in summary.caps.items())
    lines = [
        ("Topic", tuple((summary.topic or "unknown").split("\n"))),
        ("Debate", (_flat(f"{summary.debate_id or 'unknown'}{_when(summary)}"),)),
        ("State", (_flat(_state(summary)),)),
        ("Phases", (_flat(", ".join(summary.phases) or "none yet"),)),
        ("Rounds", (f"{summary.rounds} complete",)),
        ("Turns", (_turns(summary.turns),)),
        ("Tokens", (tokens(summary.tokens_total, summary.tokens_unknown_turns),)),
        ("Cost", cost),
        ("Elapsed", (duration(summary.elapsed_s) + paused,)),
        ("Caps", (_flat(caps or "unknown"),)),
        ("Seats", tuple(map(_seat, summary.seats)) or ("none yet",)),
    ]
    return [(label, values) for label, values in lines if values]


def describe(event: EventRecord) -> str:
    """An event in one line, with all that its data holds, known or not."""
    told, main = _SAID.get(event.event, (event.event.value.lower().replace("_", " "), ""))
    data = {key: _value(value) for key, value in event.data.items() if key != "meta"}
    if event.event is EventName.DEBATE_PAUSED and data.get("reason") == QUOTA_EXHAUSTED:
        data = {"reason": why_paused(event.data)}  # which says of whom, and until when
    said = data.pop(main, "")
    about = "" if event.turn_id is None else f"turn {event.turn_id}, "
    about += f"{event.participant_id} " if event.participant_id else ""
    details = ", ".join(f"{key} {value}" for key, value in data.items() if value)
    return _flat(f"{about}{told}" + (f": {said}" if said else "") + (f" ({details})" if details else ""))


def tokens(total: int | None, unknown_turns: int) -> str:
    """A number of tokens, and of how many turns it is not known; never 0 for unknown."""
    if total is None:
        return "unknown" if unknown_turns else "none reported"
    return f"{total:,}" + (f", and unknown for {_count(unknown_turns, 'turn')}" if unknown_turns else "")


def _turn(turn: TurnRecord, console: Console, colours: dict[str, Style]) -> None:
    if turn.outcome is not TurnOutcome.SPEECH:
        what = f"turn {turn.turn_id}, {turn.participant_id}, {turn.phase}: {turn.outcome}"
        _aside(
            f"{what} after {duration(turn.duration_s)}" + (f": {turn.detail}" if turn.detail else ""), console
        )
        _refused(turn, console)
        return
    colour = colours.setdefault(turn.participant_id, _COLOURS[len(colours) % len(_COLOURS)])
    role = f" ({turn.meta.role_label})" if turn.meta.role_label else ""
    facts = f"  {turn.phase} · turn {turn.turn_id} · {_used(turn)} · {duration(turn.duration_s)}"
    console.line((turn.participant_id, colour), role, (facts, Style.DIM))
    console.text(turn.text or "(no text)", indent="  ")
    _refused(turn, console)


def _refused(turn: TurnRecord, console: Console) -> None:
    for line in turn.refused:
        _aside(f"turn {turn.turn_id}, {turn.participant_id} {NOT_ALLOWED}: {line}", console)


def _aside(line: str, console: Console) -> None:
    console.text(_flat(line), first="· ", indent="  ", style=Style.DIM)


def _flat(text: str) -> str:
    """``text`` in one line."""
    return " ".join(text.split())


def _used(turn: TurnRecord) -> str:
    counts = turn.tokens or {}
    if all(count is None for count in counts.values()):
        return "tokens unknown"
    return "tokens " + " / ".join(f"{_unknown(counts.get(way))} {way}" for way in ("in", "out"))


def _unknown(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def _when(summary: Summary) -> str:
    if summary.began is None:
        return ""
    return f", begun {datetime.fromisoformat(summary.began).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _state(summary: Summary) -> str:
    state = _STATES.get(summary.state, summary.state.value)
    if summary.cap:
        return f"{state}: {summary.cap}"
    speaking = f"; {summary.speaking} has the floor" if summary.speaking else ""
    return f"{state}: {why(summary.reason)}" if summary.reason else f"{state}{speaking}"


def _turns(turns: Mapping[TurnOutcome, int]) -> str:
    if not turns:
        return "none yet"
    return f"{sum(turns.values())}: " + ", ".join(f"{count} {outcome}" for outcome, count in turns.items())


def _seat(seat: SeatSummary) -> str:
    model = " ".join(filter(None, (seat.brand, seat.model))) or seat.adapter or "model unknown"
    facts = [
        seat.role_label or "no role",
        f"{model} ({seat.effort})" if seat.effort else model,
        _count(seat.turns, "turn"),
    ]
    if seat.tokens is not None or seat.tokens_unknown_turns:
        facts.append(f"tokens {tokens(seat.tokens, seat.tokens_unknown_turns)}")
    if not seat.present:
        facts.append("left")
    if seat.fault:
        facts.append(f"at fault: {seat.fault}")
    name = f"{seat.participant_id}, shown as {seat.pseudonym}" if seat.pseudonym else seat.participant_id
    return _flat(f"{name}: {'; '.join(facts)}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _number(value: float) -> str:
    return f"{value:,.10g}"


def _value(value: JsonValue) -> str:
    """Any JSON value in words: nothing for null and for what is empty."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{key} {_value(inner)}" for key, inner in value.items())
        case list():
            return ", ".join(map(_value, value))
        case int() | float():
            return _number(value)
        case _:
            return str(value)
