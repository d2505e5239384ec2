"""`arbiter.edge.listener`: whatever a peer does to the door, the next good client is served.

`Porter` runs a real door on loopback whose handler echoes; each hostile peer is a function of its port.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import socket
import ssl
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest
from anyio.abc import SocketAttribute
from certificates import DAY, SERVER_AUTH, forge_root, issue_odd
from edge_kit import Council, connect, nodelay, outcome, reset, tcp

from arbiter.edge import listener as listener_module
from arbiter.edge.limits import Doors
from arbiter.edge.listener import Door, HandshakeOutcome, _who, bind
from consilium.errors import ChannelBroken, ChannelClosed, UserError
from consilium.tls import TlsStream, client_context, server_context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from anyio.abc import SocketListener, SocketStream

pytestmark = pytest.mark.anyio

GARBAGE_RECORD = b"\x17\x03\x03\x00\x40" + b"\xaa" * 64
HASTE = 0.3
HASTY = Doors(handshake_seconds=HASTE)
"""The handshake's time limit in these tests, in seconds."""

ACCEPTED = HandshakeOutcome.ACCEPTED
FAILED = HandshakeOutcome.FAILED
TIMED_OUT = HandshakeOutcome.TIMED_OUT
OVER_LIMIT = HandshakeOutcome.OVER_LIMIT
HANDLER_FAILED = HandshakeOutcome.HANDLER_FAILED


@pytest.fixture(scope="module")
def council(tmp_path_factory: pytest.TempPathFactory) -> Council:
    return Council(tmp_path_factory.mktemp("council"))


async def echo(stream: TlsStream, _: str) -> None:
    """Send everything back, for as long as there is something."""
    while True:
        await stream.send(await stream.receive())


@dataclass
class Porter:
    """A door that is served on loopback, and what it reported."""

    council: Council
    port: int
    door: Door
    scope: anyio.CancelScope
    seen: list[tuple[HandshakeOutcome, str, str]]

    @property
    def outcomes(self) -> list[HandshakeOutcome]:
        return [outcome for outcome, _, _ in self.seen]

    @property
    def peers(self) -> list[str]:
        return [peer for _, peer, _ in self.seen]

    @property
    def details(self) -> list[str]:
        return [detail for _, _, detail in self.seen]

    async def saw(self, *outcomes: HandshakeOutcome) -> None:
        """Wait until exactly these were reported, in this order."""
        with contextlib.suppress(TimeoutError), anyio.fail_after(20):
            while len(self.seen) < len(outcomes):  # noqa: ASYNC110 - the door has no event to wait for
                await anyio.sleep(0.005)
        assert self.outcomes == list(outcomes), self.seen

    async def serves(self, local: str = "127.0.0.1") -> None:
        """A good client gets its echo, soon."""
        with anyio.fail_after(20):
            raw = await anyio.connect_tcp("127.0.0.1", self.port, local_host=local)
            stream = await connect(raw, self.council.client)
            await stream.send(b"anybody there?")
            assert await stream.receive() == b"anybody there?"
            await stream.aclose()


