"""The operator's verbs (§3.3.D): from words to one message, and to what is said when it is done or refused.

Pure. What may be done when is the Arbiter's to judge; a verb that is well formed is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from consilium.errors import ErrorCode, UserError
from consilium.messages import (
    DebateState,
    ForceTurnEnd,
    Inject,
    Kick,
    Message,
    Next,
    Pause,
    Phase,
    Recovery,
    Reload,
    Resume,
    SetPhase,
    SetTopic,
    StatusRequest,
    Terminate,
    When,
)
from council.status import OVER, awaited, references, state, ways_on

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from consilium.errors import PeerError
    from consilium.messages import Status
    from council.status import Command

Kind = TypeVar("Kind", bound=Message)

CHOICES = ", ".join(Recovery)

OPERATORS_ONLY = "this endpoint takes operators only: consilium pki issue DIR NAME --profile operator"

_BOUNDS = {
    "text": "the text must have 1 character at least and 65,536 bytes of UTF-8 at most",
    "topic": "a topic has 1 to 8,000 characters",
    "reason": "a reason has at most 2,000 characters",
    "seat": "a seat is named by its name or its id; `status` lists them",
    "seats": "a seat is named by its name or its id; `status` lists them",
}
"""What a field of an operator's message may hold, by its name."""


@dataclass(frozen=True, slots=True)
class Order:
    """A message for the Arbiter, and the sentence that is true once it is carried out.

    With ``only_in``, it is for a debate in that state: in any other, nothing is done, and ``left`` is told.
    """

    message: Message
    done: str
    only_in: DebateState | None = None
    left: str = ""


def order(options: argparse.Namespace, read: Callable[[], str]) -> Order:
    """Make the order of a parsed command line; ``read`` gives standard input. Raises `UserError`."""
    return _ORDERS[options.verb](options, read)


def refused(verb: str, refusal: PeerError) -> str:
    """A refusal in one sentence."""
    if refusal.in_reply_to is None:
        return f"the Arbiter refused this connection: {refusal.message}"
    return f"the Arbiter refused {verb}: {refusal.message}"


def entitled(refusal: PeerError) -> str:
    """Who may do it, where a whole connection is refused for what its certificate is."""
    denied = refusal.in_reply_to is None and refusal.code is ErrorCode.POLICY_DENIED
    return OPERATORS_ONLY if denied else ""


def way_out(verb: str, status: Status, command: Command) -> str:
    """What to do about a refusal of ``verb`` in a debate that stands as ``status`` says."""
    if status.debate_state in OVER:
        return f"the debate is over ({state(status)}); its transcript stays readable"
    match verb:
        case "resume" if ways := ways_on(status, command):
            told = [f"{way.command}    ({way.meaning})" for way in ways]
            if any(awaited(seat) for seat in status.seats):
                told.insert(0, f"{command('resume')}    (again, once every seat that is running is back)")
            return "\n  ".join(told)
        case "resume" if status.debate_state is DebateState.WAITING_QUORUM:
            return "; ".join(status.warnings)
        case "pause" if status.debate_state is DebateState.PAUSED:
            return f"it is paused; to go on: {command('resume')}"
        case "kick" | "next":
            return f"the seats: {_seats(status)}"
        case _:
            return f"where it stands: {command('status')}"


def _seats(status: Status) -> str:
    names = references(status)
    told = [
        f"{names[seat.participant_id]} ({seat.state}{'' if seat.connected else ', not connected'})"
        for seat in status.seats
    ]
    return ", ".join(told) or "none yet"


def _status(_options: argparse.Namespace, _read: Callable[[], str]) -> Order:
    return Order(StatusRequest(), "")


def _begin(_options: argparse.Namespace, _read: Callable[[], str]) -> Order:
    left = "It has begun already, or begins by itself once everybody is there who is waited for."
    return Order(Resume(), "The debate begins.", only_in=DebateState.READY, left=left)


def _inject(options: argparse.Namespace, read: Callable[[], str]) -> Order:
    text = read().rstrip("\n") if options.text == "-" else options.text
    return Order(_made(Inject, text=text), "Injected: every seat finds it in its next turn.")


def _topic(options: argparse.Namespace, _read: Callable[[], str]) -> Order:
    return Order(_made(SetTopic, topic=options.text), "The topic is changed, from the next turn on.")


def _phase(options: argparse.Namespace, _read: Callable[[], str]) -> Order:
    phase, when = Phase(options.phase), _when(options)
    told = f"The phase is {phase}, from the next turn on."
    if when is When.ROUND_END:
        told = f"The phase becomes {phase} when the round is complete."
    return Order(SetPhase(phase=phase, when=when), told)


def _kick(options: argparse.Namespace, _read: Callable[[], str]) -> Order:
    return Order(_made(Kick, seat=options.seat), f"{options.seat} is removed from the debate for good.")


def _force_turn_end(_options: argparse.Namespace, _read: Callable[[], str]) -> Order:
    return Order(ForceTurnEnd(), "The open turn is taken back, and counts as had in this round.")


def _next(options: argparse.Namespace, _read: Callable[[], str]) -> Order:
    return Order(_made(Next, seat=options.seat), f"The next turn is for {options.seat}.")


def _pause(options: argparse.Namespace, _read: Callable[[], str]) -> Order:
    told = "Paused: no further turn is given; one that is open may finish."
    return Order(_made(Pause, reason=options.reason), told)


def _resume(options: argparse.Namespace, _read: Callable[[], str]) -> Order:
    chosen = _choices(options.choices)
    told = "The debate goes on."
    if Recovery.COLD in chosen.values():
        cold = ", ".join(seat for seat, choice in chosen.items() if choice is Recovery.COLD)
        told = f"The debate goes on once {cold} has been started anew."
    return Order(_made(Resume, seats=chosen), told)


def _terminate(options: argparse.Namespace, _read: Callable[[], str]) -> Order:
    when = _when(options)
    told = "The debate is closed."
    if when is When.ROUND_END:
        told = "The debate is closed when the round is complete."
    return Order(_made(Terminate, when=when, reason=options.reason), told)


def _reload(_options: argparse.Namespace, _read: Callable[[], str]) -> Order:
    return Order(Reload(), "Certificates and profiles are read again; the record says what changed.")


def _when(options: argparse.Namespace) -> When:
    return When.ROUND_END if options.round_end else When.NOW


def _choices(words: Sequence[str]) -> dict[str, Recovery]:
    chosen: dict[str, Recovery] = {}
    for word in words:
        seat, _, choice = word.partition("=")
        if choice not in set(Recovery):
            raise UserError(f"{word!r} is not SEAT=CHOICE", hint=f"the choices are: {CHOICES}")
        if seat in chosen:
            raise UserError(f"{seat!r} is given two choices", hint="one for each seat")
        chosen[seat] = Recovery(choice)
    return chosen


def _made(kind: type[Kind], **fields: object) -> Kind:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        if problem["type"] == "string_unicode":
            raise UserError("the text is not valid UTF-8") from None
        raise UserError(_BOUNDS[str(problem["loc"][0])]) from None


_ORDERS: dict[str, Callable[[argparse.Namespace, Callable[[], str]], Order]] = {
    "status": _status,
    "begin": _begin,
    "inject": _inject,
    "topic": _topic,
    "phase": _phase,
    "kick": _kick,
    "force-turn-end": _force_turn_end,
    "next": _next,
    "pause": _pause,
    "resume": _resume,
    "terminate": _terminate,
    "reload": _reload,
}
