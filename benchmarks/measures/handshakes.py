"""P6: handshakes at the Arbiter's door, each with one message there and back, against bare echoes."""

from __future__ import annotations

import contextlib
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from benchmarks.hosts.model import line
from benchmarks.process import Host, running
from benchmarks.seats import Wire
from benchmarks.table import Row, Target, ratios

if TYPE_CHECKING:
    from benchmarks.setting import Setting

CLIENTS = 3
SECONDS = 1.0
PING = line("PING", 0, ts=0)


class Door:
    """One host to knock at, and what each round came to."""

    def __init__(self, host: Host, setting: Setting) -> None:
        self.host = host
        self._context = setting.seat
        self.pace: list[float] = []
        self.cpu: list[float] = []

    def round(self, pool: ThreadPoolExecutor, seconds: float) -> None:
        """Knock for ``seconds`` with all clients; note handshakes a second and CPU a handshake."""
        used = self.host.cpu
        began = time.perf_counter()
        count = sum(pool.map(self._knock, [began + seconds] * CLIENTS))
        self.pace.append(count / (time.perf_counter() - began))
        self.cpu.append((self.host.cpu - used) / count)

    def _knock(self, deadline: float) -> int:
        count = 0
        while time.perf_counter() < deadline:
            wire = Wire(self.host.ports[0][0], self._context)
            wire.echo(PING)
            wire.part()
            count += 1
        return count


def measure(setting: Setting) -> list[Row]:
    """Fill P6."""
    seconds = SECONDS / 2 if setting.quick else SECONDS
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(CLIENTS))
        certs = ("--certs", setting.certs)
        hosts = [stack.enter_context(running("arbiter", *certs, "--folder", setting.folder))]
        hosts += [stack.enter_context(running(name, *certs)) for name in ("echo_own", "echo_threads")]
        subject, own, threads = doors = [Door(host, setting) for host in hosts]
        for door in doors:
            door.round(pool, seconds / 4)
            door.pace.clear()
            door.cpu.clear()
        for _ in range(setting.rounds):
            for door in doors:
                door.round(pool, seconds)
    cpu = f"{statistics.median(subject.cpu) * 1e3:.2f} ms to {statistics.median(own.cpu) * 1e3:.2f} ms"
    detail = {"subject_s": subject.cpu, "reference_s": own.cpu}
    return [
        _pace("handshakes/s, x echo on the same TLS", 0.85, subject, own),
        _pace("handshakes/s, x echo in threads", 0.4, subject, threads),
        Row(
            "P6",
            "CPU a handshake, x echo on the same TLS",
            Target("<=", 1.25),
            ratios(subject.cpu, own.cpu),
            cpu,
            wall=False,
            detail=detail,
        ),
    ]


def _pace(what: str, least: float, subject: Door, reference: Door) -> Row:
    basis = f"{statistics.median(subject.pace):.0f}/s to {statistics.median(reference.pace):.0f}/s"
    detail = {"subject_per_s": subject.pace, "reference_per_s": reference.pace}
    figures = ratios(subject.pace, reference.pace)
    return Row("P6", what, Target(">=", least), figures, basis, wall=True, detail=detail)
