"""Other people's judgement of our servers and certificates: where their programs are, and what to do without.

Each has a virtual environment of its own (`make .venv/.outside` makes them), since they pin versions that are
not ours. ``CONSILIUM_REQUIRE_OUTSIDE=1`` turns a missing one into a failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from pki.authority import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator

ENVIRONMENTS = Path(__file__).parents[1] / ".venv" / "outside"
PATIENCE = 60

COUNCIL = """\
topic: Is it well made?
participants: [{name: ada}]
caps: {max_rounds: 1}
"""


def program(environment: str, name: str) -> str:
    """The path of a program in one of the environments, or a skipped test."""
    path = ENVIRONMENTS / environment / "bin" / name
    if not path.exists():
        why = f"{environment} is not installed: make .venv/.outside"
        if os.environ.get("CONSILIUM_REQUIRE_OUTSIDE") == "1":
            pytest.fail(why)
        pytest.skip(why)
    return str(path)


@dataclass(frozen=True, slots=True)
class Council:
    """A running Arbiter, by the ports of its three doors, and the folder with everybody's certificates."""

    ports: dict[str, int]
    certs: Path


def issue_all(folder: Path) -> Path:
    """An authority and a holder of each profile; return the folder with all of them."""
    certs = folder / "certs"
    authority = Authority.create(certs)
    authority.issue("arbiter", profile="arbiter", dns=("localhost",), ips=("127.0.0.1",))
    authority.issue("ada", profile="participant")
    authority.issue("anna", profile="operator")
    return certs


@contextmanager
def arbiter(folder: Path) -> Iterator[Council]:
    """Run a real Arbiter that waits for its seat."""
    certs = issue_all(folder)
    council = folder / "council.yaml"
    council.write_text(COUNCIL)
    words = ["--council", str(council), "--certs", str(certs / "arbiter"), "--lifeline"]
    words += ["--transcript", str(folder / "debate.jsonl")]
    words += ["--control-port", "0", "--data-port", "0", "--admin-port", "0"]
    log = folder / "arbiter.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "arbiter", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            said = orjson.loads(process.stdout.readline() or b"{}")
            assert said.get("event") == "listening", log.read_text()
            yield Council({door: said[door] for door in ("control", "data", "admin")}, certs)
            assert process.poll() is None, "the Arbiter ended while it was examined"
        finally:
            process.terminate()
            process.wait(PATIENCE)
