"""The seat's two connections against a scripted Arbiter: real TLS on loopback."""

from __future__ import annotations

import errno
import socket
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel
import house as house_module
import pytest
from anyio.abc import SocketAttribute, SocketStream
from arbiter_double import HOST, PATIENCE, ArbiterDouble, Peer, arbiter_double, context, start
from certificates import SERVER_AUTH
from cryptography import x509
from edge_kit import Council
from houses import open_house

import wrapper.link as link_module
from consilium import messages as m
from consilium import tls
from consilium.errors import ChannelBroken, Objection
from consilium.tls import client_context, server_context
from wrapper import events as ev
from wrapper.link import Address, Link, obstacle

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator
    from pathlib import Path

    from anyio.abc import TaskGroup
    from anyio.streams.memory import MemoryObjectReceiveStream


pytestmark = pytest.mark.anyio

Event = TypeVar("Event")


@pytest.fixture(scope="module")
def council(tmp_path_factory: pytest.TempPathFactory) -> Council:
    return Council(tmp_path_factory.mktemp("council"))


@pytest.fixture
async def arbiter(council: Council) -> AsyncIterator[ArbiterDouble]:
    async with arbiter_double(council.server) as double:
        yield double


@pytest.fixture(autouse=True)
def _brief_farewells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "CLOSE_SECONDS", 0.05)


