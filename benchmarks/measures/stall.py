"""P5: PING to PONG while every sync of the journal takes 200 ms, against the same on the disk as it is."""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from typing import TYPE_CHECKING

from benchmarks.hosts.model import line, names
from benchmarks.process import running
from benchmarks.seats import Debate, Seat
from benchmarks.table import Row, Target, percentile, ratios

if TYPE_CHECKING:
    from benchmarks.process import Host
    from benchmarks.setting import Setting

SEATS = 3
STALL_MS = 200
PACE = 0.25
"""Seconds from one turn to the next on either side, so that the stalled side has no easier a time."""

SECONDS = 2.0
PAUSE = 0.001
"""Seconds from a PONG to the next PING."""

TARGET = Target("<=", 1.5)
WHAT = f"PING to PONG, p99, disk stalls {STALL_MS} ms, x without"


class Side:
    """One host with two debates: one goes on and is recorded, in the other a single seat sends PINGs.

    Both share the event loop and the journal.
    """

    def __init__(self, host: Host, setting: Setting) -> None:
        going, waiting = host.ports
        self.debate = Debate(going, setting.seat, SEATS)
        self.seat = Seat.take(waiting, setting.seat, names(1)[0])
        self.p99: list[float] = []
        self.median: list[float] = []

    def round(self, seconds: float) -> None:
        """Send PINGs for ``seconds`` while turns are taken; note what the PONGs took, in seconds."""
        until = time.perf_counter() + seconds
        turns = threading.Thread(target=self._turns, args=(until,))
        turns.start()
        taken = []
        while (then := time.perf_counter()) < until:
            self.seat.control.send(line("PING", 0, ts=0))
            self.seat.control.hear("PONG")
            taken.append(time.perf_counter() - then)
            time.sleep(PAUSE)
        turns.join()
        self.p99.append(percentile(taken, 0.99))
        self.median.append(statistics.median(taken))

    def close(self) -> None:
        """Let every connection go, once the host has ended."""
        self.debate.close()
        self.seat.close()

    def _turns(self, until: float) -> None:
        while (then := time.perf_counter()) < until:
            self.debate.turns(1)
            time.sleep(max(then + PACE - time.perf_counter(), 0))


def measure(setting: Setting) -> list[Row]:
    """Fill P5."""
    if setting.no_disk:
        return [Row("P5", WHAT, TARGET, (), "", wall=True, skipped=setting.no_disk)]
    seconds = SECONDS / 2 if setting.quick else SECONDS
    place = ("--certs", setting.certs, "--folder", setting.folder, "--debates", 2, "--sync")
    with contextlib.ExitStack() as stack:
        stalled = Side(stack.enter_context(running("arbiter", *place, "--sync-ms", STALL_MS)), setting)
        plain = Side(stack.enter_context(running("arbiter", *place)), setting)
        for side in [stalled, plain] * setting.rounds:
            side.round(seconds)
    for side in (stalled, plain):
        side.close()
    basis = f"p99 {_ms(stalled.p99)} to {_ms(plain.p99)}, p50 {_ms(stalled.median)} to {_ms(plain.median)}"
    detail = {"subject_s": stalled.p99, "reference_s": plain.p99}
    return [Row("P5", WHAT, TARGET, ratios(stalled.p99, plain.p99), basis, wall=True, detail=detail)]


def _ms(figures: list[float]) -> str:
    return f"{statistics.median(figures) * 1e3:.2f} ms"
