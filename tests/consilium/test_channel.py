"""`consilium.channel`: messages over a real connection, and what `dial` says when there is none."""

from __future__ import annotations

import errno
import socket
import ssl
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketListener
from certificates import CLIENT_AUTH, DAY, forge_root, issue_odd
from edge_kit import HOSTS, Council, gather, nodelay, outcome, tls

from arbiter.edge.accepting import Listener
from consilium.channel import Channel, _words, dial, dial_path
from consilium.codec import Codec, encode
from consilium.errors import ChannelBroken, ChannelClosed, ChannelError, ErrorCode, PeerError, UserError
from consilium.framing import MAX_LINE_BYTES
from consilium.messages import (
    ControlFromSeat,
    ControlToSeat,
    Error,
    Message,
    Phase,
    Ping,
    Pong,
    Reg,
    TurnRevoked,
    TurnStart,
)
from consilium.tls import CHUNK, TlsStream, client_context, server_context
from consilium.unixstream import UnixStream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from edge_kit import Ends

pytestmark = pytest.mark.anyio

FROM_SEAT: Codec[Any] = Codec(ControlFromSeat)
TO_SEAT: Codec[Any] = Codec(ControlToSeat)
ERROR = Error(code=ErrorCode.MALFORMED, message="not one JSON object")


@pytest.fixture(scope="module")
def council(tmp_path_factory: pytest.TempPathFactory) -> Council:
    return Council(tmp_path_factory.mktemp("council"))


class Pair:
    """A seat's end and the Arbiter's end of one channel."""

    def __init__(self, ends: Ends, limit: int) -> None:
        self.ends = ends
        self.seat: Channel[Any] = Channel(ends.client, TO_SEAT, prefix="c")
        self.arbiter: Channel[Any] = Channel(ends.server, FROM_SEAT, prefix="a", limit=limit)


@asynccontextmanager
async def channel(council: Council, *, size: int = CHUNK, limit: int = MAX_LINE_BYTES) -> AsyncIterator[Pair]:
    async with tls(council, size=size) as ends:
        yield Pair(ends, limit)


# Messages


async def test_a_request_and_its_reply_are_correlated(council: Council) -> None:
    async with channel(council) as pair:
        asked = await pair.seat.send(Ping(ts=7))
        line = await pair.arbiter.receive()
        assert (line.msg_id, line.in_reply_to, line.message) == (asked, None, Ping(ts=7))
        await pair.arbiter.send(Pong(ts=7), in_reply_to=line.msg_id)
        reply = await pair.seat.receive()
        assert (reply.msg_id, reply.in_reply_to, reply.message) == ("a-1", asked, Pong(ts=7))


async def test_message_ids_count_up_whichever_way_messages_are_sent(council: Council) -> None:
    async with channel(council) as pair:
        sent = [await pair.seat.send(Ping(ts=1))]
        sent += await pair.seat.send_many([(Ping(ts=2), None), (Ping(ts=3), None)])
        sent.append(await pair.seat.send(Ping(ts=4)))
        assert sent == ["c-1", "c-2", "c-3", "c-4"]
        received = [await pair.arbiter.receive() for _ in sent]
        assert [line.msg_id for line in received] == sent
        assert [line.message.ts for line in received] == [1, 2, 3, 4]


async def test_ids_and_lines_keep_their_order_among_many_senders(council: Council) -> None:
    async with channel(council) as pair:
        await gather(*(partial(pair.seat.send, Ping(ts=number)) for number in range(30)))
        received = [(await pair.arbiter.receive()).msg_id for _ in range(30)]
        assert received == [f"c-{number}" for number in range(1, 31)]


async def test_several_messages_leave_in_one_write(council: Council) -> None:
    async with channel(council) as pair:
        writes = len(pair.ends.server_wire.sent)
        revoked = TurnRevoked(turn_id=3, reason="deadline")
        start = TurnStart(turn_id=4, phase=Phase.OPENING, deadline_ms=1000)
        await pair.arbiter.send_many([(revoked, "c-9"), (start, None)])
        assert len(pair.ends.server_wire.sent) == writes + 1
        first, second = await pair.seat.receive(), await pair.seat.receive()
        assert (first.message, first.in_reply_to) == (revoked, "c-9")
        assert (second.message, second.in_reply_to) == (start, None)