class Seat:
    """A link, its tasks, and what came into its inbox."""

    def __init__(self, link: Link, inbox: MemoryObjectReceiveStream[ev.SeatEvent], tasks: TaskGroup) -> None:
        self.link = link
        self.inbox = inbox
        self.tasks = tasks

    async def gets(self, kind: type[Event]) -> Event:
        with anyio.fail_after(PATIENCE):
            event = await self.inbox.receive()
        assert isinstance(event, kind), event
        return event

    async def gets_nothing(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self.inbox.receive()
            return False
        return True

    async def connects(self, arbiter: ArbiterDouble) -> Peer[Any]:
        self.tasks.start_soon(self.link.run, 0.0, 5.0)
        control = await arbiter.control()
        await self.gets(ev.ControlOpened)
        return control

    async def connects_data(self, arbiter: ArbiterDouble) -> Peer[Any]:
        self.tasks.start_soon(self.link.data)
        data = await arbiter.data()
        await self.gets(ev.DataOpened)
        return data


@asynccontextmanager
async def linked(address: Address, context: ssl.SSLContext) -> AsyncIterator[Seat]:
    send, receive = anyio.create_memory_object_stream[ev.SeatEvent](16)
    link = Link(address, context, send)
    with send, receive:
        try:
            async with anyio.create_task_group() as tasks:
                yield Seat(link, receive, tasks)
                tasks.cancel_scope.cancel()
        finally:
            await link.aclose()


@pytest.fixture
async def seat(arbiter: ArbiterDouble, council: Council) -> AsyncIterator[Seat]:
    async with linked(arbiter.address, council.client) as seat:
        yield seat


# --- messages ----------------------------------------------------------------------------------------


async def test_messages_go_both_ways_on_both_channels(arbiter: ArbiterDouble, seat: Seat) -> None:
    control = await seat.connects(arbiter)
    await seat.link.send_control(m.Ack(turn_id=1))
    assert await control.hear(m.Ack) == m.Ack(turn_id=1)
    await control.say(start(2))
    assert (await seat.gets(ev.FromControl)).message == start(2)

    data = await seat.connects_data(arbiter)
    await seat.link.send_data(m.Speech(turn_id=1, text="Wrap it."))
    assert (await data.hear(m.Speech)).text == "Wrap it."
    await data.say(context(3))
    assert (await seat.gets(ev.FromData)).message == context(3)


async def test_a_silent_connection_is_kept_open_by_tcp(arbiter: ArbiterDouble, seat: Seat) -> None:
    await seat.connects(arbiter)
    channel = seat.link._control._channel
    assert channel is not None
    own: socket.socket = channel._stream._raw.extra(SocketAttribute.raw_socket)
    assert own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30


async def test_a_context_larger_than_any_speech_arrives(arbiter: ArbiterDouble, seat: Seat) -> None:
    await seat.connects(arbiter)
    data = await seat.connects_data(arbiter)
    delta = tuple(m.DeltaEntry(speaker=f"Speaker {n}", text="x" * 60_000) for n in range(12))
    await data.say(context(1, *delta))
    message = (await seat.gets(ev.FromData)).message
    assert isinstance(message, m.Context)
    assert len(message.delta) == 12


async def test_a_message_for_a_connection_that_does_not_stand_yet_goes_nowhere(
    arbiter: ArbiterDouble, seat: Seat
) -> None:
    await seat.link.send_data(m.Speech(turn_id=1, text="Wrap it."))
    data = await seat.connects_data(arbiter)
    assert await data.hears_nothing()


# --- heartbeat ---------------------------------------------------------------------------------------


async def test_a_ping_is_answered_at_once_and_gets_no_further(arbiter: ArbiterDouble, seat: Seat) -> None:
    control = await seat.connects(arbiter)
    await control.say(m.Ping(ts=7))
    line = await control.line()
    assert line.message == m.Pong(ts=7)
    assert line.in_reply_to == "a-1"
    await control.say(m.Pong(ts=7))
    assert await seat.gets_nothing(0.1)


async def test_the_seat_pings_at_every_interval(arbiter: ArbiterDouble, seat: Seat) -> None:
    control = await seat.connects(arbiter)
    seat.tasks.start_soon(seat.link.heartbeat, 0.1)
    began = anyio.current_time()
    for _ in range(4):
        line = await control.line()
        assert isinstance(line.message, m.Ping)
        assert line.message.ts > 1_700_000_000_000  # milliseconds since the epoch
        await control.say(m.Pong(ts=line.message.ts), in_reply_to=line.msg_id)
    assert anyio.current_time() - began >= 0.39
    assert await seat.gets_nothing(0.15)


async def test_any_line_of_the_arbiter_is_a_sign_of_life(arbiter: ArbiterDouble, seat: Seat) -> None:
    control = await seat.connects(arbiter)
    seat.tasks.start_soon(seat.link.heartbeat, 0.1)
    for turn_counter in range(6):
        await control.say(m.DebateResumed(turn_counter=turn_counter))
        await seat.gets(ev.FromControl)
        await anyio.sleep(0.08)
    lost = await seat.gets(ev.LinkLost)
    assert lost.reason == "the control connection is lost: the Arbiter has been silent for 0.3 seconds"


# --- how a connection ends ---------------------------------------------------------------------------


async def test_a_closed_control_connection_is_a_lost_link(arbiter: ArbiterDouble, seat: Seat) -> None:
    control = await seat.connects(arbiter)
    await control.say(start(1))
    await control.close()
    await seat.gets(ev.FromControl)
    lost = await seat.gets(ev.LinkLost)
    assert lost.reason == "the control connection is lost: the Arbiter closed the connection"


async def test_an_arbiter_that_dies_is_a_lost_link(arbiter: ArbiterDouble, seat: Seat) -> None:
    control = await seat.connects(arbiter)
    await control.say(start(1))
    await seat.gets(ev.FromControl)
    await control.cut()
    lost = await seat.gets(ev.LinkLost)
    assert lost.reason.startswith("the control connection is lost: the Arbiter died, or the line was cut")


async def test_a_lost_data_connection_lets_the_control_connection_speak_first(
    arbiter: ArbiterDouble, seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "PARTING_SECONDS", 0.3)
    control = await seat.connects(arbiter)
    data = await seat.connects_data(arbiter)
    await data.say(m.DataOk())
    await seat.gets(ev.FromData)
    await data.close()
    assert await seat.gets_nothing(0.1)
    await control.say(m.DebateEnded(outcome=m.DebateState.FINISHED, turn_counter=1))
    await seat.gets(ev.FromControl)
    lost = await seat.gets(ev.LinkLost)
    assert lost.reason == "the data connection is lost: the Arbiter closed the connection"


async def test_an_arbiter_that_reads_nothing_is_a_lost_link(
    arbiter: ArbiterDouble, seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "SEND_SECONDS", 0.3)
    control = await seat.connects(arbiter)
    await control.say(start(1))
    await seat.gets(ev.FromControl)
    with anyio.fail_after(PATIENCE):
        while not seat.inbox.statistics().current_buffer_used:
            await seat.link.send_control(m.Unreg(reason="x" * 2000))
            await anyio.lowlevel.checkpoint()
    lost = await seat.gets(ev.LinkLost)
    assert lost.reason == "the control connection is lost: the Arbiter has read nothing for 0.3 seconds"


async def test_what_is_sent_on_a_dead_connection_raises_nothing(arbiter: ArbiterDouble, seat: Seat) -> None:
    control = await seat.connects(arbiter)
    await control.cut()
    for _ in range(3):
        await seat.link.send_control(m.Ack(turn_id=1))
        await anyio.sleep(0.02)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"not json\n", "not one JSON object"),
        (b'{"protocol_version":4,"msg_id":"a-9","type":"REG","name":"x"}\n', "REG may not be sent"),
        (b'{"protocol_version":5,"msg_id":"a-9","type":"PING","ts":1}\n', "protocol_version 4"),
    ],
)
async def test_what_is_not_of_the_protocol_is_a_fault_of_the_arbiter(
    arbiter: ArbiterDouble, seat: Seat, data: bytes, words: str
) -> None:
    control = await seat.connects(arbiter)
    await control.say_bytes(data)
    fault = await seat.gets(ev.PeerFaulted)
    assert fault.reason.startswith("on the control channel: ")
    assert words in fault.reason


