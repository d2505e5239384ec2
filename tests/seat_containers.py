"""Seats in containers of the real image: how they are started, and whom they find on the network."""

from __future__ import annotations

import json
import secrets
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docker_engine import ROOT, build, docker
from terminal_seat import PRESET
from terminal_seat import STANDIN as STANDIN_IN_A_TERMINAL

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

BASE = "python:3.13-slim"

CAPABILITIES = ("SETUID", "SETGID", "SETPCAP", "NET_ADMIN", "CHOWN", "KILL")
"""What the entry point of the seat image and the container's init need, as a Compose file would grant it."""

PEER = """
import os, socket, threading, time
OPEN = os.environ.get("OPEN") == "1"
def serve(listener):
    while True:
        connection = listener.accept()[0]
        threading.Thread(target=answer, args=(connection,), daemon=True).start()
def answer(connection):
    with connection:
        connection.settimeout(10)
        try:
            asked = connection.recv(4096)
        except OSError:
            return
        if asked.startswith(b"CONNECT"):
            refused = b"refused.invalid" in asked and not OPEN
            connection.sendall(b"HTTP/1.1 403 no\\r\\n\\r\\n" if refused else b"HTTP/1.1 200 yes\\r\\n\\r\\n")
for port in (443, 8888, 9997, 9998, 9999):
    listener = socket.create_server(("0.0.0.0", port))
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
print("listening", flush=True)
time.sleep(900)
"""
"""Listens wherever an Arbiter, a provider and the egress proxy would; answers CONNECT as the proxy does."""

STANDIN = """\
ARG SEAT
FROM ${SEAT}
COPY llm /usr/local/bin/llm
"""

IN_A_TERMINAL = """\
ARG SEAT
FROM ${SEAT}
COPY tui-standin /usr/local/bin/tui-standin
COPY tui.toml /tmp/tui.toml
RUN cp /tmp/tui.toml "$(python3 -c 'import wrapper; print(wrapper.__path__[0])')/presets/"
"""


def seat_image() -> str:
    """The seat image, without a client."""
    return build("consilium-test-seat", ROOT / "images/seat/Dockerfile", target="seat")


def llm_image() -> str:
    """The seat image with the client `llm`."""
    return build("consilium-test-llm", ROOT / "images/seat/Dockerfile", target="llm")


def standin_image(folder: Path) -> str:
    """The seat image with the stand-in for `llm`; ``folder`` is empty, and is what it is built from.

    Its acts are asked for with ``please NAME now``: marks like ``<<NAME>>`` do not get past the envelope.
    """
    client = (ROOT / "tests/standins/llm_standin.py").read_text()
    assert "<<{name}>>" in client
    client = client.replace("<<{name}>>", "please {name} now")
    (folder / "llm").write_text(f"#!/usr/bin/env -S python3 -I -S\n{client}")
    (folder / "llm").chmod(0o755)
    (folder / "Dockerfile").write_text(STANDIN)
    return build("consilium-test-standin", folder / "Dockerfile", f"SEAT={seat_image()}", context=folder)


def terminal_image(folder: Path) -> str:
    """The seat image with the stand-in for a client in a terminal, and its preset; ``folder`` is empty."""
    client = STANDIN_IN_A_TERMINAL.read_text().replace("<<(", "please (").replace(")>>", ") now")
    (folder / "tui-standin").write_text(f"#!/usr/bin/env -S python3 -I -S\n{client}")
    (folder / "tui-standin").chmod(0o755)
    (folder / "tui.toml").write_text(PRESET)
    (folder / "Dockerfile").write_text(IN_A_TERMINAL)
    return build("consilium-test-terminal", folder / "Dockerfile", f"SEAT={seat_image()}", context=folder)


