"""P4: sixteen debates that share one durable journal, against themselves without sync."""

from __future__ import annotations

import contextlib
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from benchmarks.process import Host, running
from benchmarks.seats import Debate
from benchmarks.table import Row, Target, ratios

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.setting import Setting

DEBATES = 16
SEATS = 3
SECONDS = 1.0
SLOW_MS = 3
"""How long a sync takes where it is counted how many turns share one: on a fast disk nothing has to wait, so
that every turn may have its own."""

PACE = "16 debates, turns/s, x without sync"


class Hall:
    """One host with many debates, a thread for the seats of each."""

    def __init__(self, host: Host, setting: Setting) -> None:
        self.host = host
        self.debates = [Debate(ports, setting.seat, SEATS) for ports in host.ports]
        self.pace: list[float] = []
        self.syncs: list[float] = []

    def round(self, pool: ThreadPoolExecutor, seconds: float) -> None:
        """Let all debates go on for ``seconds``; note turns a second and syncs a turn."""
        before = self.host.ask()["syncs"]
        began = time.perf_counter()
        turns = sum(pool.map(lambda debate: debate.turns_until(began + seconds), self.debates))
        self.pace.append(turns / (time.perf_counter() - began))
        self.syncs.append((self.host.ask()["syncs"] - before) / turns)


def measure(setting: Setting) -> list[Row]:
    """Fill P4."""
    if why := setting.no_disk:
        return [Row("P4", PACE, Target(">=", 0.6), (), "", wall=True, skipped=why)]
    seconds = SECONDS / 2 if setting.quick else SECONDS
    place = ("--certs", setting.certs, "--folder", setting.folder, "--debates", DEBATES)
    kinds: list[tuple[object, ...]] = [("--sync",), (), ("--sync", "--sync-ms", SLOW_MS)]
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(DEBATES))
        hosts = [stack.enter_context(running("arbiter", *place, *words)) for words in kinds]
        lasting, fleeting, slowed = halls = [Hall(host, setting) for host in hosts]
        for hall in halls:
            hall.round(pool, seconds / 4)
            hall.pace.clear()
            hall.syncs.clear()
        for _ in range(setting.rounds):
            lasting.round(pool, seconds)
            fleeting.round(pool, seconds)
            slowed.round(pool, seconds / 4)
        counts = [hall.host.ask() for hall in halls]
    for hall in halls:
        for debate in hall.debates:
            debate.close()
    return [_pace(lasting, fleeting), _grouped(lasting, slowed), _aside(counts)]


def _pace(lasting: Hall, fleeting: Hall) -> Row:
    basis = f"{statistics.median(lasting.pace):.0f}/s to {statistics.median(fleeting.pace):.0f}/s"
    detail = {"subject_per_s": lasting.pace, "reference_per_s": fleeting.pace}
    figures = ratios(lasting.pace, fleeting.pace)
    return Row("P4", PACE, Target(">=", 0.6), figures, basis, wall=True, detail=detail)


def _grouped(lasting: Hall, slowed: Hall) -> Row:
    what = f"16 debates, syncs a turn, on a disk slowed to {SLOW_MS} ms"
    basis = f"{statistics.median(lasting.syncs):.2g} on the disk as it is"
    detail = {"as_it_is": lasting.syncs}
    return Row("P4", what, Target("<=", 0.3), tuple(slowed.syncs), basis, wall=False, detail=detail)


def _aside(counts: Sequence[dict[str, Any]]) -> Row:
    on_loop, syncs, turns = (
        sum(count[key] for count in counts) for key in ("syncs_on_loop", "syncs", "turns")
    )
    basis = f"{syncs} syncs, {turns} turns"
    what = "16 debates, syncs on the event loop's thread"
    return Row("P4", what, Target("<=", 0), (float(on_loop),), basis, wall=False)
