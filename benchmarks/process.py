"""The processes under test, as the conductor sees them: started, asked, measured from outside, ended."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson

from benchmarks import machine

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers" / "bin" / "python"
"""The interpreter of the environment that `make bench-peers` makes."""

STOP_SECONDS = 10.0
"""How long a host may take to end after its standard input did."""


@dataclass(frozen=True, slots=True)
class Host:
    """One running process of `benchmarks.hosts`. ``ports`` has a control and a data port for each debate."""

    pid: int
    ports: list[list[int]]
    questions: IO[bytes]
    answers: IO[bytes]

    @property
    def cpu(self) -> float:
        """CPU seconds used so far."""
        return machine.cpu_seconds(self.pid)

    @property
    def rss(self) -> int:
        """Resident memory in KiB."""
        return machine.rss_kib(self.pid)

    def ask(self, **question: Any) -> dict[str, Any]:
        """What the host counts, or what a peer has to say to a ``question``."""
        self.questions.write(orjson.dumps(question) + b"\n")
        self.questions.flush()
        return read_answer(self.answers)


def read_answer(answers: IO[bytes]) -> dict[str, Any]:
    """One line from a host. Raises `RuntimeError` when it ended instead; it has said why on its stderr."""
    line = answers.readline()
    if not line:
        raise RuntimeError("a process under test ended before it was asked to")
    answer: dict[str, Any] = orjson.loads(line)
    return answer


@contextmanager
def running(module: str, *words: object) -> Iterator[Host]:
    """Run ``python -m benchmarks.hosts.MODULE`` with ``words``; end it, and be sure of that."""
    with _running(sys.executable, f"benchmarks.hosts.{module}", *map(str, words)) as host:
        yield host


@contextmanager
def running_peer(module: str, *words: object) -> Iterator[Host]:
    """The same for ``benchmarks.peers.MODULE``, in the peers' own environment."""
    with _running(str(PEERS), f"benchmarks.peers.{module}", *map(str, words)) as host:
        yield host


@contextmanager
def _running(python: str, module: str, *words: str) -> Iterator[Host]:
    command = [python, "-m", module, *words]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            ports = read_answer(process.stdout)["ports"]
            yield Host(process.pid, ports, process.stdin, process.stdout)
        finally:
            process.stdin.close()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
