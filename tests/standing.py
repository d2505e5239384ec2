"""A real Arbiter in a process of its own that stands through a module's attacks, and serves after each."""

from __future__ import annotations

import contextlib
import json
import select
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from revocations import Pki

from consilium.tls import client_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from consilium.credentials import Credentials

HOST = "127.0.0.1"
PATIENCE = 30.0

DOORS = ("control", "data", "admin")

COUNCIL = """\
topic: Does it still stand?
roster: {mode: dynamic, wait_for_required_at_start: false}
caps: {max_rounds: 1}
"""
PROFILES = """\
participant: {role: participant, names: ["*"], may_ask_status: true}
operator: {role: operator, may_ask_status: true}
doors: {handshake_seconds: 3, first_message_seconds: 3}
"""


class Peer:
    """A client of the standard library's own sockets: one JSON line out, one in."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        raw = socket.create_connection((HOST, port), timeout=PATIENCE)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.tls = context.wrap_socket(raw, server_hostname="localhost")
        except BaseException:
            raw.close()
            raise
        self.buffer = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.tls.close()

    def say(self, kind: str, **fields: Any) -> None:
        self.say_bytes(line(kind, **fields))

    def say_bytes(self, data: bytes) -> None:
        self.tls.sendall(data)

    def hear(self) -> dict[str, Any] | None:
        """The next message that is no PING; None at the end. Raises `ssl.SSLError` for an alert."""
        while True:
            while b"\n" not in self.buffer:
                more = self.tls.recv(65536)
                if not more:
                    return None
                self.buffer += more
            first, _, self.buffer = self.buffer.partition(b"\n")
            told: dict[str, Any] = json.loads(first)
            if told["type"] != "PING":
                return told

    def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        self.say(kind, **fields)
        told = self.hear()
        assert told is not None, f"closed after {kind}"
        return told

    def rest(self) -> list[dict[str, Any] | str]:
        """Everything up to the end, which is ``closed``, ``reset`` or the alert's name as OpenSSL has it."""
        heard: list[dict[str, Any] | str] = []
        try:
            while (told := self.hear()) is not None:
                heard.append(told)
        except ssl.SSLError as error:
            return [*heard, str(error.reason)]
        except ConnectionError:
            return [*heard, "reset"]
        return [*heard, "closed"]


def line(kind: str, **fields: Any) -> bytes:
    return json.dumps({"protocol_version": 4, "msg_id": "x-1", "type": kind, **fields}).encode() + b"\n"


@dataclass
class Standing:
    """The process, its ports by name, its authority, and the certificates of two who are welcome."""

    folder: Path
    pki: Pki
    seat: Credentials
    operator: Credentials
    contexts: dict[str, ssl.SSLContext] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        """Start it, or start it again in the same transcript and on the same ports."""
        command = [sys.executable, "-m", "arbiter", "--council", "council.yaml"]
        command += ["--profiles", "profiles.yaml", "--certs", "certs/arbiter", "--transcript", "debate.jsonl"]
        for door in DOORS:
            command += [f"--{door}-port", str(self.ports.get(door, 0))]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        told = json.loads(self.process.stdout.readline() or b"{}") if ready else {}
        assert told.get("event") == "listening", self.log()
        self.ports = {door: told[door] for door in DOORS}

    def kill(self) -> None:
        """End it as a power cut would."""
        if not hasattr(self, "process"):
            return
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def context(self, credentials: Credentials) -> ssl.SSLContext:
        """A client's context; built once."""
        key = str(credentials.cert)
        if key not in self.contexts:
            self.contexts[key] = client_context(credentials)
        return self.contexts[key]

    def peer(self, door: str, credentials: Credentials | None = None) -> Peer:
        own = credentials or (self.operator if door == "admin" else self.seat)
        return Peer(self.ports[door], self.context(own))

    def serves(self) -> None:
        """A good seat sits down and leaves, and a good operator is answered; by the same process as ever."""
        assert self.process.poll() is None, self.log()
        with self.peer("control") as control:
            granted = control.ask("REG", name="good")
            assert granted["type"] == "REG_OK", granted
            with self.peer("data") as data:
                hello = {key: granted[key] for key in ("session_id", "data_token")}
                assert data.ask("DATA_HELLO", **hello)["type"] == "DATA_OK"
                control.say("UNREG")
                assert control.rest() == ["closed"]
        self.answers()

    def answers(self) -> None:
        """A good operator is answered."""
        with self.peer("admin") as admin:
            assert admin.ask("STATUS")["type"] == "STATUS"

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def record(self) -> str:
        return (self.folder / "debate.jsonl").read_text()


@contextlib.contextmanager
def standing(
    *, profiles: str = PROFILES, prepare: Callable[[Pki], None] = lambda _: None
) -> Iterator[Standing]:
    """Start an Arbiter; end it by SIGTERM. It must have lived until then, and its log must show no bug.

    ``prepare`` may issue and revoke before the first lists are published.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        pki = Pki.create(folder / "certs")
        seat, operator = pki.issue("good"), pki.issue("anna", "operator")
        prepare(pki)
        pki.publish()
        (folder / "council.yaml").write_text(COUNCIL)
        (folder / "profiles.yaml").write_text(profiles)
        found = Standing(folder, pki, seat, operator)
        try:
            found.start()
            yield found
            assert found.process.poll() is None, found.log()
            found.process.send_signal(signal.SIGTERM)
            found.process.wait(PATIENCE)
            assert "Traceback" not in found.log()
        finally:
            found.kill()