@contextlib.asynccontextmanager
async def porter(
    council: Council,
    handler: Callable[[TlsStream, str], Awaitable[None]] = echo,
    *,
    context: Callable[[], ssl.SSLContext] | None = None,
    doors: Doors = HASTY,
    listeners: Sequence[SocketListener] | None = None,
) -> AsyncIterator[Porter]:
    listeners = listeners or await bind("127.0.0.1", 0, setting="--control-port")
    port = listeners[0].extra(SocketAttribute.local_port)
    seen: list[tuple[HandshakeOutcome, str, str]] = []
    door = Door(
        context or (lambda: council.server),
        handler,
        lambda *report: seen.append(report),
        lambda: doors,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(door.serve, listeners)
        yield Porter(council, port, door, tasks.cancel_scope, seen)
        tasks.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def seat(port: int, context: ssl.SSLContext) -> AsyncIterator[tuple[TlsStream, SocketStream]]:
    """Connect as a client that may misbehave; drop the connection in the end."""
    async with await anyio.connect_tcp("127.0.0.1", port) as raw:
        yield await connect(raw, context), raw


# The good case


async def test_an_authenticated_peer_is_handed_over_with_its_address_and_without_delay(
    council: Council,
) -> None:
    met: list[tuple[bytes | None, str, bool]] = []

    async def meet(stream: TlsStream, peer: str) -> None:
        met.append((stream.peer_der, peer, nodelay(stream._raw)))
        await stream.send(b"hello")

    async with porter(council, meet) as door, seat(door.port, council.client) as (stream, raw):
        assert await stream.receive() == b"hello"
        with pytest.raises(ChannelClosed):  # the handler has returned
            await stream.receive()
        peer = f"127.0.0.1:{raw.extra(SocketAttribute.local_port)}"
        assert met == [(council.alice.leaf(), peer, True)]
        await door.saw(ACCEPTED)
        assert door.peers == [peer]
        assert door.door.gate.inside == 0
        await stream.aclose()


async def test_peers_on_ipv6_and_unix_sockets_are_named(council: Council, tmp_path: Path) -> None:
    listeners = [
        *await bind("::1", 0, setting="--control-port"),
        await anyio.create_unix_listener(tmp_path / "arbiter.sock"),
    ]
    async with porter(council, listeners=listeners) as door:
        async with await anyio.connect_tcp("::1", door.port) as raw:
            port = raw.extra(SocketAttribute.local_port)
            await (await connect(raw, council.client)).aclose()
        async with await anyio.connect_unix(tmp_path / "arbiter.sock") as raw:
            stream = await connect(raw, council.client)
            await stream.send(b"hello")
            assert await stream.receive() == b"hello"
            await stream.aclose()
        await door.saw(ACCEPTED, ACCEPTED)
        assert door.peers == [f"[::1]:{port}", f"unix socket, uid {os.getuid()}, pid {os.getpid()}"]


async def test_no_session_ticket_reaches_a_client(council: Council) -> None:
    async with porter(council) as door, seat(door.port, council.client) as (stream, _):
        await stream.send(b"x")
        await stream.receive()
        session = stream._ssl.session
        assert session is not None
        assert not session.has_ticket


async def test_stopping_says_close_notify_to_everybody(council: Council) -> None:
    async with porter(council) as door, seat(door.port, council.client) as (stream, _):
        await door.saw(ACCEPTED)
        with anyio.CancelScope(shield=True):
            door.scope.cancel()
            with pytest.raises(ChannelClosed, match="the Arbiter closed the connection"):
                await stream.receive()
            await stream.aclose()
    with pytest.raises(OSError, match="All connection attempts failed"):
        await anyio.connect_tcp("127.0.0.1", door.port)


async def test_a_peer_that_left_before_it_was_looked_at_has_no_address() -> None:
    async with tcp() as (client_raw, server_raw):
        reset(client_raw)
        await client_raw.aclose()
        await anyio.sleep(0.01)
        assert _who(server_raw) == ("", "a peer already gone")


# Hostile peers, after each of which a good client is served


async def say(data: bytes, port: int) -> None:
    async with await anyio.connect_tcp("127.0.0.1", port) as raw:
        await raw.send(data)
        with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                await raw.receive()


async def plain_http(port: int, _: Council) -> None:
    await say(b"GET / HTTP/1.1\r\nHost: arbiter\r\n\r\n", port)


async def garbage(port: int, _: Council) -> None:
    await say(b"\x00\xff" * 5000, port)


async def huge_hello(port: int, _: Council) -> None:
    await say(b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + b"\x00" * 20_000, port)


async def leave_at_once(port: int, _: Council) -> None:
    await (await anyio.connect_tcp("127.0.0.1", port)).aclose()


async def reset_at_once(port: int, _: Council) -> None:
    async with await anyio.connect_tcp("127.0.0.1", port) as raw:
        reset(raw)


async def tls_1_2(port: int, council: Council) -> None:
    old = client_context(council.alice)
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with await anyio.connect_tcp("127.0.0.1", port) as raw:
        with pytest.raises(ChannelBroken, match="protocol version"):
            await connect(raw, old)


async def refused(port: int, context: ssl.SSLContext, said: str) -> None:
    async with seat(port, context) as (stream, _):
        with pytest.raises(ChannelBroken, match=said):
            await stream.receive()
        await stream.aclose()


async def no_certificate(port: int, council: Council) -> None:
    anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anonymous.load_verify_locations(council.alice.ca)
    await refused(port, anonymous, "certificate required")


async def expired(port: int, council: Council) -> None:
    old = issue_odd(council.root, start=-2 * DAY, seconds=DAY).write(council.folder / "expired")
    await refused(port, client_context(old), "certificate expired")


async def other_authority(port: int, council: Council) -> None:
    stranger = issue_odd(forge_root("elsewhere.local")).write(
        council.folder / "stranger", anchors=council.alice.ca.read_bytes()
    )
    await refused(port, client_context(stranger), "unknown CA")


@pytest.mark.parametrize(
    ("attack", "detail"),
    [
        (plain_http, "http request"),
        (garbage, "wrong version number"),
        (huge_hello, ""),
        (leave_at_once, "hung up during the TLS handshake"),
        (reset_at_once, "was lost: Connection reset by peer"),
        (tls_1_2, "unsupported protocol"),
        (no_certificate, "the client sent no certificate"),
        (expired, "certificate has expired"),
        (other_authority, "an authority that we do not trust issued it"),
    ],
)
async def test_who_does_not_authenticate_is_refused_and_the_next_one_served(
    council: Council, attack: Callable[[int, Council], Awaitable[None]], detail: str
) -> None:
    async with porter(council) as door:
        await attack(door.port, council)
        await door.saw(FAILED)
        assert detail in door.details[0]
        assert "Traceback" not in door.details[0]
        await door.serves()
        await door.saw(FAILED, ACCEPTED)


def stock_client(port: int, council: Council) -> str:
    """Connect without a certificate by the standard library's own sockets; return what it reads."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(council.alice.ca)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=5) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as stream,
    ):
        try:
            stream.recv(1)
        except ssl.SSLError as error:
            return str(error.reason)
    return "nothing"


async def test_a_client_of_another_make_reads_the_alert_too(council: Council) -> None:
    async with porter(council) as door:
        read = await anyio.to_thread.run_sync(stock_client, door.port, council)
        assert read == "TLSV13_ALERT_CERTIFICATE_REQUIRED"
        await door.serves()


async def silent(raw: SocketStream) -> None:
    with pytest.raises(anyio.EndOfStream):
        await raw.receive()


async def drip(raw: SocketStream) -> None:
    """Send a well-formed beginning one byte at a time, for as long as it is wanted."""
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500
    with contextlib.suppress(anyio.BrokenResourceError):
        for byte in hello:
            await raw.send(bytes([byte]))
            await anyio.sleep(HASTE / 10)


@pytest.mark.parametrize("dawdle", [silent, drip])
async def test_who_dawdles_is_closed_at_the_time_limit(
    council: Council, dawdle: Callable[[SocketStream], Awaitable[None]]
) -> None:
    async with porter(council) as door, await anyio.connect_tcp("127.0.0.1", door.port) as raw:
        began = anyio.current_time()
        await dawdle(raw)
        assert HASTE * 0.9 < anyio.current_time() - began < 12  # a drip would take 15
        await door.saw(TIMED_OUT)
        assert door.details[0] == "no handshake within 0.3 seconds"
        assert door.door.gate.inside == 0
        await door.serves()


async def cut(stream: TlsStream, raw: SocketStream) -> None:
    await raw.aclose()


async def reset_after(stream: TlsStream, raw: SocketStream) -> None:
    reset(raw)
    await raw.aclose()


async def garbage_after(stream: TlsStream, raw: SocketStream) -> None:
    await raw.send(GARBAGE_RECORD)
    with pytest.raises(ChannelBroken, match="the Arbiter refused the connection: bad record mac"):
        await stream.receive()


async def plain_text_after(stream: TlsStream, raw: SocketStream) -> None:
    await raw.send(b'{"type":"PING"}\n')
    with pytest.raises(ChannelBroken, match="the Arbiter refused the connection"):
        await stream.receive()


async def half_a_record_after(stream: TlsStream, raw: SocketStream) -> None:
    await raw.send(GARBAGE_RECORD[:20])
    await raw.aclose()


async def close_well(stream: TlsStream, raw: SocketStream) -> None:
    await stream.aclose()


@pytest.mark.parametrize(
    "end", [cut, reset_after, garbage_after, plain_text_after, half_a_record_after, close_well]
)
async def test_however_an_authenticated_peer_ends_only_its_own_connection_ends(
    council: Council, end: Callable[[TlsStream, SocketStream], Awaitable[None]]
) -> None:
    async with porter(council) as door, seat(door.port, council.client) as (bystander, _):
        async with seat(door.port, council.client) as (stream, raw):
            await stream.send(b"so far so good")
            await stream.receive()
            await end(stream, raw)
        await door.serves()
        await bystander.send(b"still here")
        assert await bystander.receive() == b"still here"
        await door.saw(ACCEPTED, ACCEPTED, ACCEPTED)  # no report of a failure: this is how connections end


async def test_a_client_that_never_reads_costs_its_own_connection_only(council: Council) -> None:
    given_up = anyio.Event()

    async def pour(stream: TlsStream, _: str) -> None:
        if await stream.receive() != b"pour":
            await stream.send(b"anybody there?")
            return
        with anyio.move_on_after(HASTE) as scope:
            while True:
                await stream.send(b"x" * 100_000)
        assert scope.cancelled_caught
        given_up.set()

    async with porter(council, pour) as door, seat(door.port, council.client) as (stream, _):
        await stream.send(b"pour")
        await door.serves()
        with anyio.fail_after(5):
            await given_up.wait()
        await door.serves()


# Limits


@contextlib.asynccontextmanager
async def half_open(port: int, count: int, local: str) -> AsyncIterator[list[SocketStream]]:
    """Open ``count`` connections from ``local`` that say nothing."""
    async with contextlib.AsyncExitStack() as stack:
        opened = []
        for _ in range(count):
            raw = await anyio.connect_tcp("127.0.0.1", port, local_host=local)
            opened.append(await stack.enter_async_context(raw))
        yield opened


async def test_a_crowd_of_half_open_connections_does_not_shut_others_out(council: Council) -> None:
    doors = Doors(handshakes=40, handshakes_per_address=20, handshake_seconds=HASTE)
    async with porter(council, doors=doors) as door, half_open(door.port, 200, "127.0.0.2"):
        assert door.door.gate.inside <= 20
        await door.serves("127.0.0.1")
        with anyio.fail_after(30):
            while len(door.seen) < 201:  # noqa: ASYNC110 - the door has no event to wait for
                await anyio.sleep(0.01)
        assert door.outcomes.count(ACCEPTED) == 1
        assert door.outcomes.count(TIMED_OUT) >= 20
        assert door.outcomes.count(OVER_LIMIT) + door.outcomes.count(TIMED_OUT) == 200
        assert "20 handshakes from 127.0.0.2 are under way already" in door.details
        await door.serves("127.0.0.2")


async def test_over_the_limit_of_all_a_connection_is_closed_at_once(council: Council) -> None:
    doors = Doors(handshakes=4, handshakes_per_address=2, handshake_seconds=40)
    async with porter(council, doors=doors) as door:
        async with half_open(door.port, 2, "127.0.0.2"), half_open(door.port, 2, "127.0.0.3"):
            async with await anyio.connect_tcp("127.0.0.1", door.port) as raw:
                began = anyio.current_time()
                with pytest.raises(ChannelBroken, match=r"hung up during the TLS handshake|was lost"):
                    await connect(raw, council.client)
                assert anyio.current_time() - began < 20, "it did not wait for a place"
            await door.saw(OVER_LIMIT)
        await door.saw(OVER_LIMIT, *[FAILED] * 4)
        await door.serves()
        await door.saw(OVER_LIMIT, *[FAILED] * 4, ACCEPTED)


async def test_connections_past_their_handshake_count_no_longer(council: Council) -> None:
    async with (
        porter(council, doors=Doors(handshakes=1, handshakes_per_address=1)) as door,
        seat(door.port, council.client),
        seat(door.port, council.client),
    ):
        await door.serves()
        assert door.outcomes == [ACCEPTED, ACCEPTED, ACCEPTED]


# Faults of our own


@pytest.mark.parametrize(
    "fault",
    [
        RuntimeError("a bug"),
        ExceptionGroup("from a task group", [ChannelBroken("lost"), RuntimeError("a bug")]),
    ],
)
async def test_a_handler_that_fails_is_reported_and_contained(council: Council, fault: Exception) -> None:
    async def fail(stream: TlsStream, _: str) -> None:
        if await stream.receive() == b"fail":
            raise fault
        await stream.send(b"anybody there?")

    async with porter(council, fail) as door, seat(door.port, council.client) as (stream, _):
        await stream.send(b"fail")
        with pytest.raises(ChannelClosed):
            await stream.receive()
        await stream.aclose()
        await door.saw(ACCEPTED, HANDLER_FAILED)
        assert "RuntimeError: a bug" in door.details[1]
        assert "ChannelBroken" not in door.details[1]
        await door.serves()


async def test_a_group_of_lost_connections_is_no_fault(council: Council) -> None:
    async def lose(stream: TlsStream, _: str) -> None:
        if await stream.receive() == b"lose":
            raise ExceptionGroup("from a task group", [ChannelBroken("lost"), ChannelClosed("gone")])
        await stream.send(b"anybody there?")

    async with porter(council, lose) as door:
        async with seat(door.port, council.client) as (stream, _):
            await stream.send(b"lose")
            with pytest.raises(ChannelClosed):
                await stream.receive()
            await stream.aclose()
        await door.serves()
        await door.saw(ACCEPTED, ACCEPTED)


async def test_a_context_that_may_not_be_used_refuses_and_a_bug_in_it_is_reported(council: Council) -> None:
    faults: list[Exception] = [UserError("the revocation list has expired"), RuntimeError("a bug")]

    def context() -> ssl.SSLContext:
        if faults:
            raise faults.pop(0)
        return council.server

    async with porter(council, context=context) as door:
        for _ in range(2):
            async with await anyio.connect_tcp("127.0.0.1", door.port) as raw:
                assert isinstance(await outcome(partial(connect, raw, council.client)), ChannelBroken)
        await door.saw(FAILED, HANDLER_FAILED)
        assert door.details[0] == "the revocation list has expired"
        assert door.door.gate.inside == 0
        await door.serves()


async def test_a_context_is_swapped_without_touching_who_is_there(council: Council) -> None:
    other = Council(council.folder / "other")
    current = council.server
    async with (
        porter(council, context=lambda: current) as door,
        seat(door.port, council.client) as (stream, _),
    ):
        current = server_context(
            issue_odd(other.root, usages=(SERVER_AUTH,)).write(council.folder / "renewed")
        )
        async with await anyio.connect_tcp("127.0.0.1", door.port) as raw:
            with pytest.raises(ChannelBroken, match="an authority that we do not trust issued it"):
                await connect(raw, council.client)
        await stream.send(b"still here")
        assert await stream.receive() == b"still here"
        current = council.server
        await door.serves()


async def test_an_observer_that_fails_closes_no_door(council: Council) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("the log is full")

    listeners = await bind("127.0.0.1", 0, setting="--control-port")
    port = listeners[0].extra(SocketAttribute.local_port)
    door = Door(lambda: council.server, echo, fail)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(door.serve, listeners)
        for _ in range(2):
            async with seat(port, council.client) as (stream, _):
                assert isinstance(await outcome(stream.receive), ChannelBroken)
        tasks.cancel_scope.cancel()
    assert door.gate.inside == 0


async def test_running_out_of_descriptors_pauses_accepting_and_no_more(
    council: Council, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "BACK_OFF_SECONDS", 0.02)
    async with porter(council) as door, seat(door.port, council.client) as (stream, _):
        await stream.send(b"x")
        await stream.receive()
        waiting = socket.socket()
        waiting.setblocking(False)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (waiting.fileno() + 1, hard))
        try:
            assert waiting.connect_ex(("127.0.0.1", door.port)) in (0, errno.EINPROGRESS)
            await door.saw(ACCEPTED, HandshakeOutcome.ACCEPT_FAILED)
            assert "Too many open files" in door.details[1]
            await anyio.sleep(0.1)
            assert 2 <= len(door.seen) <= 8  # it tries again, and not all the time
            await stream.send(b"still here")
            assert await stream.receive() == b"still here"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            waiting.close()
        with anyio.fail_after(20):
            await door.serves()


async def test_a_listener_that_is_closed_ends_its_loop_and_leaves_the_connections(
    council: Council, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "BACK_OFF_SECONDS", 0.01)
    listeners = await bind("127.0.0.1", 0, setting="--control-port")
    async with porter(council, listeners=listeners) as door, seat(door.port, council.client) as (stream, _):
        await listeners[0].aclose()
        await anyio.sleep(0.05)
        await stream.send(b"still here")
        assert await stream.receive() == b"still here"
        assert door.outcomes == [ACCEPTED]
        with pytest.raises(OSError, match="All connection attempts failed"):
            await anyio.connect_tcp("127.0.0.1", door.port)


# Binding


async def test_a_port_in_use_is_named_with_its_setting() -> None:
    (listener,) = await bind("127.0.0.1", 0, setting="--control-port")
    port = listener.extra(SocketAttribute.local_port)
    async with listener:
        with pytest.raises(UserError) as refusal:
            await bind("127.0.0.1", port, setting="--control-port")
    assert (
        refusal.value.message == f"cannot listen on 127.0.0.1:{port}: the port is in use by another program"
    )
    assert refusal.value.hint == "free the port, or set --control-port to another"


@pytest.mark.parametrize(
    ("host", "words"),
    [("192.0.2.1", "cannot assign requested address"), ("no-such-host.invalid", "name")],
)
async def test_an_address_that_is_not_ours_is_refused_in_words(host: str, words: str) -> None:
    with pytest.raises(UserError, match=f"cannot listen on {host}:9998: ") as refusal:
        await bind(host, 9998, setting="--control-port")
    assert words in refusal.value.message
