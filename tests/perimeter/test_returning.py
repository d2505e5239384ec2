"""Real wrappers come back to a real Arbiter: beside an old session, and when their certificate has ended."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.abc import SocketAttribute
from certificates import DAY
from certificates import clock as real_time
from house import HOST, Clock, Home, until
from houses import open_house, profile
from revocations import Pki
from scripted_adapter import ScriptedAdapter

from consilium import messages as m
from consilium.credentials import Credentials
from consilium.errors import Objection
from consilium.tls import client_context
from wrapper import reconnection
from wrapper.events import End, Outcome
from wrapper.link import Address
from wrapper.seat import Plan, Seat

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from anyio.abc import SocketStream, TaskGroup

pytestmark = pytest.mark.anyio

HEARTBEAT = 0.5


@pytest.fixture(autouse=True)
def _quick_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconnection, "RETURNING", reconnection.Pace(0.05, 0.1, 0.3))


class Cable:
    """Carries connections to a port of the Arbiter's, whose end of them stays, silent, when they are cut."""

    def __init__(self, tasks: TaskGroup, target: int) -> None:
        self._tasks = tasks
        self._target = target
        self._near: list[SocketStream] = []
        self.port = 0

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with await anyio.create_tcp_listener(local_host=HOST) as listener:
            self.port = listener.extra(SocketAttribute.local_port)
            task_status.started()
            await listener.serve(self._carry)

    async def _carry(self, near: SocketStream) -> None:
        self._near.append(near)
        async with near, await anyio.connect_tcp(HOST, self._target) as far:
            async with anyio.create_task_group() as ways:
                ways.start_soon(self._copy, near, far)
                ways.start_soon(self._copy, far, near)
            await anyio.sleep_forever()

    async def _copy(self, source: SocketStream, sink: SocketStream) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for some in source:
                await sink.send(some)

    async def cut(self) -> None:
        """The wrapper's side of every connection so far is gone."""
        for near in self._near:
            await anyio.aclose_forcefully(near)


class Life:
    """What a seat says of itself, and how it ended."""

    def __init__(self) -> None:
        self.said: list[Mapping[str, Any]] = []
        self.end: End | None = None

    def heard(self, event: str) -> list[Mapping[str, Any]]:
        return [each for each in self.said if each["event"] == event]

    def reasons(self) -> str:
        return " | ".join(str(each["reason"]) for each in self.heard("waiting"))


@asynccontextmanager
async def seated(name: str, folder: Path, ports: tuple[Any, Any]) -> AsyncIterator[Life]:
    """A wrapper that has its place, with the credentials that ``folder`` holds at the time."""
    life = Life()
    plan = Plan(
        reg=m.Reg(name=name),
        system_prompt="You take part in a debate.",
        address=Address(HOST, *ports, server_name="localhost"),
        context=client_context(Credentials.load(folder)),
        renew=lambda: client_context(Credentials.load(folder)),
        patience=20,
        give_up_after=20,
        speech_bytes=2000,
        contribution_chars=500,
        lifeline=False,
    )
    seat = Seat(plan, ScriptedAdapter(), life.said.append)

    async def live() -> None:
        life.end = await seat.run()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live)
        await until(lambda: life.heard("seated"))
        yield life
        tasks.cancel_scope.cancel()


def connected(home: Home) -> list[str]:
    return [held.participant_id for held in home.reception.seats.values()]


@pytest.mark.parametrize(
    ("few", "refusal"),
    [({"max_connections": 2}, "AT_CAPACITY"), ({"max_seats": 1}, "DUPLICATE_DISPLAY_NAME")],
)
async def test_a_seat_with_room_for_itself_alone_comes_back_once_its_old_session_is_gone(
    tmp_path: Path, few: dict[str, int], refusal: str
) -> None:
    limits = {"heartbeat_seconds": HEARTBEAT}
    async with (
        open_house(tmp_path, profiles=profile(**few), limits=limits) as home,
        anyio.create_task_group() as tasks,
    ):
        cables = [Cable(tasks, int(home.ports[door])) for door in ("control", "data")]
        for cable in cables:
            await tasks.start(cable.serve)
        folder = home.authority.issue("ada", profile="participant").cert.parent
        async with seated("ada", folder, (cables[0].port, cables[1].port)) as life:
            (before,) = home.reception.seats
            for cable in cables:
                await cable.cut()
            await until(lambda: life.end is not None or len(life.heard("seated")) == 2)
            assert life.end is None
            assert before not in home.reception.seats
            assert refusal in life.reasons()
        tasks.cancel_scope.cancel()


async def test_a_seat_whose_certificate_ends_comes_back_with_the_one_that_its_folder_holds_by_then(
    tmp_path: Path,
) -> None:
    pki, wall_clock = Pki.create(tmp_path / "pki"), Clock(real_time())
    async with open_house(tmp_path, pki=pki, wall_clock=wall_clock) as home:
        folder = pki.issue("ada", seconds=DAY).cert.parent
        async with seated("ada", folder, (home.ports["control"], home.ports["data"])) as life:
            before = connected(home)
            pki.issue("ada", replace=True, seconds=7 * DAY)
            wall_clock.now += 1.1 * DAY
            await until(lambda: life.end is not None or len(life.heard("seated")) == 2)
            assert life.end is None
            assert "the certificate of ada has expired" in life.reasons()
            await until(lambda: len(connected(home)) == 1)
            assert connected(home) != before, "another certificate is another participant"


async def test_a_seat_whose_certificate_ends_and_that_has_no_other_ends_and_says_why(tmp_path: Path) -> None:
    pki, wall_clock = Pki.create(tmp_path / "pki"), Clock(real_time())
    async with open_house(tmp_path, pki=pki, wall_clock=wall_clock) as home:
        folder = pki.issue("ada", seconds=DAY).cert.parent
        async with seated("ada", folder, (home.ports["control"], home.ports["data"])) as life:
            pki.issue("ada", replace=True, start=-2 * DAY, seconds=DAY)  # for TLS, too, it has ended by then
            wall_clock.now += 1.1 * DAY
            await until(lambda: life.end)
            assert life.end is not None
            assert (life.end.outcome, life.end.objection) == (Outcome.REFUSED, Objection.OWN_EXPIRED)
            assert "certificate expired" in life.end.reason
            assert "Ask for a renewed bundle" in life.end.reason
            assert "the certificate of ada has expired" in life.reasons()
