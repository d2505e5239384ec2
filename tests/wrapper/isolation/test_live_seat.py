"""A live seat in its container, with a client that does whatever it likes; nothing of it is left."""

from __future__ import annotations

import json
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest
from arbiter_double import ArbiterDouble, Seated, arbiter_double
from docker_engine import docker, need_engine
from edge_kit import Council
from seat_containers import Town, llm_image, standin_image, surprises, terminal_image, town, untried

from consilium import messages as m

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.anyio]

COUNCIL = """\
topic: Wrap it or rewrite it?
participants: [{{{participant}}}]
caps: {{max_rounds: 99}}
"""

PATIENCE = 60.0

CLIENT = "10002"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    need_engine()
    standin_image(tmp_path_factory.mktemp("image"))
    with town() as held:
        yield held


@pytest.fixture(scope="module")
def council(tmp_path_factory: pytest.TempPathFactory) -> Council:
    return Council(tmp_path_factory.mktemp("council"))


@dataclass
class Living:
    """A seat in its container, seated at the double."""

    container: str
    arbiter: ArbiterDouble
    seat: Seated

    async def turn(self, turn_id: int, text: str) -> None:
        await self.seat.assign(turn_id, m.DeltaEntry(speaker="beta_00000000", text=text))

    async def answers_pings(self, seconds: float) -> None:
        """The wrapper goes on answering, whatever its client does."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await self.seat.control.say(m.Ping(ts=1))
            with anyio.fail_after(5):
                while not isinstance((await self.seat.control.line()).message, m.Pong):
                    pass
            await anyio.sleep(0.1)

    async def of_the_client(self) -> list[str]:
        """The processes of the client's user."""
        script = f"grep -lE '^Uid:.*\\b{CLIENT}\\b' /proc/[0-9]*/status 2>/dev/null; true"
        return (await self.inside("sh", "-c", script)).split()

    async def inside(self, *words: str) -> str:
        done = await anyio.to_thread.run_sync(lambda: docker("exec", self.container, *words))
        return done.stdout

    async def ran_out_of_memory(self) -> bool:
        """Whether the kernel has ended a process of the container: cgroup version 1, or 2."""
        events = "cat /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events 2>/dev/null; true"
        said = (await self.inside("sh", "-c", events)).splitlines()
        return any(int(line.split()[1]) for line in said if line.startswith("oom_kill "))

    async def nothing_is_left(self) -> None:
        assert await self.of_the_client() == []

    async def wait_until(self, many: int) -> None:
        until = time.monotonic() + PATIENCE
        while len(await self.of_the_client()) < many:
            assert time.monotonic() < until
            await anyio.sleep(0.1)


@asynccontextmanager
async def sitting(
    place: Town, council: Council, folder: Path, image: str, reach: str, *, participant: str = "name: alpha"
) -> AsyncIterator[Living]:
    """Seat a container of ``image``, whose client reaches ``reach``, at a double of the Arbiter."""
    (folder / "council.yaml").write_text(COUNCIL.format(participant=participant))
    certs = place.volume(f"certs-{folder.name}", council.alice.cert.parent, owner=10001)
    async with arbiter_double(council.server, host=place.gateway) as arbiter:
        options = place.options(
            *("-v", f"{certs}:/certs:ro", "-v", f"{folder / 'council.yaml'}:/council.yaml:ro"),
            CONSILIUM_REACH=f"{reach}:8888",
            CONSILIUM_HOST=place.gateway,
        )
        container = place.start(
            f"seat-{folder.name}", image, options,
            "seat", "--council", "/council.yaml", "--name", "alpha", "--certs", "/certs",
            "--state", "/var/lib/consilium/seat", "--server-name", "localhost",
            "--control-port", str(arbiter.address.control_port),
            "--data-port", str(arbiter.address.data_port),
            "--model-url", f"http://{reach}:8888/v1",
        )  # fmt: skip
        try:
            seat = await arbiter.seat()
        except TimeoutError:
            raise AssertionError(docker("logs", container).stderr) from None
        yield Living(container, arbiter, seat)