async def test_nothing_to_send_sends_nothing(council: Council) -> None:
    async with channel(council) as pair:
        writes = len(pair.ends.client_wire.sent)
        assert await pair.seat.send_many([]) == []
        assert len(pair.ends.client_wire.sent) == writes


async def test_a_channel_knows_its_peers_certificate(council: Council) -> None:
    async with channel(council) as pair:
        assert pair.arbiter.peer_der == council.alice.leaf()
        assert pair.seat.peer_der == council.arbiter.leaf()


# Boundaries


@pytest.mark.parametrize("size", [1, 5, CHUNK])
async def test_lines_arrive_whole_however_the_bytes_come(council: Council, size: int) -> None:
    async with channel(council, size=size) as pair:
        said: list[Message] = [Ping(ts=1), Reg(name="alice"), Ping(ts=2)]
        await pair.seat.send_many((message, None) for message in said)
        assert [(await pair.arbiter.receive()).message for _ in said] == said


@pytest.mark.parametrize("size", [1, CHUNK])
async def test_a_line_may_be_spread_over_many_records(council: Council, size: int) -> None:
    lines = encode(Ping(ts=1), "c-1") + encode(Ping(ts=2), "c-2")
    async with channel(council, size=size) as pair, anyio.create_task_group() as tasks:

        async def stutter() -> None:
            for start in range(0, len(lines), 10):
                await pair.ends.client.send(lines[start : start + 10])

        tasks.start_soon(stutter)
        assert [(await pair.arbiter.receive()).message for _ in range(2)] == [Ping(ts=1), Ping(ts=2)]


async def test_lines_that_came_together_let_other_tasks_run_in_between(council: Council) -> None:
    async with channel(council) as pair, anyio.create_task_group() as tasks:
        await pair.seat.send_many((Ping(ts=number), None) for number in range(20))
        await pair.arbiter.receive()
        seen = 0

        async def neighbour() -> None:
            nonlocal seen
            while seen < 19:
                turns.append(seen)
                await anyio.lowlevel.checkpoint()

        turns: list[int] = []
        tasks.start_soon(neighbour)
        for _ in range(19):
            await pair.arbiter.receive()
            seen += 1
        assert len(set(turns)) > 10


# Refusals


async def test_a_line_that_breaks_the_rules_ends_the_reading_but_not_the_answer(council: Council) -> None:
    async with channel(council) as pair:
        await pair.ends.client.send(encode(Ping(ts=1), "c-1") + b"not JSON\n" + encode(Ping(ts=2), "c-3"))
        assert (await pair.arbiter.receive()).message == Ping(ts=1)
        with pytest.raises(PeerError) as refusal:
            await pair.arbiter.receive()
        assert refusal.value.code is ErrorCode.MALFORMED
        with pytest.raises(ChannelBroken, match="nothing is read after a line that was refused"):
            await pair.arbiter.receive()
        await pair.arbiter.send(ERROR)
        assert (await pair.seat.receive()).message == ERROR
        await gather(pair.arbiter.aclose, pair.seat.aclose)


async def test_a_message_of_the_other_direction_is_refused_with_its_id(council: Council) -> None:
    async with channel(council) as pair:
        await pair.seat.send(TurnRevoked(turn_id=1, reason="mine now"))
        with pytest.raises(PeerError) as refusal:
            await pair.arbiter.receive()
        assert refusal.value.code is ErrorCode.POLICY_DENIED
        assert refusal.value.in_reply_to == "c-1"


async def test_a_line_without_an_end_is_refused_at_the_limit(council: Council) -> None:
    async with channel(council, limit=1000) as pair, anyio.create_task_group() as tasks:
        tasks.start_soon(pair.ends.client.send, b"x" * 100_000)
        with pytest.raises(PeerError) as refusal:
            await pair.arbiter.receive()
        assert refusal.value.code is ErrorCode.TOO_LARGE
        with pytest.raises(ChannelBroken):
            await pair.arbiter.receive()
        tasks.cancel_scope.cancel()


async def test_the_end_of_the_connection_is_told_after_the_last_line(council: Council) -> None:
    async with channel(council) as pair, anyio.create_task_group() as tasks:
        await pair.seat.send_many([(Ping(ts=1), None), (Ping(ts=2), None)])
        tasks.start_soon(pair.seat.aclose)
        assert [(await pair.arbiter.receive()).message for _ in range(2)] == [Ping(ts=1), Ping(ts=2)]
        with pytest.raises(ChannelClosed):
            await pair.arbiter.receive()
        await pair.arbiter.aclose()


