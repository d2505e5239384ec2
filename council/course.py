"""What a debate came to, from its record and from the ends of its processes. Pure.

One cause often shows twice, as a pause on the record and as the end of a process. So the first sign is
`troubled`; after a moment in which the other may arrive, `verdict` tells both in one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilium.messages import DebateState, PromptSent
from consilium.pausing import moment, why
from consilium.records import EventName, EventRecord, TurnRecord
from council.telling import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from consilium.records import AnyEntry
    from council.processes import Ended

ARBITER = "arbiter"
MODEL = "model"
SEAT = "seat-"
"""How processes are called: what comes after ``seat-`` is the seat's logical name."""

FAULT = "FAULT"
"""The outcome of a debate that could not go on and had no operator at hand."""

_CENTRAL = {ARBITER: "the Arbiter", MODEL: "the model server"}
_SENT: dict[str, str] = {
    PromptSent.NO: "its client was not given the turn",
    PromptSent.MAYBE: "its client may have been given the turn",
    PromptSent.YES: "its client was given the turn",
}
_WELL = {
    DebateState.FINISHED: "the debate is finished",
    DebateState.STOPPED_BY_CAP: "the debate was stopped by a cap",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """How it ended: the exit code, the outcome in a word, its cause, and where the debate stood then."""

    code: int
    outcome: str
    cause: str
    stood: str = ""

    @property
    def sentence(self) -> str:
        """The cause, and what is known, for a person."""
        return " ".join(f"{part[:1].upper()}{part[1:]}." for part in (self.cause, self.stood) if part)


class Course:
    """Follows one debate. Feed it every record and every end of a process."""

    def __init__(self, seats: Iterable[str]) -> None:
        """``seats`` are the logical names that are expected."""
        self.over: Verdict | None = None
        self.started = False
        self.troubled = False
        self._missing = set(seats)
        self._deaths: dict[str, str] = {}
        self._lost = ""
        self._faults: dict[str, str] = {}
        self._pause = ""
        self._asked_to_pause = False
        self._seemed_still = False
        self._at = "before its first turn"

    @property
    def missing(self) -> list[str]:
        """The expected seats that have not joined."""
        return sorted(self._missing)

    @property
    def stood(self) -> str:
        """Where the debate stands."""
        return f"the debate stood {'paused ' if self._pause else ''}{self._at}"

    def observe(self, entry: AnyEntry) -> None:
        """Take the next record."""
        if not isinstance(entry, EventRecord):
            return
        data, seat = entry.data, short(entry.participant_id)
        match entry.event:
            case EventName.PARTICIPANT_JOINED | EventName.PARTICIPANT_JOINED_COLD:
                self._missing.discard(seat)
            case EventName.DEBATE_STARTED:
                self.started = True
            case EventName.TURN_STARTED:
                self._at = f"in {data.get('phase')}, at turn {entry.turn_id}"
            case EventName.PARTICIPANT_FAULT:
                sent, back = _SENT.get(str(data.get("prompt_sent"))), data.get("resets_at")
                told = f"{data.get('reason')}" + (f", and {sent}" if sent else "")
                self._faults[seat] = told + (f"; its quota comes back: {moment(str(back))}" if back else "")
            case EventName.OPERATOR_COMMAND:
                self._asked_to_pause = data.get("operation") == "PAUSE"
            case EventName.DEBATE_PAUSED:
                self._pause = str(data.get("reason"))
                # An operator's own pause is that operator's to end.
                self.troubled |= not self._asked_to_pause
            case EventName.DEBATE_RESUMED:
                self._pause = ""
                self._faults.clear()
            case EventName.DEBATE_ENDED:
                self.over = _over(data)

    def awaits_a_choice(self, entry: AnyEntry) -> bool:
        """Whether a next speaker is due after ``entry``, which was observed just now."""
        begun = isinstance(entry, EventRecord) and entry.event in (
            EventName.DEBATE_STARTED,
            EventName.DEBATE_RESUMED,
        )
        return (begun or isinstance(entry, TurnRecord)) and not self._pause and self.over is None

    def process_ended(self, ended: Ended, last_words: str) -> None:
        """Take the end of a process, and the last line of its log."""
        seat = ended.process.removeprefix(SEAT)
        if ended.code == 0 and seat != ended.process and self.started:
            return  # it left of its own accord; the record says what that means
        said = f" ({last_words})" if ended.code > 0 and last_words else ""
        self._deaths[ended.process] = f"{ended.how}{said}"
        self.troubled = True

    def connection_lost(self, why: str) -> None:
        """Take the end of the operator's connection, with its cause."""
        self._lost = f"the connection to the Arbiter ended: {why}"
        self.troubled = True

    def seen_at(self, state: DebateState, reason: str | None) -> None:
        """Take where the Arbiter says that it stands.

        While its disk refuses records, only this tells of the pause. Once may be a record that is on its way.
        """
        still = state is DebateState.PAUSED and not self._pause
        if still and self._seemed_still:
            self._pause, self.troubled = str(reason), True
        self._seemed_still = still

    def verdict(self) -> Verdict:
        """What it came to, as far as it is known now."""
        if self.over is not None:
            return self.over
        return Verdict(1, FAULT, self._cause(), self.stood)

    def _cause(self) -> str:
        # What the others meet when one of these ends follows from that.
        for process, name in _CENTRAL.items():
            if process in self._deaths:
                return f"{name} {self._deaths[process]}"
        if self._deaths:
            alike: dict[str, list[str]] = {}
            for process, how in self._deaths.items():
                alike.setdefault(how, []).append(f"the seat {process.removeprefix(SEAT)}")
            return "; ".join(f"{' and '.join(seats)} {how}" for how, seats in alike.items())
        if self._faults:
            return "; ".join(f"the seat {seat} cannot go on: {why}" for seat, why in self._faults.items())
        if self._pause:
            return why(self._pause)
        return self._lost or f"the debate did not start: {', '.join(self.missing)} did not join"


def _over(data: Mapping[str, JsonValue]) -> Verdict:
    outcome = str(data["outcome"])
    detail = data.get("cap") or data.get("reason")
    count = data.get("turn_counter")
    turns = f"after {count} turn{'' if count == 1 else 's'}"
    cause = f"{_WELL.get(DebateState(outcome), 'the debate ended in error')} {turns}: {detail}"
    return Verdict(0 if outcome in _WELL else 1, outcome, cause)
