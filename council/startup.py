"""How the processes of a debate are started: each only when the one that it needs is ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import anyio.to_thread

from consilium.errors import UserError
from council.builtin import EMBEDDED_PRESET
from council.course import ARBITER, MODEL, SEAT
from pki.authority import Authority

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from consilium.config import Council
    from consilium.credentials import Credentials
    from consilium.ports import Ports
    from council.processes import Child, Processes
    from council.workspace import Workspace

HOST = "127.0.0.1"
"""Everything that `up` starts listens on loopback."""

MODEL_URL = "CONSILIUM_MODEL_URL"
"""The variable that names an OpenAI-compatible endpoint to use instead of the embedded model."""

MODEL_STAGE, ARBITER_STAGE, SEAT_STAGE = 0, 1, 2
"""Seats end before the Arbiter, and the Arbiter before the model."""

MODEL_SECONDS = 150.0
"""How long the model may take to be ready. It gives its first answer 120 seconds."""

OPERATOR = "the-operator"
"""The folder of the operator's certificate among those of the debate. A hyphen is in no seat's name."""

ARBITER_SECONDS = 60.0
DAY_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be held, and where. ``endpoint`` is a model server of the person's own, from `MODEL_URL`."""

    council: Council
    ports: Ports
    space: Workspace
    endpoint: str | None = None


class Endpoint(NamedTuple):
    """Where an operator connects, and as whom."""

    host: str
    port: int
    credentials: Credentials


class Startup:
    """The start of one debate."""

    def __init__(self, job: Job, running: Processes, doing: Callable[[str], None]) -> None:
        """``doing`` is told each step as it begins."""
        self._job = job
        self._running = running
        self._doing = doing

    async def run(self, before_seats: Callable[[Endpoint], Awaitable[None]]) -> Endpoint:
        """Start everything; ``before_seats`` is awaited once the Arbiter listens, and nobody else is there.

        Raises `UserError` when a process ends, or is not ready in time.
        """
        self._doing("making certificates for this debate")
        issued = await anyio.to_thread.run_sync(self._issue)
        # A server of the person's own needs no telling: the seats inherit the variable that names it.
        url = await self._start_model() if needs_model(self._job) else None
        ports = await self._start_arbiter(issued.arbiter)
        admin = Endpoint(HOST, ports["admin"], issued.operator)
        await before_seats(admin)
        await self._start_seats(issued.seats, ports, url)
        return admin

    def _issue(self) -> Issued:
        seconds = self._job.council.caps.max_seconds or 0
        authority = Authority.create(self._job.space.certs, days=1 + int(seconds // DAY_SECONDS))
        return Issued(
            # A hyphen is in no seat's name.
            arbiter=authority.issue("the-arbiter", profile="arbiter", dns=["localhost"], ips=[HOST]),
            operator=authority.issue(OPERATOR, profile="operator"),
            seats={
                seat.name: authority.issue(seat.name, profile="participant")
                for seat in self._job.council.participants
            },
        )

    async def _start_model(self) -> str:
        self._doing("starting the embedded model")
        child = await self._running.start(MODEL, "council.model", "--port", "0", stage=MODEL_STAGE)
        return str((await _says(child, "listening", MODEL_SECONDS))["url"])

    async def _start_arbiter(self, credentials: Credentials) -> dict[str, int]:
        self._doing("starting the Arbiter")
        space, ports = self._job.space, self._job.ports
        child = await self._running.start(
            ARBITER,
            "arbiter",
            *("--council", str(space.council), "--transcript", str(space.transcript)),
            *("--certs", str(credentials.cert.parent), "--host", HOST),
            *("--control-port", str(ports.control_port), "--data-port", str(ports.data_port)),
            *("--admin-port", str(ports.admin_port)),
            *(() if ports.metrics_port is None else ("--metrics-port", str(ports.metrics_port))),
            stage=ARBITER_STAGE,
        )
        listening = await _says(child, "listening", ARBITER_SECONDS)
        if "metrics" in listening:
            self._doing(f"metrics are at http://{HOST}:{listening['metrics']}/metrics")
        return {name: int(listening[name]) for name in ("control", "data", "admin")}

    async def _start_seats(
        self, seats: Mapping[str, Credentials], ports: Mapping[str, int], url: str | None
    ) -> None:
        self._doing(f"seating {', '.join(seats)}")
        space = self._job.space
        for name, credentials in seats.items():
            await self._running.start(
                SEAT + name,
                "wrapper",
                *("--council", str(space.council), "--name", name, "--state", str(space.state(name))),
                *("--certs", str(credentials.cert.parent), "--host", HOST),
                *("--control-port", str(ports["control"]), "--data-port", str(ports["data"])),
                # Beside its Arbiter, a lost link is an Arbiter that is gone: the council ends with it.
                *("--give-up-after", "0"),
                *(() if url is None else ("--model-url", url)),
                stage=SEAT_STAGE,
            )


@dataclass(frozen=True, slots=True)
class Issued:
    """Who holds which credentials."""

    arbiter: Credentials
    operator: Credentials
    seats: dict[str, Credentials]


def speaks_openai(council: Council) -> bool:
    """Whether a seat's client asks a model server: the embedded one, or that of `MODEL_URL`."""
    return any(seat.preset == EMBEDDED_PRESET for seat in council.participants)


def needs_model(job: Job) -> bool:
    """Whether a seat speaks through the embedded model."""
    return job.endpoint is None and speaks_openai(job.council)


async def _says(child: Child, event: str, seconds: float) -> dict[str, Any]:
    with anyio.move_on_after(seconds):
        return await child.says(event)
    raise UserError(f"{child.name} was not ready within {seconds:g} s", hint=f"its log is {child.log}")
