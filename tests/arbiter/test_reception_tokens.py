"""Data tokens over real TLS: replays, races, thefts; and where a token never is."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from certificates import DAY
from certificates import clock as real_time
from house import Clock, Wire, until
from houses import open_house, refusals, transport  # noqa: F401 - transport: a fixture
from rights import ANY_NAME

from arbiter import reception as reception_module
from arbiter.tokens import LIFETIME
from consilium import messages as m

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.anyio

# --- tokens -------------------------------------------------------------------------------------------


async def test_of_a_hundred_uses_of_one_token_exactly_one_succeeds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_house(tmp_path) as home:
        ada = home.guest("ada")
        await ada.register()
        wires: list[Wire] = []

        async def connect() -> None:
            wires.append(await home.connect("data", ada.context))

        for _ in range(4):
            async with anyio.create_task_group() as tasks:
                for _ in range(25):
                    tasks.start_soon(connect)
        replies: list[Any] = []

        async def hello(wire: Wire) -> None:
            replies.append(await wire.ask(ada.hello()))

        async with anyio.create_task_group() as tasks:
            for wire in wires:
                tasks.start_soon(hello, wire)
        assert len(replies) == 100
        assert [type(reply) for reply in replies].count(m.DataOk) == 1
        assert {reply.code for reply in replies if isinstance(reply, m.Error)} == {"TOKEN_REFUSED"}
        assert "TOKEN_REFUSED" in caplog.text, "a replay is logged"
        assert len(caplog.records) <= reception_module.LOG_BURST + 5 * 10, "but no flood of them"


async def test_a_replayed_token_is_refused_and_the_bound_connection_stays(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        (ada,) = await home.joined("ada")
        second = await home.connect("data", ada.context)
        await second.say(ada.hello())
        assert await refusals(second) == ["TOKEN_REFUSED"]
        assert (await ada.data.ask(m.Speech(turn_id=9, text="x"))).code == "TURN_MISMATCH"


async def test_another_certificate_neither_uses_nor_consumes_a_token(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        ada = home.guest("ada")
        await ada.register()
        for holder in ("thief", "thief2"):
            thief = await home.connect("data", home.context(holder))
            await thief.say(ada.hello())
            assert await refusals(thief) == ["TOKEN_REFUSED"]
        await ada.bind()


async def test_every_refusal_of_a_token_reads_the_same(tmp_path: Path) -> None:
    async with open_house(tmp_path, profiles=ANY_NAME) as home:
        ada, bob = home.guest("ada"), home.guest("bob", holder="ada")
        await ada.register()
        await bob.register()
        attempts = [
            m.DataHello(session_id="nobody", data_token="nothing"),
            m.DataHello(session_id=ada.granted.session_id, data_token="nothing"),
            m.DataHello(session_id=bob.granted.session_id, data_token=ada.granted.data_token),
            m.DataHello(session_id="", data_token=ada.granted.data_token),
        ]
        heard = []
        for attempt in attempts:
            wire = await home.connect("data", ada.context)
            heard.append(await wire.ask(attempt))
        assert heard == [heard[0]] * len(attempts)
        await ada.bind()
        await bob.bind()


async def test_a_token_expires_on_the_monotonic_clock_and_on_no_other(tmp_path: Path) -> None:
    clock, wall_clock = Clock(), Clock(real_time())
    async with open_house(tmp_path, clock=clock, wall_clock=wall_clock) as home:
        for later, good in ((LIFETIME - 0.001, True), (LIFETIME, False)):
            ada = home.guest("ada" if good else "bob")
            await ada.register()
            clock.now += later
            wall_clock.now += DAY if good else -2 * DAY
            data = await home.connect("data", ada.context)
            reply = await data.ask(ada.hello())
            assert isinstance(reply, m.DataOk) is good


async def test_a_token_is_void_once_its_session_is_over(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        left, lost = home.guest("left"), home.guest("lost")
        await left.register()
        await lost.register()
        await left.control.say(m.Unreg())
        await left.control.rest()
        await lost.control.cut()
        await until(lambda: not home.reception.seats)
        for guest in (left, lost):
            old = guest.hello()
            data = await home.connect("data", guest.context)
            assert (await data.ask(old)).code == "TOKEN_REFUSED"
            await guest.join()
            data = await home.connect("data", guest.context)
            assert (await data.ask(old)).code == "TOKEN_REFUSED", "nor is it good for the next session"


async def test_a_token_is_void_at_once_when_the_debate_ends_its_session(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        ada = home.guest("ada")
        await ada.register()
        home.reception.end(ada.granted.session_id, "left")
        assert len(home.reception._tokens) == 0


async def test_a_registration_that_is_never_bound_does_not_hold_its_place(tmp_path: Path) -> None:
    clock = Clock()
    async with open_house(tmp_path, clock=clock, limits={"heartbeat_seconds": 0.05}) as home:
        ada, bob = home.guest("ada"), home.guest("bob")
        await ada.register()
        await bob.join()
        clock.now += LIFETIME
        late = m.Error(code="TIMEOUT", message="no data connection within 30 s of REG")
        assert await ada.control.rest() == [late]
        assert isinstance(await bob.control.ask(m.StatusRequest()), m.Status)
        await ada.join()


# --- what is never told -------------------------------------------------------------------------------


async def test_a_token_is_in_no_log_and_in_no_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with open_house(tmp_path) as home:
        (ada,) = await home.joined("ada")
        replay = await home.connect("data", ada.context)
        await replay.ask(ada.hello())
        thief = await home.connect("data", home.context("thief"))
        await thief.ask(ada.hello())
        broken = await home.connect("data", ada.context)
        token = ada.granted.data_token
        await broken.say_bytes(b'{"protocol_version":4,"msg_id":"m","type":"DATA_HELLO","session_id":7,')
        await broken.say_bytes(b'"data_token":"' + token.encode() + b'"}\n')
        assert await refusals(broken) == ["MALFORMED"]
        await ada.data.say_bytes(token.encode() + b"\n")
        await ada.data.rest()
        assert "TOKEN_REFUSED" in caplog.text
        assert token not in caplog.text
        assert token not in "".join(where_it_may_not_be(tmp_path))


def where_it_may_not_be(folder: Path) -> list[str]:
    files = [path for path in folder.iterdir() if path.is_file()]
    assert "debate.jsonl" in [path.name for path in files]
    return [path.read_text() for path in files]
