"""Scripted seats on blocking sockets: as little as a client can be, and the same for every host."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from benchmarks.hosts.common import HOST
from benchmarks.hosts.model import line, names
from benchmarks.texts import discourse, english

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

SILENCE = 30.0
"""Seconds after which a host that says nothing counts as broken."""

SPEECH_CHARS = 1700
"""A speech of about 250 words. A delta of two is a CONTEXT of 3.5 KB."""

SAID = discourse(2400 * SPEECH_CHARS)
"""What is said in every debate; it begins again after 2400 turns."""

PADDING = english(3500)
"""What makes a seat's first lines as long as those that it will see in a debate."""


class Wire:
    """One connection that carries lines."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        raw = socket.create_connection((HOST, port), SILENCE)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(raw, server_hostname=HOST)
        self._reader = self.socket.makefile("rb")
        self.send = self.socket.sendall

    def line(self) -> bytes:
        """The next line. Raises `RuntimeError` when there is none."""
        got = self._reader.readline()
        if not got:
            raise RuntimeError("the host closed a connection")
        return got

    def hear(self, kind: str) -> dict[str, Any]:
        """The next message, which must be a ``kind``."""
        message: dict[str, Any] = orjson.loads(self.line())
        if message["type"] != kind:
            raise RuntimeError(f"the host says {message} instead of {kind}")
        return message

    def echo(self, text: bytes) -> None:
        """Send a line, and wait for one."""
        self.send(text)
        self.line()

    def part(self) -> None:
        """Close in good order: close_notify both ways."""
        self.socket.unwrap()
        self.close()

    def close(self) -> None:
        """Let go, once the host has ended."""
        self._reader.close()
        self.socket.close()


@dataclass(frozen=True, slots=True)
class Seat:
    """A registered seat with both connections."""

    control: Wire
    data: Wire

    @classmethod
    def take(cls, ports: Sequence[int], context: ssl.SSLContext, name: str, padding: str = "") -> Seat:
        """Register and bind. ``padding`` makes the seat's lines longer, and is ignored by the Arbiter."""
        control = Wire(ports[0], context)
        control.send(line("REG", 0, name=name, padding=padding))
        granted = control.hear("REG_OK")
        data = Wire(ports[1], context)
        proof = {"session_id": granted["session_id"], "data_token": granted["data_token"]}
        data.send(line("DATA_HELLO", 0, **proof, padding=padding))
        data.hear("DATA_OK")
        return cls(control, data)

    def hear(self) -> int:
        """Hear TURN_START and CONTEXT; return the turn's id."""
        turn = self.control.hear("TURN_START")["turn_id"]
        self.data.line()
        return int(turn)

    def speak(self, turn: int, text: str) -> None:
        """Send ACK, SPEECH and TURN_END.

        The processor is the host's after each of the first two, so that it takes them one by one, as it does
        in a debate, where time lies between them.
        """
        self.control.send(line("ACK", turn, turn_id=turn))
        os.sched_yield()
        self.data.send(line("SPEECH", turn, turn_id=turn, text=text, usage=None))
        os.sched_yield()
        self.control.send(line("TURN_END", turn, turn_id=turn, speech=True))

    def close(self) -> None:
        """Let both connections go."""
        self.control.close()
        self.data.close()


class Debate:
    """The seats of one debate, which take their turns as the host gives them.

    A turn is measured from one seat's CONTEXT to the next one's: all that both ends do for it lies between
    the two, whoever of them runs first. Between measurements one seat has the floor, and is silent.
    """

    def __init__(self, ports: Sequence[int], context: ssl.SSLContext, seats: int) -> None:
        self._seats = [Seat.take(ports, context, name) for name in names(seats)]
        self._turn = self._seats[0].hear()
        self._taken = 0

    def turns(self, count: int) -> list[float]:
        """Take ``count`` turns; return how many seconds each took."""
        taken = []
        then = time.perf_counter()
        for _ in range(count):
            self._take()
            now = time.perf_counter()
            taken.append(now - then)
            then = now
        return taken

    def turns_until(self, deadline: float) -> int:
        """Take turns until `time.perf_counter` reaches ``deadline``; return how many."""
        count = 0
        while time.perf_counter() < deadline:
            self._take()
            count += 1
        return count

    def close(self) -> None:
        """Let every connection go, once the host has ended."""
        for seat in self._seats:
            seat.close()

    def _take(self) -> None:
        start = self._taken * SPEECH_CHARS % len(SAID)
        seat = self._seats[self._taken % len(self._seats)]
        seat.speak(self._turn, SAID[start : start + SPEECH_CHARS])
        self._taken += 1
        self._turn = self._seats[self._taken % len(self._seats)].hear()