# --- refusals ----------------------------------------------------------------------------------------


async def refusal(address: Address, context: ssl.SSLContext) -> ev.LinkRefused:
    async with linked(address, context) as seat:
        seat.tasks.start_soon(seat.link.run, 0.0, 5.0)
        with anyio.fail_after(PATIENCE):
            event = await seat.inbox.receive()
            if isinstance(event, ev.ControlOpened):  # TLS 1.3: the client hears of it late
                await seat.link.send_control(m.Reg(name="sceptic"))
                event = await seat.inbox.receive()
        assert isinstance(event, ev.LinkRefused), event
        return event


async def test_a_certificate_of_another_authority_is_refused_in_words(
    arbiter: ArbiterDouble, council: Council, tmp_path: Path
) -> None:
    stranger = Council(tmp_path).alice
    stranger.ca.write_bytes(council.alice.ca.read_bytes())
    refused = await refusal(arbiter.address, client_context(stranger))
    assert refused.reason == "the Arbiter refused our certificate: unknown CA (another authority issued it)"
    assert refused.objection is Objection.OWN_AUTHORITY


async def test_an_arbiter_of_another_authority_is_refused_in_words(
    arbiter: ArbiterDouble, tmp_path: Path
) -> None:
    refused = await refusal(arbiter.address, Council(tmp_path).client)
    assert "the Arbiter's certificate was refused" in refused.reason
    assert refused.objection is Objection.PEER_AUTHORITY


async def test_an_arbiter_under_another_name_is_refused_at_once(council: Council) -> None:
    elsewhere = council.issue(
        "elsewhere", usages=(SERVER_AUTH,), names=[x509.DNSName("arbiter.council.test")]
    )
    async with arbiter_double(server_context(elsewhere)) as double:
        refused = await refusal(double.address, council.client)
    assert "the Arbiter's certificate was refused" in refused.reason
    assert HOST in refused.reason
    assert refused.objection is Objection.PEER_NAME


async def test_a_name_that_no_certificate_could_bear_is_refused_at_once(
    arbiter: ArbiterDouble, council: Council
) -> None:
    nameless = replace(arbiter.address, server_name="*.")
    refused = await refusal(nameless, council.client)
    assert refused.objection is Objection.PEER_NAME


async def test_something_else_than_tls_is_refused_at_once(council: Council) -> None:
    async def serve(stream: SocketStream) -> None:
        async with stream:
            await stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with await anyio.create_tcp_listener(local_host=HOST) as listener, anyio.create_task_group() as web:
        web.start_soon(listener.serve, serve)
        port = listener.extra(SocketAttribute.local_port)
        refused = await refusal(Address(HOST, port, port), council.client)
        web.cancel_scope.cancel()
    assert refused.objection is Objection.NOT_TLS