class Town:
    """A network, and the containers and volumes of one test module on it."""

    def __init__(self) -> None:
        self.token = f"consilium-test-{secrets.token_hex(4)}"
        docker("network", "create", self.token)
        self._containers: list[str] = []
        self._volumes: list[str] = []
        (network,) = json.loads(docker("network", "inspect", self.token).stdout)
        self.gateway: str = network["IPAM"]["Config"][0]["Gateway"]

    def peer(self, name: str, *, generous: bool = False) -> str:
        """Start somebody who listens everywhere; return the name by which seats find them."""
        full = self._name(name)
        docker(
            "run", "-d", "--name", full, "--network", self.token, "-e", f"OPEN={int(generous)}",
            BASE, "python3", "-u", "-c", PEER,
        )  # fmt: skip
        until = time.monotonic() + 30
        while "listening" not in docker("logs", full).stdout:
            assert time.monotonic() < until, docker("logs", full).stderr
            time.sleep(0.1)
        return full

    def address(self, container: str) -> str:
        """A container's address here."""
        (found,) = json.loads(docker("inspect", container).stdout)
        return str(found["NetworkSettings"]["Networks"][self.token]["IPAddress"])

    def volume(self, name: str, files: Path | None = None, *, owner: int = 0, mode: str = "0700") -> str:
        """Make a volume with ``files`` in it, all ``owner``'s."""
        full = f"{self.token}-{name}"
        docker("volume", "create", full)
        self._volumes.append(full)
        source = ["-v", f"{files}:/from:ro"] if files else []
        docker(
            "run", "--rm", "-v", f"{full}:/to", *source, BASE, "sh", "-c",
            f"cp -a /from/. /to/ 2>/dev/null; chown -R {owner}:{owner} /to && chmod {mode} /to",
        )  # fmt: skip
        return full

    def options(self, *more: str, without: str = "", **variables: str) -> list[str]:
        """The options of a seat's `docker run`; ``without`` leaves out one capability."""
        variables = {"CONSILIUM_REACH": "", **variables}
        return [
            *("--init", "--network", self.token, "--read-only", "--cap-drop", "ALL"),
            *(word for name in CAPABILITIES if name != without for word in ("--cap-add", name)),
            *("--security-opt", "no-new-privileges", "--pids-limit", "200", "--memory", "512m"),
            *("--sysctl", "net.ipv6.conf.all.disable_ipv6=0", "--sysctl", "net.ipv6.conf.lo.disable_ipv6=0"),
            *("--tmpfs", "/tmp:rw,nosuid,nodev,noexec,size=16m"),
            *(word for name, value in variables.items() for word in ("-e", f"{name}={value}")),
            *more,
        ]

    def start(self, name: str, image: str, options: list[str], *command: str) -> str:
        """Start a container and leave it running."""
        full = self._name(name)
        docker("run", "-d", "--name", full, *options, image, *command)
        return full

    def run(
        self, image: str, options: list[str], *command: str, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a container to its end."""
        return docker("run", "--rm", *options, image, *command, timeout=timeout, check=False)

    def demolish(self) -> None:
        """Remove all of it."""
        for container in self._containers:
            docker("rm", "-f", "-v", container, check=False)
        for volume in self._volumes:
            docker("volume", "rm", "-f", volume, check=False)
        docker("network", "rm", self.token, check=False)

    def _name(self, name: str) -> str:
        full = f"{self.token}-{name}"
        self._containers.append(full)
        return full


@contextmanager
def town() -> Iterator[Town]:
    """Hold a network; when the block ends, nothing of it is left."""
    held = Town()
    try:
        yield held
    finally:
        held.demolish()


def surprises(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The attempts that `verify-isolation --json` was surprised by."""
    assert done.returncode in (0, 1), done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    found = {attempt["attempt"] for attempt in told["attempts"] if attempt["surprise"]}
    assert told["ok"] == (not found) == (done.returncode == 0)
    return found


def untried(done: subprocess.CompletedProcess[str]) -> set[str]:
    """Those that there was no target for."""
    attempts = json.loads(done.stdout)["attempts"]
    return {attempt["attempt"] for attempt in attempts if attempt["outcome"] == "not tried"}
