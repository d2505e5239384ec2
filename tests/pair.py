"""Arbiter and wrappers joined in memory: the debate core, a seat machine for each seat, and queues between.

Each seat has four queues, as it has two connections with two directions: what is in one keeps its order, what
is in different ones may overtake. A test decides which queue moves next.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from playbook import SUFFIX, council

from arbiter import translate
from arbiter.admission import Rights
from arbiter.debate import Debate
from arbiter.debate import events as happened
from arbiter.debate.effects import Append, Channel, EndSession, Refuse, Send
from arbiter.debate.events import Event
from consilium import messages as m
from consilium.codec import Line
from consilium.identity import Identity
from consilium.profile import DEFAULT_PROFILES
from consilium.records import AnyEntry
from wrapper import events
from wrapper.reconnection import Reconnection
from wrapper.turn import SeatMachine

RIGHTS = Rights(
    Identity(bytes.fromhex(SUFFIX) + bytes(28), "council.local", "participant", "seat", 2e9, 86400.0),
    DEFAULT_PROFILES["participant"],
)


@dataclass
class Seated:
    """One wrapper, its chat, and its queues: ``up`` to the Arbiter, ``down`` from it."""

    name: str
    machine: SeatMachine
    up: dict[Channel, deque[m.Message]] = field(default_factory=lambda: {c: deque() for c in Channel})
    down: dict[Channel, deque[m.Message]] = field(default_factory=lambda: {c: deque() for c in Channel})
    heard: list[str] = field(default_factory=list)
    running: m.Context | None = None
    outcome: events.End | None = None


class Pair:
    """A whole council without a socket. ``answers`` makes the text of a turn from its CONTEXT."""

    def __init__(self, names: tuple[str, ...], **changes: Any) -> None:
        self.debate = Debate("debate-1", council(names, **changes), arbiter="sha256:aa")
        self.now = 0.0
        self.record: list[AnyEntry] = []
        self.refusals: list[Refuse] = []
        self.seats = {name: self._seat(name) for name in names}
        for seat in self.seats.values():
            self.feel(seat, events.ChatOpened(memory_lost=False))

    def _seat(self, name: str) -> Seated:
        once = Reconnection(patience=0, give_up_after=0)
        reg = m.Reg(name=name, required=True)
        return Seated(name, SeatMachine(reg, speech_bytes=1000, reconnection=once))

    # --- the wrapper's side ---------------------------------------------------------------------------

    def feel(self, seat: Seated, event: events.SeatEvent) -> None:
        """Something happens to a wrapper."""
        for effect in seat.machine.handle(event, self.now):
            match effect:
                case events.SendControl(message):
                    seat.up[Channel.CONTROL].append(message)
                case events.SendData(message):
                    seat.up[Channel.DATA].append(message)
                case events.OpenControl():
                    self.feel(seat, events.ControlOpened())
                case events.OpenData():
                    self.feel(seat, events.DataOpened())
                case events.RunTurn(context):
                    assert seat.running is None, "two turns in one chat"
                    seat.running = context
                case events.CancelTurn(turn_id):
                    seat.running = None
                    self.feel(seat, events.Stopped(turn_id))
                case events.End():
                    seat.outcome = effect

    def answer(self, seat: Seated) -> None:
        """The client of a seat produces its turn."""
        assert seat.running is not None
        context, seat.running = seat.running, None
        seat.heard += [entry.text for entry in context.delta]
        self.feel(seat, events.Answered(context.turn_id, f"{seat.name} in turn {context.turn_id}"))

    # --- the Arbiter's side ---------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        """Something happens to the debate."""
        for effect in self.debate.handle(event, self.now):
            match effect:
                case Append(entry):
                    self.record.append(entry)
                case Send(session, channel, message) if session in self.seats:
                    self.seats[session].down[channel].append(message)
                case Refuse():
                    self.refusals.append(effect)
                case Send() | EndSession():
                    pass

    def _arrive(self, seat: Seated, channel: Channel, message: m.Message) -> None:
        line: Line[Any] = Line("m", None, message)
        if isinstance(message, m.Reg):
            event: Event = happened.SeatRegistered(
                session=seat.name,
                msg_id="m",
                participant_id=RIGHTS.identity.display_name(seat.name),
                name=seat.name,
                required=message.required,
                disconnect_policy=message.disconnect_policy,
                meta=message.meta,
                data_token="t",
            )
        elif isinstance(message, m.DataHello):
            event = happened.DataBound(seat.name, "m")
        elif channel is Channel.CONTROL:
            event = translate.from_control(seat.name, seat.name, RIGHTS, line)
        else:
            event = translate.from_data(seat.name, RIGHTS.identity.display_name(seat.name), line)
        self.tell(event)

    # --- the network ----------------------------------------------------------------------------------

    def moves(self) -> list[tuple[str, str, Channel]]:
        """Everything that could happen next: (seat, what, channel)."""
        possible = []
        for name, seat in self.seats.items():
            for channel in (Channel.CONTROL, Channel.DATA):
                if seat.up[channel]:
                    possible.append((name, "up", channel))
                if seat.down[channel]:
                    possible.append((name, "down", channel))
            if seat.running is not None:
                possible.append((name, "answer", Channel.DATA))
        return possible

    def move(self, name: str, what: str, channel: Channel) -> None:
        """Let one of `moves` happen."""
        seat = self.seats[name]
        if what == "answer":
            self.answer(seat)
        elif what == "up":
            self._arrive(seat, channel, seat.up[channel].popleft())
        else:
            message = seat.down[channel].popleft()
            kind = events.FromControl if channel is Channel.CONTROL else events.FromData
            self.feel(seat, kind(message))  # type: ignore[arg-type]  # the queue is the channel's own