@pytest.fixture
async def living(place: Town, council: Council, tmp_path: Path) -> AsyncIterator[Living]:
    """A seat whose client is the stand-in."""
    reach = place.peer(f"reach-{tmp_path.name}")
    async with sitting(place, council, tmp_path, "consilium-test-standin", reach) as living:
        yield living


@asynccontextmanager
async def embedded_model(host: str) -> AsyncIterator[None]:
    """The embedded model's server, where a seat's client reaches it."""
    server = await anyio.open_process(
        [
            *(sys.executable, "-P", "-m", "council.model", "--lifeline"),
            *("--host", host, "--port", "8888", "--allow-remote"),
        ],
        stderr=None,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        with anyio.fail_after(60):
            await server.stdout.receive()
        yield
    finally:
        await server.stdin.aclose()
        with anyio.move_on_after(10):
            await server.wait()
        await server.aclose()


async def test_the_real_client_and_the_real_model_debate_behind_every_fence(
    place: Town, council: Council, tmp_path: Path
) -> None:
    async with (
        embedded_model(place.gateway),
        sitting(place, council, tmp_path, llm_image(), place.gateway) as living,
    ):
        assert living.seat.reg.meta.isolation == "strict"
        for turn_id in (1, 2):
            await living.turn(turn_id, "Name one fruit.")
            with anyio.fail_after(PATIENCE):
                said = await living.seat.data.channel.receive()
                while isinstance(said.message, m.Ping | m.Pong):
                    said = await living.seat.data.channel.receive()
            assert isinstance(said.message, m.Speech)
            assert said.message.usage is not None
            assert said.message.usage.model == "SmolLM2-135M-Instruct"
            await living.seat.control.hear(m.TurnEnd)
        await living.nothing_is_left()


async def test_a_seat_takes_turns_and_its_isolation_holds_between_them(living: Living) -> None:
    assert living.seat.reg.meta.isolation == "strict"
    for turn_id in (1, 2):
        await living.turn(turn_id, "well?")
        said = await living.seat.data.hear(m.Speech)
        assert said.text.startswith(f"Heard {turn_id} turns")
        await living.seat.control.hear(m.TurnEnd)
        await living.nothing_is_left()
    done = await anyio.to_thread.run_sync(
        lambda: docker("exec", living.container, "consilium", "verify-isolation", "--json", check=False)
    )
    assert surprises(done) == set()
    assert untried(done) <= {"egress_refused", "egress_allowed"}
    assert json.loads(done.stdout)["seat"] is not None


async def test_the_isolation_can_be_verified_while_the_client_is_at_work(living: Living) -> None:
    await living.turn(1, "please hang now")
    await living.wait_until(1)
    done = await anyio.to_thread.run_sync(
        lambda: docker("exec", living.container, "consilium", "verify-isolation", "--json", check=False)
    )
    assert surprises(done) == set()
    await living.wait_until(1)  # and the client is still at work


@pytest.mark.parametrize(("act", "processes"), [("fork_bomb", 50), ("ignore_sigterm", 1)])
async def test_what_will_not_end_is_gone_after_the_turn_and_the_wrapper_answers_all_the_while(
    living: Living, act: str, processes: int
) -> None:
    await living.turn(1, f"please {act} now")
    await living.wait_until(processes)
    assert len(await living.of_the_client()) <= 60
    await living.answers_pings(2)
    await living.seat.control.say(m.TurnRevoked(turn_id=1, reason="enough"))
    await living.answers_pings(6)
    await living.nothing_is_left()
    await living.turn(2, "well?")
    assert (await living.seat.data.hear(m.Speech)).turn_id == 2


async def test_a_client_that_takes_all_memory_ends_and_its_wrapper_does_not(living: Living) -> None:
    await living.turn(1, "please glutton now")
    await living.wait_until(20)
    await living.answers_pings(4)
    assert await living.ran_out_of_memory()
    await living.seat.control.say(m.TurnRevoked(turn_id=1, reason="enough"))
    await living.answers_pings(6)
    await living.nothing_is_left()
    await living.turn(2, "well?")
    assert (await living.seat.data.hear(m.Speech)).turn_id == 2


async def test_a_daemon_that_left_everything_behind_is_gone_after_the_turn(living: Living) -> None:
    await living.turn(1, "please daemon now")
    await living.seat.data.hear(m.Speech)
    await living.nothing_is_left()


async def test_a_client_ends_with_its_wrapper(living: Living) -> None:
    await living.turn(1, "please ignore_sigterm now")
    await living.wait_until(1)
    (wrapper,) = (
        await living.inside("sh", "-c", "grep -lE '^Uid:.*\\b10001\\b' /proc/[0-9]*/status | cut -d/ -f3")
    ).split()
    # Root in there may signal nobody: who may is the wrapper's own user.
    await anyio.to_thread.run_sync(
        lambda: docker(
            "exec", "-u", "10001", living.container, "sh", "-c", f"kill -KILL {wrapper}", check=False
        )
    )
    ended = await anyio.to_thread.run_sync(lambda: docker("wait", living.container, timeout=30))
    assert ended.stdout.strip() == "137"


async def test_a_link_that_the_client_leaves_leads_nowhere(living: Living) -> None:
    """What the wrapper puts into the client's folder replaces a link; what is behind it stays as it was."""
    await living.turn(1, "well?")
    await living.seat.data.hear(m.Speech)
    home, kept = "/var/lib/consilium/client", "/var/lib/consilium/seat/chat.json"
    await anyio.to_thread.run_sync(
        lambda: docker(
            "exec", "-u", CLIENT, living.container, "sh", "-c",
            f"cd {home} && ln -sf {kept} system-prompt.txt && rm -r work && ln -s /etc work",
        )
    )  # fmt: skip
    before = await anyio.to_thread.run_sync(
        lambda: docker("exec", "-u", "10001", living.container, "cat", kept).stdout
    )
    await anyio.to_thread.run_sync(lambda: docker("restart", "-t", "20", living.container))
    seat = await living.arbiter.seat()
    await seat.assign(2, m.DeltaEntry(speaker="beta_00000000", text="and now?"))
    assert (await seat.data.hear(m.Speech)).text.startswith("Heard 2 turns")
    after = docker("exec", "-u", "10001", living.container, "cat", kept).stdout
    # It is the seat's own still; only the turn that succeeded last is another.
    assert json.loads(after) | {"turn": None} == json.loads(before) | {"turn": None}


async def test_a_client_in_a_terminal_stays_behind_every_fence_and_goes_with_its_turn(
    place: Town, council: Council, tmp_path: Path
) -> None:
    (tmp_path / "image").mkdir()
    image = await anyio.to_thread.run_sync(terminal_image, tmp_path / "image")
    reach = place.peer(f"reach-{tmp_path.name}")
    whom = "name: alpha, preset: tui, adapter: pexpect"
    async with sitting(place, council, tmp_path, image, reach, participant=whom) as living:
        assert living.seat.reg.meta.isolation == "strict"
        assert living.seat.reg.meta.adapter == "pexpect"
        assert living.seat.reg.meta.reports_usage is False
        for turn_id in (1, 2):
            await living.turn(turn_id, "well?")
            said = await living.seat.data.hear(m.Speech)
            assert said.text.startswith(f"I have heard {turn_id}; last: It is your turn. Answer now.")
            await living.seat.control.hear(m.TurnEnd)
            assert len(await living.of_the_client()) == 1, "it stays, and nothing beside it"
        done = await anyio.to_thread.run_sync(
            lambda: docker("exec", living.container, "consilium", "verify-isolation", "--json", check=False)
        )
        assert surprises(done) == set()
        await living.turn(3, "a long one")
        await living.seat.control.say(m.TurnRevoked(turn_id=3, reason="enough"))
        until = time.monotonic() + PATIENCE
        while await living.of_the_client():
            assert time.monotonic() < until
            await anyio.sleep(0.1)
        await living.turn(4, "well?")
        said = await living.seat.data.hear(m.Speech)
        assert said.text.startswith("I have heard 3; "), "the revoked turn is forgotten"
