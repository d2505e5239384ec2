"""P8, P9, P10: a turn of the Arbiter against AutoGen's, and against the same five through mosquitto."""

from __future__ import annotations

import contextlib
import shutil
import statistics
import subprocess
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.measures.turns import Timed
from benchmarks.process import PEERS, running, running_peer
from benchmarks.table import Row, Target, p10, ratios

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.process import Host
    from benchmarks.setting import Setting

TURNS = 400
TEAM_TURNS = 300
"""So long is each debate of AutoGen's team, in a quick run too: the length decides what a turn costs."""

WARM_UP = 60

GRPC = "turn, p10, AutoGen gRPC (no TLS), x the Arbiter (mTLS)"
TEAM = f"CPU a turn, AutoGen team, {TEAM_TURNS} turns, x the Arbiter's"
MQTT = "turn, p10, x the same through mosquitto, mTLS, QoS 0"

SYSTEM_PLACES = "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin"
"""Where a system keeps a broker; a user's own path may leave them out."""


class Peer:
    """Another system, and what each round came to, in seconds."""

    def __init__(self, host: Host, warm_up: int) -> None:
        self._host = host
        self.wall: list[float] = []
        self.cpu: list[float] = []
        if warm_up:
            host.ask(turns=warm_up)

    def round(self, turns: int) -> None:
        """Take ``turns`` turns; note their p10 and the CPU of one."""
        answer = self._host.ask(turns=turns)
        self.wall.append(p10(answer["turns_s"]))
        self.cpu.append(answer["cpu_s"] / turns)


def measure(setting: Setting) -> list[Row]:
    """Fill P8, P9 and P10, as far as the peers are installed."""
    autogen, mosquitto = missing("autogen_core"), missing("paho", "mosquitto")
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(running("arbiter", "--certs", setting.certs, "--folder", setting.folder))
        subject = Timed(host, setting)

        def joined(why_not: str | None, module: str, *words: object, warm_up: int = WARM_UP) -> Peer | None:
            return None if why_not else Peer(stack.enter_context(running_peer(module, *words)), warm_up)

        grpc = joined(autogen, "autogen_grpc")
        team = joined(autogen, "autogen_team", warm_up=0)
        bounded = joined(autogen, "autogen_team", "--bounded", warm_up=0)
        place = (
            "--certs",
            setting.certs,
            "--seat",
            setting.credentials.cert.parent,
            "--folder",
            setting.folder,
        )
        mqtt = joined(mosquitto, "mqtt", *place, "--mosquitto", broker())
        turns = setting.some(TURNS)
        sides: list[Callable[[], None]] = [partial(subject.round, turns)]
        sides += [partial(peer.round, turns) for peer in (grpc, mqtt) if peer]
        sides += [partial(peer.round, TEAM_TURNS) for peer in (team, bounded) if peer]
        for _ in range(setting.rounds if len(sides) > 1 else 0):
            for side in sides:
                side()
    subject.debate.close()
    return [
        _slower(subject, grpc, autogen),
        _dearer(subject, team, bounded, autogen),
        _as_fast(subject, mqtt, mosquitto),
    ]


def missing(package: str, program: str | None = None) -> str | None:
    """Why a peer cannot be measured, if that is so."""
    if not PEERS.exists():
        return "there is no .venv-peers; `make bench-peers` makes it"
    found = subprocess.run([PEERS, "-c", f"import {package}"], capture_output=True, check=False)
    if found.returncode:
        return f"{package} is not in .venv-peers; `make bench-peers` installs it"
    if program and not broker():
        return f"there is no {program} here; Debian has it as a package"
    return None


def broker() -> str | None:
    """Where mosquitto is."""
    return shutil.which("mosquitto") or shutil.which("mosquitto", path=SYSTEM_PLACES)


def _slower(subject: Timed, peer: Peer | None, why_not: str | None) -> Row:
    target = Target(">=", 2)
    if peer is None:
        return Row("P8", GRPC, target, (), "", wall=True, skipped=why_not)
    basis = f"{_us(peer.wall)} to {_us(subject.wall)}"
    detail = {"subject_s": subject.wall, "reference_s": peer.wall}
    return Row("P8", GRPC, target, ratios(peer.wall, subject.wall), basis, wall=True, detail=detail)


def _dearer(subject: Timed, peer: Peer | None, bounded: Peer | None, why_not: str | None) -> Row:
    target = Target(">=", 3)
    if peer is None or bounded is None:
        return Row("P9", TEAM, target, (), "", wall=False, skipped=why_not)
    basis = f"{_us(peer.cpu)} to {_us(subject.cpu)}; with agents that keep two speeches {_us(bounded.cpu)}"
    detail = {"subject_s": subject.cpu, "reference_s": peer.cpu, "bounded_s": bounded.cpu}
    return Row("P9", TEAM, target, ratios(peer.cpu, subject.cpu), basis, wall=False, detail=detail)


def _as_fast(subject: Timed, peer: Peer | None, why_not: str | None) -> Row:
    target = Target("<=", 1)
    if peer is None:
        return Row("P10", MQTT, target, (), "", wall=True, skipped=why_not)
    basis = f"{_us(subject.wall)} to {_us(peer.wall)}"
    detail = {"subject_s": subject.wall, "reference_s": peer.wall}
    return Row("P10", MQTT, target, ratios(subject.wall, peer.wall), basis, wall=True, detail=detail)


def _us(figures: list[float]) -> str:
    return f"{statistics.median(figures) * 1e6:.0f} us"
