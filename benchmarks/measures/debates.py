"""P4: sixteen debates that share one durable journal, against themselves without sync."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from benchmarks.process import Host, running
from benchmarks.seats import Debate
from benchmarks.table import Row, Target, ratios

if TYPE_CHECKING:
    from benchmarks.setting import Setting

DEBATES = 16
SEATS = 3
SECONDS = 2.0


class Hall:
    """One host with many debates, a thread for the seats of each."""

    def __init__(self, host: Host, setting: Setting) -> None:
        self.host = host
        self.debates = [Debate(ports, setting.seat, SEATS) for ports in host.ports]
        self.pace: list[float] = []
        self.syncs: list[float] = []

    def round(self, pool: ThreadPoolExecutor, seconds: float) -> None:
        """Let all debates go on for ``seconds``; note turns a second and syncs a turn."""
        asked = self.host.ask()
        began = time.perf_counter()
        counts = list(pool.map(lambda debate: debate.turns_until(began + seconds), self.debates))
        took = time.perf_counter() - began
        self.syncs.append((self.host.ask()["syncs"] - asked["syncs"]) / sum(counts))
        self.pace.append(sum(counts) / took)


def measure(setting: Setting) -> list[Row]:
    """Fill P4."""
    pace, grouped, aside = Target(">=", 0.6), Target("<=", 0.3), Target("<=", 0)
    if why := setting.no_disk:
        return [Row("P4", "16 debates, turns/s, x without sync", pace, (), "", wall=True, skipped=why)]
    seconds = SECONDS / 2 if setting.quick else SECONDS
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(DEBATES))
        place = ("--certs", setting.certs, "--folder", setting.folder, "--debates", DEBATES)
        lasting = Hall(stack.enter_context(running("arbiter", *place, "--sync")), setting)
        fleeting = Hall(stack.enter_context(running("arbiter", *place)), setting)
        for hall in (lasting, fleeting):
            hall.round(pool, seconds / 4)
            hall.pace.clear()
            hall.syncs.clear()
        for _ in range(setting.rounds):
            for hall in (lasting, fleeting):
                hall.round(pool, seconds)
        counted = lasting.host.ask()
    for debate in [*lasting.debates, *fleeting.debates]:
        debate.close()
    figures = ratios(lasting.pace, fleeting.pace)
    basis = f"{max(lasting.pace):.0f}/s to {max(fleeting.pace):.0f}/s"
    detail = {"subject_per_s": lasting.pace, "reference_per_s": fleeting.pace}
    total = f"{counted['syncs']} syncs, {counted['turns']} turns"
    on_loop = (float(counted["syncs_on_loop"]),)
    return [
        Row("P4", "16 debates, turns/s, x without sync", pace, figures, basis, wall=True, detail=detail),
        Row("P4", "16 debates, syncs a turn", grouped, tuple(lasting.syncs), total, wall=False),
        Row("P4", "syncs on the event loop's thread", aside, on_loop, total, wall=False),
    ]