async def test_a_connection_that_closes_in_the_handshake_is_lost_and_not_refused(council: Council) -> None:
    """A pass-through without an Arbiter behind it, or an Arbiter with too many handshakes under way."""

    async def hang_up(stream: SocketStream) -> None:
        await stream.aclose()

    async with await anyio.create_tcp_listener(local_host=HOST) as listener, anyio.create_task_group() as web:
        web.start_soon(listener.serve, hang_up)
        port = listener.extra(SocketAttribute.local_port)
        async with linked(Address(HOST, port, port), council.client) as seat:
            await seat.link.control(5.0)
            lost = await seat.gets(ev.LinkLost)
        web.cancel_scope.cancel()
    assert lost.reason.startswith(f"no connection to the Arbiter at {HOST}:{port}: ")


async def test_a_data_connection_that_is_closed_without_a_word_is_lost(
    arbiter: ArbiterDouble, seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "PARTING_SECONDS", 0.0)
    await seat.connects(arbiter)
    data = await seat.connects_data(arbiter)
    await data.close()
    lost = await seat.gets(ev.LinkLost)
    assert lost.reason == "the data connection is lost: the Arbiter closed the connection"


def broken(cause: BaseException | None) -> ChannelBroken:
    error = ChannelBroken("no connection")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "Nobody listens on that port"),
        (OSError(errno.EHOSTUNREACH, "no route"), "right network, or VPN"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "The name leads nowhere"),
        (None, "does a firewall keep the port"),
        (OSError(errno.EMFILE, "too many"), ""),
        (ChannelBroken("hung up"), ""),
    ],
)
def test_what_may_help_is_said_by_the_systems_own_error(cause: BaseException | None, words: str) -> None:
    hint = obstacle(broken(cause))
    assert words in hint
    assert bool(words) is bool(hint)


# --- a link that is dropped --------------------------------------------------------------------------


async def test_a_link_that_is_dropped_tells_the_arbiter_and_says_nothing_more(
    arbiter: ArbiterDouble, seat: Seat
) -> None:
    control = await seat.connects(arbiter)
    seat.link.bind(0.1)
    data = await arbiter.data()
    await seat.gets(ev.DataOpened)
    seat.link.drop()
    await control.hears_the_end()
    await data.hears_the_end()
    assert await seat.gets_nothing(0.5)


async def test_a_link_that_is_dropped_while_it_waits_never_dials(arbiter: ArbiterDouble, seat: Seat) -> None:
    seat.tasks.start_soon(seat.link.run, 0.2, 5.0)
    await anyio.sleep(0.05)
    seat.link.drop()
    with anyio.move_on_after(0.5) as waited:
        await arbiter.control()
    assert waited.cancelled_caught


# --- other places ------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


async def test_a_seat_reaches_an_arbiter_on_unix_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house_module, "TRANSPORT", "unix")
    async with open_house(tmp_path) as home:
        address = Address("nowhere.invalid", 1, 1, sockets=tmp_path / "run")
        async with linked(address, home.context("ada")) as seat:
            seat.tasks.start_soon(seat.link.run, 0.0, 5.0)
            await seat.gets(ev.ControlOpened)
            await seat.link.send_control(m.Reg(name="ada"))
            granted = (await seat.gets(ev.FromControl)).message
            assert isinstance(granted, m.RegOk)
            seat.tasks.start_soon(seat.link.data)
            await seat.gets(ev.DataOpened)
            hello = m.DataHello(session_id=granted.session_id, data_token=granted.data_token)
            await seat.link.send_data(hello)
            assert (await seat.gets(ev.FromData)).message == m.DataOk()
            await seat.link.aclose()


async def test_a_port_that_nobody_listens_on_is_a_lost_link(council: Council) -> None:
    address = Address(HOST, free_port(), free_port())
    async with linked(address, council.client) as seat:
        await seat.link.control(5.0)
        lost = await seat.gets(ev.LinkLost)
    assert lost.reason == f"no connection to the Arbiter at {HOST}:{address.control_port}: connection refused"


async def test_a_data_port_that_nobody_listens_on_is_a_lost_link(
    arbiter: ArbiterDouble, council: Council, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "PARTING_SECONDS", 0.0)
    address = Address(HOST, arbiter.address.control_port, free_port())
    async with linked(address, council.client) as seat:
        await seat.link.data()
        assert "connection refused" in (await seat.gets(ev.LinkLost)).reason
