"""STATUS for a person (§5.7): where the debate stands, what it has cost, and what it waits for. Pure.

1. What is unknown is said to be; it is never shown as 0.
2. Each command that is shown can be typed as it stands: it also decides on the other seats that need it.
3. Signals, never verdicts: a repetition index is a number beside the turn that it comes from.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilium.console import Style, duration
from consilium.messages import DebateState, PromptSent, Recovery
from consilium.pausing import REASONS, REVOKED, moment, why
from council.render import LABEL, tokens
from council.tally import HUMAN
from council.telling import INDENT, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from consilium.console import Console
    from consilium.messages import SeatStatus, Status

    Command = Callable[..., str]
    """From the words of a verb to the whole line that a person types."""

OVER = frozenset({DebateState.FINISHED, DebateState.STOPPED_BY_CAP, DebateState.ERROR})

BAR = 20
"""Columns of a bar."""

TERMINATE = "terminate"

_SENT = {
    PromptSent.NO: "no, its client was not given the turn",
    PromptSent.MAYBE: "maybe, its client may have been given the turn",
    PromptSent.YES: "yes, its client was given the turn",
    None: "no turn of its was open",
}
_STYLES = {
    DebateState.RUNNING: Style.GREEN,
    DebateState.PAUSED: Style.RED,
    DebateState.RESUMING: Style.YELLOW,
    DebateState.WAITING_QUORUM: Style.YELLOW,
    DebateState.ERROR: Style.RED,
}


@dataclass(frozen=True, slots=True)
class Way:
    """One way on: for which seat, the choice in a word, what it means, and the command."""

    seat: str
    choice: str
    meaning: str
    command: str


def ways_on(status: Status, command: Command) -> list[Way]:
    """What an operator can do for a debate that waits for one; nothing for a debate that does not."""
    close = Way("", TERMINATE, "close the debate", command(TERMINATE))
    if status.debate_state is DebateState.READY:
        return [Way("", "resume", "begin", command("resume")), close]
    if status.debate_state is not DebateState.PAUSED:
        return []
    names = references(status)
    troubled = [seat for seat in status.seats if seat.choices]
    ways = [
        Way(
            names[seat.participant_id],
            choice,
            _meaning(choice, seat),
            command("resume", f"{names[seat.participant_id]}={choice}", *_others(seat, troubled, names)),
        )
        for seat in troubled
        for choice in seat.choices
        if choice != TERMINATE
    ]
    if not ways:
        nobody = status.reason == "nobody_to_speak"
        meaning = "go on, once somebody has taken a seat" if nobody else "go on"
        ways = [Way("", "resume", meaning, command("resume"))]
    return [*ways, close]


def references(status: Status) -> dict[str, str]:
    """How to name each seat: by its logical name where no other has it, else by its id (§5.2)."""
    names = Counter(short(seat.participant_id) for seat in status.seats)
    return {
        seat.participant_id: name if names[name := short(seat.participant_id)] == 1 else seat.participant_id
        for seat in status.seats
    }


def awaited(seat: SeatStatus) -> bool:
    """Whether the debate stands still for a seat that is gone and can come back."""
    return bool(seat.choices) and not seat.connected and seat.fault != REVOKED


def _others(seat: SeatStatus, troubled: list[SeatStatus], names: dict[str, str]) -> Iterator[str]:
    """What has to be said of the other seats: one that is gone cannot keep its chat, which is the default."""
    for other in troubled:
        if other is not seat and Recovery.KEEP not in other.choices:
            yield f"{names[other.participant_id]}={Recovery.SKIP}"


def _meaning(choice: str, seat: SeatStatus) -> str:
    again = "; it is given its lost turn again" if seat.prompt_sent is not None else ""
    match choice:
        case Recovery.KEEP:
            checked = "you have checked that its chat survived:"
            if seat.resets_at is not None:
                checked = f"once its quota is back ({moment(seat.resets_at)}),"
            return f"{checked} go on with it{again}"
        case Recovery.COLD:
            return f"start its client anew, with no memory of the debate{again}"
        case Recovery.SKIP if seat.connected:
            return "leave out its turn in this round, and go on with its chat"
        case Recovery.SKIP:
            return "go on without it" + ("" if seat.fault == REVOKED else ", until it comes back by itself")
        case Recovery.REMOVE:
            return "take it out of the debate for good"
        case _:
            return "see the Arbiter's documentation"


def tell(status: Status, console: Console, command: Command) -> None:
    """Write the whole of it."""
    _field(console, "State", state(status), style=_STYLES.get(status.debate_state, Style.BOLD))
    _field(console, "Phase", status.phase)
    _field(console, "Topic", status.topic)
    speaking = short(status.speaking) if status.speaking else "nobody"
    _field(console, "Turns", f"{status.turn_counter:,}; {speaking} has the floor")
    for label, value in costs(status):
        _field(console, label, value)
    if status.brands is not None:
        _field(console, "Brands", f"{count(status.brands, 'brand')} of AI clients")
    for seat in status.seats:
        _seat(console, seat, status)
    for warning in status.warnings:
        _field(console, "Warning", warning, style=Style.YELLOW)
    _ways(console, ways_on(status, command))


def state(status: Status) -> str:
    """The state and its reason in one line."""
    if not status.reason:
        return status.debate_state
    quotas = {short(seat.participant_id): seat.resets_at for seat in status.seats if seat.resets_at}
    return f"{status.debate_state}: {why(status.reason, quotas)}"


def costs(status: Status) -> Iterator[tuple[str, str]]:
    """Consumption against each cap that is set, by its label."""
    cost, caps = status.cost, status.cost.caps
    known = tokens(cost.tokens_total, cost.tokens_unknown_turns)
    usd = "unknown" if cost.usd_total is None else f"${cost.usd_total:,.4f}"
    yield "Rounds", _against(f"{cost.rounds} complete", cost.rounds, caps.get("max_rounds"), "{:,.0f}")
    if cost.tokens_estimated:
        known += f" and about {cost.tokens_estimated:,} more, estimated"
    counted = (cost.tokens_total or 0) + cost.tokens_estimated
    yield "Tokens", _against(known, counted, caps.get("max_tokens"), "{:,.0f}")
    if cost.usd_total is not None or "max_usd" in caps:
        yield "Cost", _against(usd, cost.usd_total, caps.get("max_usd"), "${:,.2f}")
    limit = caps.get("max_seconds")
    told = "no cap" if limit is None else duration(limit)
    yield "Elapsed", _against(duration(cost.elapsed_s), cost.elapsed_s, limit, told)


def _against(told: str, used: float | None, limit: float | None, form: str) -> str:
    if limit is None:
        return f"{told}, no cap"
    share = min(1.0, (used or 0) / limit)
    filled = int(share * BAR)
    return f"[{'#' * filled}{'.' * (BAR - filled)}] {told}; the cap is {form.format(limit)}"


def _seat(console: Console, seat: SeatStatus, status: Status) -> None:
    there = "connected" if seat.connected else "not connected"
    required = ", required" if seat.required else ""
    state_style = Style.RED if seat.choices else Style.BOLD
    console.line(
        f"{'Seat':<{LABEL}}",
        (seat.participant_id, Style.BOLD),
        ": ",
        (f"{seat.state}, {there}{required}", state_style),
    )
    model = " ".join(filter(None, (seat.brand, seat.model))) or "model unknown"
    turns = count(seat.turns, "turn")
    turns += "" if seat.last_turn is None else f", the last was turn {seat.last_turn}"
    usd = [] if seat.usd is None else [f"${seat.usd:,.4f}"]
    facts = [seat.role_label or "no role", model, turns, *_spent(seat), *usd]
    if seat.brand != HUMAN:  # a person has no client that could be kept apart from anything
        facts.append(f"isolation {seat.isolation or 'unknown'}")
    _detail(console, "; ".join(facts))
    since = status.turns_since.get(seat.participant_id)
    if since is not None:
        spoke = since < status.turn_counter
        ago = f"spoke {count(since, 'turn')} ago" if spoke else "has not spoken yet"
        _detail(console, f"a person, who {ago}")
    share = status.repetition.get(seat.participant_id)
    if share is not None:
        repeated = "" if seat.repeats_turn is None else f", most of it from turn {seat.repeats_turn}"
        _detail(console, f"repetition {share:.2f}{repeated}")
    overlap = status.topic_overlap.get(seat.participant_id)
    if overlap is not None:
        _detail(console, f"uses {overlap:.0%} of the topic's words (mechanical; watch it fall)")
    if seat.fault is not None:
        _fault(console, seat, seat.fault)
    elif seat.choices:
        _detail(console, "it left, and the debate needs it", style=Style.RED)
    if seat.choices:
        _detail(console, f"last heard of, heartbeats left out: {_ago(seat.last_active_s)}")
    if awaited(seat):
        _detail(console, "start it again, and it can go on from where it was")


def _fault(console: Console, seat: SeatStatus, fault: str) -> None:
    _detail(console, f"fault: {REASONS.get(fault, fault)}", style=Style.RED)
    if seat.resets_at is not None:
        _detail(console, f"its quota comes back: {moment(seat.resets_at)}", style=Style.RED)
    _detail(console, f"was the prompt sent: {_SENT[seat.prompt_sent]}")
    if seat.prompt_sent in (PromptSent.MAYBE, PromptSent.YES):
        _detail(console, f"how much of an answer had come: {_seen(seat.partial_bytes)}")


def _spent(seat: SeatStatus) -> Iterator[str]:
    """Its tokens. That a person reports none leaves nothing unknown."""
    if seat.tokens is not None:
        yield f"{seat.tokens:,} tokens"
    elif seat.brand != HUMAN:
        yield "tokens unknown"


def _seen(partial_bytes: int | None) -> str:
    return "unknown" if partial_bytes is None else count(partial_bytes, "byte")


def _ago(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{duration(seconds)} ago"


def _ways(console: Console, ways: list[Way]) -> None:
    if ways:
        console.line()
    for way in ways:
        what = f"{way.seat} {way.choice}" if way.seat else way.choice
        _field(console, "To go on" if way is ways[0] else "or", f"{what}: {way.meaning}")
        console.line(f"{'':<{LABEL}}{INDENT}", (way.command, Style.BOLD))  # not wrapped: it is to be copied


def count(number: int, what: str) -> str:
    """``1 turn``, ``2 turns``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _field(console: Console, label: str, value: str, *, style: Style | None = None) -> None:
    console.text(value, first=f"{label:<{LABEL}}", indent=" " * LABEL, style=style)


def _detail(console: Console, value: str, *, style: Style | None = None) -> None:
    console.text(value, indent=" " * LABEL, style=style)
