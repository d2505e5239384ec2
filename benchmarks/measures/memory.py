"""P7: resident memory of an idle seat, registered and bound, against two bare echo connections."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

from benchmarks import machine
from benchmarks.hosts.model import line, names
from benchmarks.process import Host, running
from benchmarks.seats import PADDING, Seat, Wire
from benchmarks.table import Row, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.setting import Setting

    Take = Callable[[Host, Setting, str], Seat]

SIZES = (50, 250, 500, 1000)
"""At how many seats the memory is read. The first is the base: by then everything is loaded once."""

FEW = (50, 250)
"""The same for the references, which grow evenly."""

CLIENTS = 4
SPARE = 200
"""Descriptors for everything else."""


def measure(setting: Setting) -> list[Row]:
    """Fill P7."""
    most = (machine.raise_descriptor_limit() - SPARE) // 2
    sizes = [size for size in (FEW if setting.quick else SIZES) if size <= most]
    idle = ("arbiter", "--certs", setting.certs, "--folder", setting.folder, "--idle")
    seats = grown(setting, sizes, registered, *idle)
    own = per_seat(FEW, grown(setting, FEW, echoed, "echo_own", "--certs", setting.certs))
    plain = per_seat(FEW, grown(setting, FEW, echoed, "echo_asyncio", "--certs", setting.certs))
    mine = per_seat(sizes, seats)
    rows = [
        _row("memory of an idle seat, x two echoes on the same TLS", 1.5, mine, own),
        _row("memory of an idle seat, x two asyncio streams", 0.35, mine, plain),
    ]
    if len(sizes) > len(FEW):
        rows.append(_growth(sizes, seats))
    return rows


def registered(host: Host, setting: Setting, name: str) -> Seat:
    """A seat as the Arbiter has it before the debate begins."""
    return Seat.take(host.ports[0], setting.seat, name, PADDING)


def echoed(host: Host, setting: Setting, name: str) -> Seat:
    """Two connections that have carried a line each way."""
    seat = Seat(*(Wire(port, setting.seat) for port in host.ports[0]))
    for wire in (seat.control, seat.data):
        wire.echo(line("PING", 0, name=name, padding=PADDING))
    return seat


def grown(setting: Setting, sizes: Sequence[int], take: Take, module: str, *words: object) -> list[int]:
    """Fill a host with seats; return its memory in KiB at each of ``sizes``."""
    figures = []
    seats: list[Seat] = []
    waiting = iter(names(sizes[-1]))
    with running(module, *words) as host, ThreadPoolExecutor(CLIENTS) as pool:
        for size in sizes:
            coming = [next(waiting) for _ in range(size - len(seats))]
            seats += pool.map(lambda name: take(host, setting, name), coming)
            figures.append(host.rss)
    for seat in seats:
        seat.close()
    return figures


def per_seat(sizes: Sequence[int], figures: Sequence[int]) -> float:
    """KiB for each seat above the first size."""
    return (figures[-1] - figures[0]) / (sizes[-1] - sizes[0])


def _growth(sizes: Sequence[int], figures: Sequence[int]) -> Row:
    steps = [per_seat(two, both) for two, both in zip(pairwise(sizes), pairwise(figures), strict=True)]
    what = f"memory of the last seats to {sizes[-1]}, x of the first"
    basis = f"{', '.join(f'{step:.0f}' for step in steps)} KiB a seat, up to {', '.join(map(str, sizes[1:]))}"
    detail = {"seats": list(sizes), "rss_kib": list(figures)}
    return Row("P7", what, Target("<=", 1.2), (steps[-1] / steps[0],), basis, wall=False, detail=detail)


def _row(what: str, most: float, mine: float, reference: float) -> Row:
    basis = f"{mine:.0f} KiB to {reference:.0f} KiB"
    return Row("P7", what, Target("<=", most), (mine / reference,), basis, wall=False)
