"""Behind a plain TCP pass-through: haproxy passes bytes on, and the Arbiter still sees each certificate."""

from __future__ import annotations

import shutil
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from hall import Hall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(200),
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed"),
]

CONFIG = """\
defaults
  mode tcp
  timeout connect 5s
  # Control has its heartbeat; data is silent for as long as the others speak, or the debate is paused.
  timeout client 1d
  timeout server 1d

listen control
  bind 127.0.0.1:{front[control]}
  server arbiter 127.0.0.1:{back[control]}

listen data
  bind 127.0.0.1:{front[data]}
  server arbiter 127.0.0.1:{back[data]}
"""


def free_ports(*names: str) -> dict[str, int]:
    probes = {name: socket.create_server(("127.0.0.1", 0)) for name in names}
    ports = {name: probe.getsockname()[1] for name, probe in probes.items()}
    for probe in probes.values():
        probe.close()
    return ports


@contextmanager
def haproxy(folder: Path, front: Mapping[str, int], back: Mapping[str, int]) -> Iterator[None]:
    file = folder / "haproxy.cfg"
    file.write_text(CONFIG.format(front=front, back=back))
    with subprocess.Popen(["haproxy", "-db", "-q", "-f", str(file)]) as process:
        try:
            yield
        finally:
            process.terminate()


def test_a_guest_takes_part_through_a_pass_through_and_survives_its_restart(tmp_path: Path) -> None:
    front = free_ports("control", "data")
    with Hall(tmp_path) as hall:
        hall.ports = free_ports("control", "data", "admin")
        through = ("--control-port", str(front["control"]), "--data-port", str(front["data"]))
        with haproxy(tmp_path, front, hall.ports):
            # Nobody stands behind it yet: it takes the connection and drops it. That is no refusal.
            guest = hall.join(*through)
            guest.says("waiting")
            hall.open()
            hall.seat("ada")
            guest.says("spoke", 2)
            checked = hall.join("--check", *through, name="other")
            assert checked.ends() == 0
        guest.says("waiting", 2)
        hall.pauses()
        with haproxy(tmp_path, front, hall.ports):
            guest.says("seated", 2)
            hall.admin("resume")
            guest.says("spoke", 4)
        assert "PARTICIPANT_MEMORY_LOST" not in hall.events("guest")
