"""`council.operator`: an operator's connection against a scripted Arbiter, over real TLS on loopback."""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketListener
from arbiter_double import HOST, PATIENCE, Peer
from edge_kit import Council

from consilium import messages as m
from consilium import tls
from consilium.channel import Channel
from consilium.codec import Codec
from consilium.errors import ChannelBroken, ChannelClosed, ErrorCode, PeerError
from consilium.framing import MAX_LINE_BYTES
from consilium.tls import TlsStream
from council import operator
from council.operator import Operator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from anyio.abc import TaskGroup

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def council(tmp_path_factory: pytest.TempPathFactory) -> Council:
    return Council(tmp_path_factory.mktemp("council"))


@pytest.fixture(autouse=True)
def _brief_farewells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "CLOSE_SECONDS", 0.05)


@asynccontextmanager
async def connected(council: Council) -> AsyncIterator[tuple[Operator, Peer[Any], TaskGroup]]:
    """An operator, the Arbiter's end of its connection, and a task group for what runs beside."""
    async with await anyio.create_tcp_listener(local_host=HOST) as listeners:
        (listener,) = listeners.listeners
        assert isinstance(listener, SocketListener)
        port = listener.extra(SocketAttribute.local_port)
        codec: Codec[Any] = Codec(m.AdminFromOperator)
        arrived: list[Peer[Any]] = []

        async def accept() -> None:
            raw = await listener.accept()
            stream = await TlsStream.handshake(raw, council.server, server_side=True)
            arrived.append(Peer(Channel(stream, codec, prefix="a"), stream, raw))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(accept)
            async with operator.connect(HOST, port, council.client) as client:
                with anyio.fail_after(PATIENCE):
                    while not arrived:
                        await anyio.lowlevel.checkpoint()
                try:
                    yield client, arrived[0], tasks
                finally:
                    with anyio.CancelScope(shield=True):
                        await arrived[0].cut()
            tasks.cancel_scope.cancel()


async def answer(peer: Peer[Any], *replies: m.Message) -> None:
    """Answer the next messages, one each."""
    for reply in replies:
        line = await peer.line()
        await peer.say(reply, in_reply_to=line.msg_id)


async def test_a_request_has_its_reply(council: Council) -> None:
    async with connected(council) as (client, arbiter, tasks):
        tasks.start_soon(answer, arbiter, m.AdminOk(operation="PAUSE"))
        assert await client.request(m.Pause(reason="tea")) == m.AdminOk(operation="PAUSE")


async def test_replies_find_who_asked_whatever_their_order(council: Council) -> None:
    async with connected(council) as (client, arbiter, tasks):
        replies: dict[str, Any] = {}

        async def ask(name: str, message: m.Message) -> None:
            replies[name] = await client.request(message)

        async def reverse() -> None:
            lines = [await arbiter.line() for _ in range(2)]
            for line in reversed(lines):
                await arbiter.say(m.AdminOk(operation=line.message.type), in_reply_to=line.msg_id)

        tasks.start_soon(reverse)
        async with anyio.create_task_group() as asking:
            asking.start_soon(ask, "pause", m.Pause())
            asking.start_soon(ask, "next", m.Next(seat="a"))
        assert replies == {"pause": m.AdminOk(operation="PAUSE"), "next": m.AdminOk(operation="NEXT")}


@pytest.mark.parametrize(
    ("code", "known"),
    [("INVALID_STATE", ErrorCode.INVALID_STATE), ("SOMETHING_NEW", ErrorCode.POLICY_DENIED)],
)
async def test_a_refusal_is_raised_to_who_asked(council: Council, code: str, known: ErrorCode) -> None:
    async with connected(council) as (client, arbiter, tasks):
        tasks.start_soon(answer, arbiter, m.Error(code=code, message="not now"), m.AdminOk(operation="PAUSE"))
        with pytest.raises(PeerError, match="not now") as caught:
            await client.request(m.Resume())
        assert caught.value.code is known
        assert await client.request(m.Pause()) == m.AdminOk(operation="PAUSE")


async def test_an_error_about_nothing_we_said_ends_the_connection(council: Council) -> None:
    async with connected(council) as (client, arbiter, _):
        await arbiter.say(m.Error(code="POLICY_DENIED", message="no operator's certificate"))
        with pytest.raises(PeerError, match="no operator's certificate"):
            await client.request(m.Pause())


