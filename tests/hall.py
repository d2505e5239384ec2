"""A council in real processes, some on other machines: an Arbiter, seats, guests, and their operator."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lan import consilium_on

from consilium.messages import DebateState
from consilium.records import EventRecord, TurnRecord
from consilium.transcript import read_records
from pki.authority import Authority

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lan import Host

    from consilium.records import AnyEntry

STANDIN = Path(__file__).parent / "standins" / "llm_standin.py"
PATIENCE = 45.0
"""Seconds that a test waits for what must come; a busy machine is slow."""

PORTS = {"control": 9998, "data": 9999, "admin": 9997}
HEARTBEAT = 0.5

COUNCIL = f"""\
topic: Should we wrap it?
participants:
  - {{name: ada, model: scripted, role: sceptic}}
  - {{name: guest, model: scripted}}
caps: {{max_rounds: 5000}}
limits: {{turn_seconds: 60, heartbeat_seconds: {HEARTBEAT}}}
opening: open
"""


class Running:
    """A process of ours, and what it says."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
        self.name = name
        self.out, self.err = folder / f"{name}.out", folder / f"{name}.err"
        with self.out.open("ab") as out, self.err.open("ab") as err:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=environment, cwd=folder
            )

    def events(self) -> list[dict[str, Any]]:
        """The JSON lines that it wrote, whole ones."""
        lines = self.out.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def heard(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.events() if each.get("event") == event]

    def says(self, event: str, times: int = 1) -> dict[str, Any]:
        """Wait until it has said ``event`` so often; return the last one."""
        until(lambda: len(self.heard(event)) >= times, lambda: f"{self.name}: no {event}; {self.story()}")
        return self.heard(event)[times - 1]

    def ends(self) -> int:
        """Wait for its end; return its exit code."""
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def story(self) -> str:
        return f"{self.out.read_text()[-1500:]}\n{self.err.read_text()[-3000:]}"


def until(condition: Callable[[], Any], why: Callable[[], str]) -> None:
    """Wait until ``condition`` holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(why())
        time.sleep(0.05)


class Hall:
    """Where the debate is held. ``host`` is the machine of the Arbiter, its operator and its own seats."""

    def __init__(self, folder: Path, host: Host | None = None, council: str = COUNCIL) -> None:
        self.folder = folder
        self.host = host
        self.address = "127.0.0.1" if host is None else host.address
        self.ports = dict(PORTS)
        self._running: list[Running] = []
        (folder / "council.yaml").write_text(council)
        self.authority = Authority.create(folder / "certs")
        self.authority.issue("arbiter", profile="arbiter", dns=["localhost"], ips=[self.address])
        self.authority.issue("anna", profile="operator")
        self.quick = self.client(0)
        self.arbiter: Running
        self._opened = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for running in self._running:
            if running.process.poll() is None:
                running.kill()

    def client(self, seconds: int) -> Path:
        """A folder for PATH in which `llm` is the stand-in, which takes so many seconds a turn."""
        folder = self.folder / f"bin-{seconds}"
        folder.mkdir(exist_ok=True)
        wait = f'case "$*" in *--version*) ;; *) sleep {seconds};; esac'
        stand_in = f'exec {shlex.quote(sys.executable)} -I -S {STANDIN} "$@"'
        (folder / "llm").write_text(f"#!/bin/sh\n{wait}\n{stand_in}\n")
        (folder / "llm").chmod(0o755)
        return folder

    def run(
        self,
        name: str,
        *words: str,
        host: Host | None = None,
        client: Path | None = None,
        python: str = sys.executable,
        environment: dict[str, str] | None = None,
    ) -> Running:
        """Start ``consilium words`` on ``host``."""
        own = {
            **os.environ,
            "CONSILIUM_MODEL_URL": "http://127.0.0.1:9/v1",
            "XDG_STATE_HOME": str(self.folder / "state"),
            "PATH": f"{client or self.quick}{os.pathsep}{os.environ['PATH']}",
            **(environment or {}),
        }
        started = Running(name, consilium_on(host, python, *words), self.folder, own)
        self._running.append(started)
        return started

    def open(self) -> Running:
        """Start the Arbiter, or start it again, on the same ports and with the same transcript."""
        ports = [word for name, port in self.ports.items() for word in (f"--{name}-port", str(port))]
        self.arbiter = self.run(
            "arbiter",
            *("arbiter", "--council", "council.yaml", "--certs", "certs/arbiter"),
            *("--transcript", "debate.jsonl", "--host", "0.0.0.0" if self.host else self.address, *ports),
            host=self.host,
        )
        self._opened += 1
        listening = self.arbiter.says("listening", self._opened)
        self.ports = {name: listening[name] for name in self.ports}
        return self.arbiter

    def seat(self, name: str = "ada") -> Running:
        """Start a seat of the council file, beside the Arbiter."""
        return self.run(
            name,
            *("seat", "--council", "council.yaml", "--name", name, "--certs", self.credentials(name)),
            *("--state", f"state-{name}", *self._place(self.address)),
            host=self.host,
        )

    def join(self, *more: str, host: Host | None = None, name: str = "guest", **how: Any) -> Running:
        """Start a guest on another machine, with a client that takes a second a turn, or as ``how`` says."""
        how.setdefault("client", self.client(1))
        words = ("--bundle", self.credentials(name), "--name", name, "--preset", "llm", "--model", "scripted")
        command = ("join", self.address, *words, *self._place(), "--json", *more)
        return self.run(name, *command, host=host, **how)

    def credentials(self, name: str) -> str:
        """The folder of a participant's credentials, which are issued on first use."""
        folder = self.folder / "certs" / name
        if not folder.exists():
            self.authority.issue(name, profile="participant")
        return str(folder)

    def _place(self, host: str | None = None) -> list[str]:
        ports = ["--control-port", str(self.ports["control"]), "--data-port", str(self.ports["data"])]
        return ports if host is None else ["--host", host, *ports]

    # --- what its operator does and sees --------------------------------------------------------------

    def admin(self, *words: str) -> dict[str, Any]:
        """Carry out one operation, and return what it says."""
        place = ("--host", self.address, "--port", str(self.ports["admin"]), "--bundle", "certs/anna")
        command = consilium_on(self.host, sys.executable, "admin", *place, "--json", *words)
        done = subprocess.run(command, capture_output=True, check=False, cwd=self.folder, timeout=PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(json.loads(done.stdout))

    def pauses(self) -> dict[str, Any]:
        """Wait until the debate is paused; return its STATUS."""
        status: dict[str, Any] = {}

        def paused() -> bool:
            status.update(self.admin("status"))
            return bool(status["debate_state"] == DebateState.PAUSED)

        until(paused, lambda: f"not paused: {status}\n{self.arbiter.story()}")
        return status

    def of(self, status: dict[str, Any], name: str) -> dict[str, Any]:
        """What a STATUS says of one seat."""
        (found,) = [seat for seat in status["seats"] if seat["participant_id"].startswith(f"{name}_")]
        return dict(found)

    def record(self) -> list[AnyEntry]:
        return [stored.entry for stored in read_records(self.folder / "debate.jsonl")[0]]

    def turns(self, name: str) -> list[TurnRecord]:
        """The turns of one seat, as they stand in the transcript."""
        return [
            entry
            for entry in self.record()
            if isinstance(entry, TurnRecord) and entry.participant_id.startswith(f"{name}_")
        ]

    def events(self, name: str) -> list[str]:
        """What the transcript tells of one seat beside its turns."""
        return [
            entry.event.value
            for entry in self.record()
            if isinstance(entry, EventRecord) and (entry.participant_id or "").startswith(f"{name}_")
        ]
