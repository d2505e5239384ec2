"""P1, P2: one turn of the Arbiter without sync, against anyio's TLS and against blocking sockets by hand."""

from __future__ import annotations

import contextlib
import statistics
from typing import TYPE_CHECKING

from benchmarks import machine
from benchmarks.process import Host, running
from benchmarks.seats import Debate
from benchmarks.table import Row, Target, p10, ratios

if TYPE_CHECKING:
    from benchmarks.setting import Setting

SEATS = 3
TURNS = 400
WARM_UP = 60
HOSTS = ("arbiter", "turns_anyio", "turns_blocking")


class Timed:
    """One host and its seats, and what each round took."""

    def __init__(self, host: Host, setting: Setting) -> None:
        self.debate = Debate(host.ports[0], setting.seat, SEATS)
        self.debate.turns(WARM_UP)
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self._host = host

    def round(self, turns: int) -> None:
        """Take ``turns`` turns; note their p10 and the host's CPU for each, in seconds."""
        before = self._host.cpu
        taken = self.debate.turns(turns)
        self.cpu.append((self._host.cpu - before) / turns)
        self.wall.append(p10(taken))


def measure(setting: Setting) -> list[Row]:
    """Fill P1 and P2."""
    place = ("--certs", setting.certs, "--folder", setting.folder)
    with machine.one_core(), contextlib.ExitStack() as stack:
        hosts = [stack.enter_context(running(name, *place)) for name in HOSTS]
        subject, reference, floor = sides = [Timed(host, setting) for host in hosts]
        for _ in range(setting.rounds):
            for side in sides:
                side.round(setting.some(TURNS))
    for side in sides:
        side.debate.close()
    return [
        _row("P1", "turn, p10, x anyio by hand", 1.5, subject.wall, reference.wall, wall=True),
        _row("P1", "turn, CPU, x anyio by hand", 1.8, subject.cpu, reference.cpu, wall=False),
        _row("P2", "turn, p10, x blocking by hand", 6.5, subject.wall, floor.wall, wall=True),
    ]


def _row(number: str, what: str, most: float, one: list[float], other: list[float], *, wall: bool) -> Row:
    basis = f"{statistics.median(one) * 1e6:.0f} us to {statistics.median(other) * 1e6:.0f} us"
    detail = {"subject_s": one, "reference_s": other}
    return Row(number, what, Target("<=", most), ratios(one, other), basis, wall, detail=detail)
