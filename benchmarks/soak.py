"""`python -m benchmarks soak`: 200 seats in one debate, and 16 debates side by side, for minutes on end.

In the first half everybody debates, at a turn a second in each debate; in the second half whoever has the
floor is silent, and only hearts beat, once a second. A debate remembers what was said, so its memory grows by
the turn; in the silence it has nothing to remember, and may not grow.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks import machine
from benchmarks.flat import Memory
from benchmarks.hosts.model import names
from benchmarks.process import Host, running
from benchmarks.setting import Setting, prepared
from benchmarks.table import Row, Target, Verdict, judged, render, too_busy

if TYPE_CHECKING:
    from collections.abc import Sequence

MINUTES = 10.0
SEATS = 200
DEBATES = 16
SEATS_EACH = 3
HEARTBEAT = 1.0
PACE = 1.0
"""Seconds that a turn takes."""

READINGS = 40
"""How often memory is read in each half."""

KIB_A_MINUTE = 64
KIB_A_TURN = 32
SETTLING = 2.0
"""Seconds that the Arbiters have to start all of their own tasks."""

LEAVING = 30.0
"""Seconds within which an Arbiter has to forget seats that are gone."""


@dataclass(slots=True)
class Watched:
    """One Arbiter: what it had before anybody came, and its memory in either half."""

    host: Host
    seats: int
    before: int = 0
    talking: Memory = field(default_factory=Memory)
    silent: Memory = field(default_factory=Memory)

    @property
    def held(self) -> int:
        """Tasks and open files, now."""
        return int(self.host.ask()["tasks"]) + machine.descriptors(self.host.pid)


def main(argv: Sequence[str] | None = None) -> int:
    """Hold the debates. Returns 1 when something was not as it must be."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks soak", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help=f"how long, in all (default {MINUTES:g})"
    )
    args = parser.parse_args(argv)
    if args.minutes <= 0:
        parser.error("--minutes must be above zero")
    machine.raise_descriptor_limit()
    with prepared(quick=False) as setting:
        rows = soak(setting, args.minutes * 60)
    print(render(rows))
    return int(any(row.verdict is Verdict.NO for row in rows))


def soak(setting: Setting, seconds: float) -> list[Row]:
    """Hold all debates for ``seconds``; say what came of it."""
    attend = ("--seat", setting.credentials.cert.parent, "--interval", HEARTBEAT, "--pace", PACE)
    worst = machine.load()
    with contextlib.ExitStack() as stack:
        hosts = [open_one(stack, setting, seats) for seats in [SEATS] + [SEATS_EACH] * DEBATES]
        crowd = stack.enter_context(running("crowd", *attend))
        time.sleep(SETTLING)
        for each in hosts:
            each.before = each.held
            crowd.ask(join=[each.host.ports[0], names(each.seats)])
        say(f"{crowd.ask()['seats']} seats in {len(hosts)} debates, {seconds / 60:g} minutes")
        for silence in (False, True):
            crowd.ask(hush=silence)
            worst = max(worst, watch(hosts, crowd, seconds / 2, silence=silence))
        told = crowd.ask()
        crowd.ask(part=True)
        left = forgotten(hosts)
    return judged(verdict(hosts, told, left), too_busy(worst, machine.load(), machine.cores()))


def open_one(stack: contextlib.ExitStack, setting: Setting, seats: int) -> Watched:
    """Start one Arbiter for a debate of ``seats``."""
    place = ("--certs", setting.certs, "--folder", setting.folder, "--sync")
    host = stack.enter_context(running("arbiter", *place, "--seats", seats, "--heartbeat", HEARTBEAT))
    return Watched(host, seats)


def watch(hosts: Sequence[Watched], crowd: Host, seconds: float, *, silence: bool) -> float:
    """Read every memory now and then for ``seconds``; return the highest load."""
    began = time.perf_counter()
    worst = 0.0
    for reading in range(READINGS):
        time.sleep(max(began + seconds * (reading + 1) / READINGS - time.perf_counter(), 0))
        for each in hosts:
            memory = each.silent if silence else each.talking
            now = time.perf_counter() - began
            memory.readings.append((now, int(each.host.ask()["turns"]), each.host.rss))
        worst = max(worst, machine.load())
        if reading % 10 == 9:
            told = crowd.ask()
            say(
                f"{'silent' if silence else 'talking'} for {time.perf_counter() - began:.0f} s: "
                f"{told['turns']} turns, {missed(told)} beats missed, {len(told['lost'])} seats lost, "
                f"{hosts[0].host.rss / 1024:.1f} MiB in the debate of {SEATS}"
            )
    return worst


def forgotten(hosts: Sequence[Watched]) -> int:
    """Wait until nothing is left of the seats that are gone; return how many tasks and files still are."""
    until = time.perf_counter() + LEAVING
    while (left := sum(max(each.held - each.before, 0) for each in hosts)) and time.perf_counter() < until:
        time.sleep(0.5)
    return left


def missed(told: dict[str, Any]) -> int:
    """How many beats all hearts together have missed."""
    return sum(beats["missed"] for beats in told["beats"].values())


def verdict(hosts: Sequence[Watched], told: dict[str, Any], left: int) -> list[Row]:
    """The table of it all."""
    large, *small = hosts
    beats = told["beats"].values()
    gap, pong = (max(each[key] for each in beats) for key in ("worst_gap", "worst_pong"))
    counted = sum(each["count"] for each in beats)
    rows = []
    for what, some in ((f"{SEATS} seats", [large]), (f"{DEBATES} debates", small)):
        minute = [each.silent.a_minute for each in some]
        turn = [each.talking.a_turn for each in some]
        ends = f"{max(each.silent.readings[-1][2] for each in some) / 1024:.1f} MiB at the end"
        turns = sum(each.talking.readings[-1][1] for each in some)
        rows += [
            _row(f"{what}, silent: KiB a minute", KIB_A_MINUTE, max(minute), ends),
            _row(f"{what}, talking: KiB a turn", KIB_A_TURN, max(turn), f"{turns} turns"),
        ]
    said = f"{counted} beats at {HEARTBEAT:g} s, widest apart {gap:.2f} s; longest PONG {pong:.2f} s"
    return [
        *rows,
        _row("beats missed", 0, float(missed(told)), said, wall=True),
        _row("seats lost", 0, float(len(told["lost"])), "; ".join(told["lost"][:3]) or "none", wall=True),
        _row("tasks and files left", 0, float(left), f"in {len(hosts)} Arbiters, all seats gone"),
    ]


def _row(what: str, most: float, figure: float, basis: str, *, wall: bool = False) -> Row:
    return Row("soak", what, Target("<=", most), (figure,), basis, wall=wall)


def say(words: str) -> None:
    """Tell the person who waits."""
    print(words, file=sys.stderr, flush=True)