# Dialling


class Answering:
    """What an Arbiter on loopback does with one connection, and where it listens."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.nodelay: bool | None = None
        self.refusal: str | None = None
        self.done = anyio.Event()


@asynccontextmanager
async def answering(context: ssl.SSLContext | None, host: str = "127.0.0.1") -> AsyncIterator[Answering]:
    """Listen; answer one connection by TLS and a PING, or never where there is no context."""
    async with (
        await anyio.create_tcp_listener(local_host=host) as listeners,
        anyio.create_task_group() as tasks,
    ):
        (listener,) = listeners.listeners
        assert isinstance(listener, SocketListener)
        state = Answering(listener.extra(SocketAttribute.local_port))

        async def answer() -> None:
            async with await listener.accept() as raw:
                state.nodelay = nodelay(raw)
                if context is None:
                    await anyio.sleep_forever()
                else:
                    stream = await outcome(partial(TlsStream.handshake, raw, context, server_side=True))
                    if isinstance(stream, TlsStream):
                        await stream.send(encode(Ping(ts=1), "a-1"))
                        await stream.aclose()
                    else:
                        state.refusal = str(stream)
                state.done.set()

        tasks.start_soon(answer)
        yield state
        tasks.cancel_scope.cancel()


async def test_dialling_gives_a_channel_without_delay_on_either_end(council: Council) -> None:
    async with answering(council.server) as arbiter:
        channel = await dial("127.0.0.1", arbiter.port, council.client, TO_SEAT, prefix="c")
        assert (await channel.receive()).message == Ping(ts=1)
        assert channel.peer_der == council.arbiter.leaf()
        assert nodelay(channel._stream._raw)
        assert arbiter.nodelay
        await channel.aclose()


async def test_dialling_takes_credentials_too_and_another_name(council: Council) -> None:
    async with answering(council.server, "127.0.0.2") as arbiter:
        channel = await dial(
            "127.0.0.2", arbiter.port, council.alice, TO_SEAT, prefix="c", server_name="localhost"
        )
        assert (await channel.receive()).message == Ping(ts=1)
        await channel.aclose()


async def test_a_refused_certificate_shows_at_the_first_receive(council: Council) -> None:
    expired = council.issue("expired", start=-2 * DAY, seconds=DAY)
    async with answering(council.server) as arbiter:
        channel = await dial("127.0.0.1", arbiter.port, expired, TO_SEAT, prefix="c")
        with pytest.raises(ChannelBroken, match="the Arbiter refused our certificate: certificate expired"):
            await channel.receive()
        await channel.aclose()


async def test_credentials_that_cannot_be_used_are_the_users_to_mend(
    council: Council, tmp_path: Path
) -> None:
    broken = issue_odd(forge_root()).write(tmp_path / "alice", anchors=b"none")
    with pytest.raises(UserError, match="trust anchors"):
        await dial("127.0.0.1", 1, broken, TO_SEAT, prefix="c")


async def failure(council: Council, host: str, port: int, **options: Any) -> str:
    """Return the sentence with which dialling fails."""
    with pytest.raises(ChannelBroken) as refusal:
        await dial(host, port, council.client, TO_SEAT, prefix="c", **options)
    return str(refusal.value)


async def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that nobody listens on."""
    async with await anyio.create_tcp_listener(local_host=host) as listeners:
        port: int = listeners.extra(SocketAttribute.local_port)
    return port


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_nobody_there_is_said_with_host_and_port(council: Council, host: str) -> None:
    port = await free_port()
    said = await failure(council, host, port)
    assert said == f"no connection to the Arbiter at {host}:{port}: connection refused"


def test_of_several_addresses_the_first_ones_failure_is_said() -> None:
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed")
    unreachable = OSError(errno.ENETUNREACH, "Connect call failed")
    error = OSError("All connection attempts failed")
    error.__cause__ = ExceptionGroup("several", [refused, unreachable])
    assert _words(error) == "connection refused"
    assert _words(OSError("no number at all")) == "no number at all"


