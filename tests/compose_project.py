"""One project of `compose.yaml` for tests: a folder and a name of its own, and commands to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docker_engine
from docker_engine import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

VERSION = "compose-test"
"""The tag of the images that the tests build."""

IMAGES = {
    "consilium-arbiter": ("images/consilium/Dockerfile", "arbiter"),
    "consilium-egress": ("images/consilium/Dockerfile", "egress"),
    "consilium-console": ("images/consilium/Dockerfile", "console"),
    "consilium-model": ("images/consilium/Dockerfile", "model"),
    "consilium-llm": ("images/seat/Dockerfile", "llm"),
}
"""Image to its file and stage."""

SEAT_FILE = "images/seat/Dockerfile"

CLIENT_IMAGES = {
    f"consilium-{client}": client for client in ("claude", "codex", "gemini", "kimi", "opencode", "qwen-code")
}
"""Image to the folder of `images/` that it is made of."""

SERVICES = (
    "arbiter",
    "egress",
    "model",
    "moderator",
    "devils_advocate",
    "pragmatist",
    "sceptic",
)
"""Those with a health check."""

SECONDS = 240.0
"""How long anything may take that is waited for, on a machine that is busy with something else."""


def build_images() -> None:
    """Build every image as a plain `docker build` does."""
    for name, (file, stage) in IMAGES.items():
        docker_engine.build(f"{name}:{VERSION}", ROOT / file, target=stage)


def build_client_images() -> None:
    """Build the image of every client that npm installs, two at a time: one loads while one unpacks."""
    docker_engine.build(f"consilium-npm:{VERSION}", ROOT / SEAT_FILE, target="npm")

    def build(image: str) -> None:
        argument = f"CLIENT={CLIENT_IMAGES[image]}"
        docker_engine.build(f"{image}:{VERSION}", ROOT / SEAT_FILE, argument, target="client")

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(build, image) for image in CLIENT_IMAGES]:
            done.result()


@dataclass(frozen=True)
class Project:
    """A folder as a person has it after unpacking, and the engine's project of it."""

    folder: Path
    name: str
    environment: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    """What stands before every command: more files, and the profiles."""

    @classmethod
    def create(cls, folder: Path, *options: str, **variables: str) -> Project:
        """Lay out what `compose.yaml` mounts. Without a round of rebuttal it takes a third less.

        ``variables`` are what a person has in `.env`.
        """
        for part in ("roles", "images/prometheus"):
            shutil.copytree(ROOT / part, folder / part)
        (folder / "certs").mkdir()
        for council in ("council.yaml", "council.clients.yaml"):
            text = (ROOT / council).read_text(encoding="utf-8")
            (folder / council).write_text(f"{text}\nrebuttal_rounds: 0\n", encoding="utf-8")
        ports = {f"CONSILIUM_{name}_PORT": "" for name in ("CONTROL", "DATA", "PROMETHEUS")}  # any free one
        ours = {**os.environ, **ports, "CONSILIUM_VERSION": VERSION, **variables}
        return cls(folder, f"compose-test-{os.getpid()}", ours, options)

    def __call__(
        self, *words: str, check: bool = True, timeout: float = SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run one `docker compose` command."""
        place = ("-p", self.name, "-f", str(ROOT / "compose.yaml"), "--project-directory", str(self.folder))
        done = subprocess.run(
            ["docker", "compose", *place, *self.options, *words],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env=self.environment,
            stdin=subprocess.DEVNULL,
        )
        if check and done.returncode:
            raise AssertionError(
                f"docker compose {' '.join(words)}: {done.returncode}\n{done.stderr}{self.logs()}"
            )
        return done

    def logs(self, *services: str) -> str:
        """What services have said."""
        return self("logs", "--no-log-prefix", "--no-color", *services, check=False).stdout

    def operator(self, *words: str) -> str:
        """What `docker compose run --rm operator` answers."""
        return self("run", "--rm", "-T", "operator", *words).stdout

    def status(self) -> Any:
        """Where the debate stands; None where nobody answers."""
        done = self("run", "--rm", "-T", "operator", "status", "--json", check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def containers(self) -> dict[str, Any]:
        """What the engine knows of each service's container."""
        found = self("ps", "-aq").stdout.split()
        inspected = json.loads(docker_engine.docker("inspect", *found).stdout)
        return {each["Config"]["Labels"]["com.docker.compose.service"]: each for each in inspected}

    def states(self) -> dict[str, str]:
        """Service to what `docker compose ps` says of it: its health if it has any, else its state."""
        lines = self("ps", "-a", "--format", "json").stdout.splitlines()
        rows = [json.loads(line) for line in lines]
        return {row["Service"]: row["Health"] or f"{row['State']} {row['ExitCode']}" for row in rows}

    def until(self, condition: Callable[[], Any], *, seconds: float = SECONDS) -> Any:
        """Return what ``condition`` returns once that is true."""
        end = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > end:
                raise AssertionError(f"{self.states()}\n{self.logs()}")
            time.sleep(1)
        return found

    def in_seat(self, code: str) -> str:
        """What a program prints that runs in a seat's container, as whoever may do most there."""
        return self("exec", "-T", "sceptic", "python3", "-c", code).stdout

    def transcripts(self) -> dict[str, str]:
        """Transcripts in the volume, by name, each with the hash of its content."""
        volume = f"{self.name}_transcripts:/t:ro"
        command = ("run", "--rm", "-v", volume, "--entrypoint", "sh", f"consilium-arbiter:{VERSION}")
        said = docker_engine.docker(*command, "-c", "cd /t && sha256sum *.jsonl").stdout
        return {name: digest for digest, name in (line.split() for line in said.splitlines())}

    def port(self, service: str, inside: int) -> str:
        """Where on this machine a port of a service is."""
        said = self("port", service, str(inside)).stdout.strip()
        assert re.fullmatch(r"127\.0\.0\.1:\d+", said), said
        return said

    def clear(self) -> None:
        """Leave nothing."""
        self("down", "-v", "-t", "2", "--remove-orphans", check=False)