async def test_the_record_is_watched_as_it_grows_and_asking_in_between_does_not_hold_it_up(
    council: Council,
) -> None:
    async with connected(council) as (client, arbiter, tasks):

        async def play() -> None:
            watch = await arbiter.line()
            assert watch.message == m.Watch(from_seq=3)
            await arbiter.say(m.AdminOk(operation="WATCH"), in_reply_to=watch.msg_id)
            for seq in (3, 4, 5):
                await arbiter.say(m.Record(record={"seq": seq}), in_reply_to=watch.msg_id)
            await answer(arbiter, m.AdminOk(operation="PAUSE"))
            await arbiter.say(m.Record(record={"seq": 6}), in_reply_to=watch.msg_id)
            await arbiter.close()

        tasks.start_soon(play)
        seen = []
        async for record in client.watch(3):
            seen.append(record["seq"])
            if record["seq"] == 4:
                assert await client.request(m.Pause()) == m.AdminOk(operation="PAUSE")
        assert seen == [3, 4, 5, 6]


async def test_a_record_longer_than_a_seat_s_line_is_watched(council: Council) -> None:
    async with connected(council) as (client, arbiter, tasks):
        long = "x" * (MAX_LINE_BYTES + 1)

        async def play() -> None:
            await answer(arbiter, m.AdminOk(operation="WATCH"))
            await arbiter.say(m.Record(record={"text": long}))

        tasks.start_soon(play)
        async for record in client.watch():
            assert record == {"text": long}
            break


async def test_a_watch_that_is_refused_is_raised(council: Council) -> None:
    async with connected(council) as (client, arbiter, tasks):
        tasks.start_soon(answer, arbiter, m.Error(code="INVALID_STATE", message="no record yet"))
        with pytest.raises(PeerError, match="no record yet"):
            await anext(aiter(client.watch()))


async def test_a_cut_line_ends_the_watch_and_every_request_with_the_reason(council: Council) -> None:
    async with connected(council) as (client, arbiter, tasks):

        async def play() -> None:
            await answer(arbiter, m.AdminOk(operation="WATCH"))
            await arbiter.line()
            await arbiter.cut()

        tasks.start_soon(play)
        errors: list[str] = []

        async def ask() -> None:
            try:
                await client.request(m.Pause())
            except ChannelBroken as error:
                errors.append(str(error))

        tasks.start_soon(ask)
        with pytest.raises(ChannelBroken) as caught:
            await anext(aiter(client.watch()))
        await anyio.wait_all_tasks_blocked()
        assert errors == [str(caught.value)]


async def test_after_an_end_in_good_order_a_request_says_that_it_was_closed(council: Council) -> None:
    async with connected(council) as (client, arbiter, _):
        await arbiter.close()
        await anyio.wait_all_tasks_blocked()
        with pytest.raises((ChannelClosed, ChannelBroken)):
            await client.request(m.Pause())


async def test_a_ping_is_answered(council: Council) -> None:
    async with connected(council) as (_, arbiter, _):
        await arbiter.say(m.Ping(ts=7))
        line = await arbiter.line()
        assert line.message == m.Pong(ts=7)
        assert line.in_reply_to == "a-1"


async def test_a_pong_and_a_stray_reply_are_nobody_s(council: Council) -> None:
    async with connected(council) as (client, arbiter, tasks):
        await arbiter.say(m.Pong(ts=1))
        await arbiter.say(m.AdminOk(operation="NEXT"))
        tasks.start_soon(answer, arbiter, m.AdminOk(operation="PAUSE"))
        assert await client.request(m.Pause()) == m.AdminOk(operation="PAUSE")


async def test_what_fails_in_the_body_is_raised_as_it_is(council: Council) -> None:
    async def fail() -> None:
        async with connected(council) as (_, _, _):
            raise KeyError("ours")

    with pytest.raises(BaseExceptionGroup) as caught:  # the group is the test's own
        await fail()
    assert isinstance(caught.value.exceptions[0], KeyError)


async def test_an_arbiter_that_is_not_there_is_one_sentence(council: Council, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    with pytest.raises(ChannelBroken, match=rf"no connection to the Arbiter at {HOST}:{port}"):
        async with operator.connect(HOST, port, council.client):
            raise AssertionError("connected to nothing")
