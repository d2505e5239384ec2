"""P16: 200 seats are cut off at once and come back at once, against as many bare handshakes at once."""

from __future__ import annotations

import contextlib
import statistics
from typing import TYPE_CHECKING, Any

from benchmarks import machine
from benchmarks.hosts.model import names
from benchmarks.process import running
from benchmarks.table import Row, Target, ratios

if TYPE_CHECKING:
    from benchmarks.setting import Setting

SEATS = 200
BYSTANDERS = 8
"""Seats of the same debate that are not cut off, and whose hearts must not miss a beat."""

HEARTBEAT = 1.0
STORMS = 5
QUICK_STORMS = 3


def measure(setting: Setting) -> list[Row]:
    """Fill P16."""
    machine.raise_descriptor_limit()
    rounds = QUICK_STORMS if setting.quick else STORMS
    everybody = names(BYSTANDERS + SEATS)
    stay, go = everybody[:BYSTANDERS], everybody[BYSTANDERS:]
    place = ("--certs", setting.certs, "--folder", setting.folder)
    debate = ("--seats", len(everybody), "--heartbeat", HEARTBEAT, *([] if setting.no_disk else ["--sync"]))
    attend = ("crowd", "--seat", setting.credentials.cert.parent, "--interval", HEARTBEAT, "--hushed")
    back: list[float] = []
    bare: list[float] = []
    attempts: list[float] = []
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(running("arbiter", *place, *debate))
        echo = stack.enter_context(running("echo_own", "--certs", setting.certs))
        crowd = stack.enter_context(running(*attend))
        ports = host.ports[0]
        crowd.ask(join=[ports, everybody])
        for _ in range(rounds):
            bare.append(crowd.ask(raw=[echo.ports[0][0], 2 * SEATS])["seconds"])
            told = crowd.ask(storm=[f"{ports[0]}/{name}" for name in go])
            back.append(told["seconds"])
            attempts.append(told["attempts"])
        last = crowd.ask()
    beats = [last["beats"][f"{ports[0]}/{name}"] for name in stay]
    return [_back(back, bare, attempts), _missed(beats, last["lost"])]


def _back(back: list[float], bare: list[float], attempts: list[float]) -> Row:
    what = f"{SEATS} seats cut off at once, until all are back, x {2 * SEATS} handshakes"
    basis = (
        f"{statistics.median(back):.2f} s to {statistics.median(bare):.2f} s, "
        f"{statistics.median(attempts) / SEATS:.2g} attempts a seat"
    )
    detail: dict[str, list[float]] = {"subject_s": back, "reference_s": bare, "attempts": attempts}
    return Row("P16", what, Target("<=", 3), ratios(back, bare), basis, wall=True, detail=detail)


def _missed(beats: list[dict[str, Any]], lost: list[str]) -> Row:
    what = f"beats missed by {len(beats)} seats beside it, and seats lost"
    gap, pong = (max(each[key] for each in beats) for key in ("worst_gap", "worst_pong"))
    basis = (
        f"{sum(each['count'] for each in beats)} beats at {HEARTBEAT:g} s, widest apart {gap:.2f} s; "
        f"longest PONG {pong:.2f} s"
    )
    missed = sum(each["missed"] for each in beats) + len(lost)
    return Row("P16", what, Target("<=", 0), (float(missed),), basis, wall=True)
