"""P3: what durability adds to a turn of one debate, against a bare append and fdatasync of as many bytes.

The bare ones come at the pace of the turns: a disk that is asked again at once answers faster than one that
is asked now and then, by a third or more.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from typing import TYPE_CHECKING

from benchmarks.measures.turns import Timed
from benchmarks.process import running
from benchmarks.table import Row, Target, p10, ratios

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.setting import Setting

LOTS = 24
"""A round goes so often through all three, for a disk has moods that last some milliseconds."""

TURNS = 10
RECORDS = b"." * 2600 + b"\n"
"""As much as the Arbiter appends for a turn: that this one ended, and that the next has started."""

TARGET = Target("<=", 2.5)
WHAT = "what sync adds to a turn, p50, x fdatasync"


def measure(setting: Setting) -> list[Row]:
    """Fill P3."""
    if setting.no_disk:
        return [Row("P3", WHAT, TARGET, (), "", wall=True, skipped=setting.no_disk)]
    with contextlib.ExitStack() as stack:
        place = ("--certs", setting.certs, "--folder", setting.folder)
        lasting = Timed(stack.enter_context(running("arbiter", *place, "--sync")), setting)
        fleeting = Timed(stack.enter_context(running("arbiter", *place)), setting)
        descriptor = os.open(setting.folder / "bare", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        stack.callback(os.close, descriptor)
        pause = statistics.median(fleeting.debate.turns(TURNS))
        sides = (lasting.debate.turns, fleeting.debate.turns, lambda count: syncs(descriptor, count, pause))
        rounds = [round_of(sides, setting.some(LOTS)) for _ in range(setting.rounds)]
    for side in (lasting, fleeting):
        side.debate.close()
    added = [statistics.median(durable) - statistics.median(fast) for durable, fast, _ in rounds]
    bare = [statistics.median(alone) for *_, alone in rounds]
    tenth = statistics.median(p10(durable) - p10(fast) for durable, fast, _ in rounds)
    bare_tenth = statistics.median(p10(alone) for *_, alone in rounds)
    basis = (
        f"p50 {statistics.median(added) * 1e3:.2f} ms to {statistics.median(bare) * 1e3:.2f} ms, "
        f"p10 {tenth * 1e3:.2f} ms to {bare_tenth * 1e3:.2f} ms"
    )
    detail = {"added_s": added, "fdatasync_s": bare}
    return [Row("P3", WHAT, TARGET, ratios(added, bare), basis, wall=True, detail=detail)]


def round_of(sides: Sequence[Callable[[int], list[float]]], lots: int) -> list[list[float]]:
    """Let every side do its work in ``lots``, one side after the other; return what each piece took."""
    taken: list[list[float]] = [[] for _ in sides]
    for _ in range(lots):
        for side, pieces in zip(sides, taken, strict=True):
            pieces.extend(side(TURNS))
    return taken


def syncs(descriptor: int, count: int, pause: float) -> list[float]:
    """Pause, append and wait for the disk, ``count`` times; return what each took without the pause."""
    taken = []
    for _ in range(count):
        time.sleep(pause)
        then = time.perf_counter()
        os.write(descriptor, RECORDS)
        os.fdatasync(descriptor)
        taken.append(time.perf_counter() - then)
    return taken
