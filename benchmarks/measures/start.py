"""P13: how fast `consilium --version` answers, against a bare interpreter."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.table import Row, Target, p10, ratios

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.setting import Setting

STARTS = 8
"""Starts of each in a round."""


def measure(setting: Setting) -> list[Row]:
    """Fill P13."""
    wall_target, what = Target("<=", 2.5), "`consilium --version`, p10, x `python -c pass`"
    command = Path(sys.executable).with_name("consilium")
    if not command.exists():
        why = f"{command} is not there: the package is not installed in this environment"
        return [Row("P13", what, wall_target, (), "", wall=True, skipped=why)]
    subject: list[tuple[float, float]] = []
    bare: list[tuple[float, float]] = []
    for _ in range(setting.rounds):
        one, other = [], []
        for _ in range(setting.some(STARTS) + 2):
            one.append(start([str(command), "--version"]))
            other.append(start([sys.executable, "-c", "pass"]))
        subject.append(lowest(one))
        bare.append(lowest(other))
    wall, wall_bare = [each[0] for each in subject], [each[0] for each in bare]
    basis = (
        f"{statistics.median(wall) * 1e3:.0f} ms to {statistics.median(wall_bare) * 1e3:.0f} ms, CPU "
        f"{statistics.median(cpu for _, cpu in subject) * 1e3:.0f} ms to "
        f"{statistics.median(cpu for _, cpu in bare) * 1e3:.0f} ms"
    )
    detail = {"subject_s": wall, "reference_s": wall_bare}
    return [Row("P13", what, wall_target, ratios(wall, wall_bare), basis, wall=True, detail=detail)]


def start(command: Sequence[str]) -> tuple[float, float]:
    """Run a command to its end; return wall and CPU seconds."""
    then = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    return time.perf_counter() - then, used.ru_utime + used.ru_stime


def lowest(starts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The p10 of both."""
    return p10([each[0] for each in starts]), p10([each[1] for each in starts])