async def test_an_ipv6_address_stands_in_brackets(council: Council) -> None:
    said = await failure(council, "::1", 1)
    assert said.startswith("no connection to the Arbiter at [::1]:1: ")


async def test_a_name_that_does_not_resolve_is_said(council: Council) -> None:
    said = await failure(council, "no-such-host.invalid", 9998)
    assert said.startswith("no connection to the Arbiter at no-such-host.invalid:9998: ")
    assert "name" in said.partition("9998: ")[2]


async def test_what_is_no_host_name_is_said(council: Council) -> None:
    label = "é" * 70
    assert await failure(council, label, 9998) == (
        f"no connection to the Arbiter at {label}:9998: Label too long"
    )


async def test_a_name_that_no_certificate_can_have_is_said(council: Council) -> None:
    async with answering(council.server) as arbiter:
        said = await failure(council, "127.0.0.1", arbiter.port, server_name=".example")
    assert said.startswith(f"no connection to the Arbiter at 127.0.0.1:{arbiter.port}: ")


async def test_a_seat_that_serves_as_arbiter_is_refused(council: Council) -> None:
    impostor = server_context(council.issue("impostor", usages=(CLIENT_AUTH,), names=HOSTS))
    async with answering(impostor) as arbiter:
        said = await failure(council, "127.0.0.1", arbiter.port)
        assert said == (
            f"no connection to the Arbiter at 127.0.0.1:{arbiter.port}: "
            "the Arbiter's certificate was refused: it was issued for another use"
        )
        with anyio.fail_after(5):
            await arbiter.done.wait()
    assert arbiter.refusal == (
        "the client refused our certificate: unsupported certificate (issued for another use)"
    )


async def test_an_arbiter_of_another_name_is_refused(council: Council) -> None:
    async with answering(council.server) as arbiter:
        said = await failure(council, "127.0.0.1", arbiter.port, server_name="elsewhere.example")
    assert "certificate is not valid for 'elsewhere.example'" in said


@asynccontextmanager
async def behind_a_socket(council: Council, path: Path) -> AsyncIterator[None]:
    """An Arbiter on a UNIX socket, that takes one connection."""
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    made.listen()
    listener = Listener(made, UnixStream)

    async def serve() -> None:
        async with await listener.accept() as raw:
            with suppress(ChannelError):
                stream = await TlsStream.handshake(raw, council.server, server_side=True)
                await stream.receive()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        yield
        tasks.cancel_scope.cancel()
    await listener.aclose()


async def test_dialling_a_path_authenticates_both_ends(council: Council, tmp_path: Path) -> None:
    async with behind_a_socket(council, tmp_path / "s"):
        channel = await dial_path(tmp_path / "s", council.client, TO_SEAT, prefix="c")
        assert channel.peer_der == council.arbiter.leaf()
        await channel.aclose()


async def test_an_arbiter_of_another_name_behind_a_path_is_refused(council: Council, tmp_path: Path) -> None:
    async with behind_a_socket(council, tmp_path / "s"):
        with pytest.raises(ChannelBroken, match=f"Arbiter at {tmp_path}/s: .*certificate was refused"):
            await dial_path(tmp_path / "s", council.client, TO_SEAT, prefix="c", server_name="other.example")


async def test_a_path_without_an_arbiter_is_said(council: Council, tmp_path: Path) -> None:
    with pytest.raises(ChannelBroken, match=f"at {tmp_path}/s: no such file or directory"):
        await dial_path(tmp_path / "s", council.client, TO_SEAT, prefix="c")
    with pytest.raises(ChannelBroken, match="AF_UNIX path too long"):
        await dial_path(tmp_path / ("s" * 200), council.client, TO_SEAT, prefix="c")


async def test_silence_is_said_with_the_time_that_was_given(council: Council) -> None:
    async with answering(None) as arbiter:
        said = await failure(council, "127.0.0.1", arbiter.port, timeout=0.1)
    assert said == f"the Arbiter at 127.0.0.1:{arbiter.port} did not answer within 0.1 seconds"


async def test_a_context_of_ones_own_serves_many_calls(council: Council) -> None:
    context = client_context(council.alice)
    for _ in range(2):
        async with answering(council.server) as arbiter:
            channel = await dial("127.0.0.1", arbiter.port, context, TO_SEAT, prefix="c")
            assert (await channel.receive()).msg_id == "a-1"
            await channel.aclose()
