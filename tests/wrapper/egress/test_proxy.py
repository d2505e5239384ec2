"""The proxy over real sockets, with a real TLS server behind it: what gets through, and what never does."""

from __future__ import annotations

import ssl
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.abc import ByteStream, SocketAttribute, SocketListener
from anyio.streams.tls import TLSStream
from certificates import SERVER_AUTH, forge_root, issue_odd
from cryptography import x509
from egress_hellos import hello_for, real_hello

from wrapper.egress import proxy
from wrapper.egress.proxy import ACCESS_DENIED, CHUNK, OPENED, Bounds, Proxy
from wrapper.egress.request import HEAD_BYTES
from wrapper.egress.verdicts import Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from anyio.abc import SocketStream

pytestmark = pytest.mark.anyio

HOST, OTHER = "api.provider.test", "other.provider.test"
PUBLIC = "93.184.216.34"
CONNECT = f"CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
PATIENCE = 20.0


@dataclass
class Counted:
    """A tally that keeps what it is told."""

    outcomes: list[Outcome] = field(default_factory=list)
    open: int = 0
    carried_bytes: dict[str, int] = field(default_factory=lambda: {"out": 0, "in": 0})

    _told: anyio.Event = field(default_factory=anyio.Event)

    def judged(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self._tell()

    def opened(self, change: int) -> None:
        self.open += change
        self._tell()

    def _tell(self) -> None:
        self._told.set()
        self._told = anyio.Event()

    async def wait(self) -> None:
        """Return when something was told."""
        await self._told.wait()

    def carried(self, direction: str, count: int) -> None:
        self.carried_bytes[direction] += count


class Provider:
    """A TLS server behind the proxy, and the outside's names and addresses, as the proxy meets them."""

    def __init__(self, folder: Path) -> None:
        root = forge_root()
        names: list[x509.GeneralName] = [x509.DNSName(HOST), x509.DNSName(OTHER)]
        own = issue_odd(root, usages=(SERVER_AUTH,), names=names).write(folder / "provider")
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(own.cert, own.key)
        self.trust = ssl.create_default_context(cafile=str(own.ca))
        self.names: dict[str, list[Sequence[str]]] = {HOST: [[PUBLIC]]}
        self.asked: list[str] = []
        self.dialled: list[str] = []
        self.received = bytearray()
        self.port = 0
        self.down: set[str] = set()

    async def resolve(self, host: str) -> Sequence[str]:
        """The next answer for ``host``; the last one stays."""
        self.asked.append(host)
        answers = self.names.get(host)
        if answers is None:
            raise OSError(-2, "Name or service not known")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def dial(self, address: str, port: int) -> ByteStream:
        assert port == 443
        self.dialled.append(address)
        if address in self.down:
            raise OSError(111, "Connection refused")
        return Overheard(await anyio.connect_tcp("127.0.0.1", self.port), self.received)

    async def serve(self, raw: SocketStream) -> None:
        """Echo, over TLS, until the client has ended; then say goodbye."""
        try:
            tls = await TLSStream.wrap(
                raw, server_side=True, ssl_context=self.server, standard_compatible=False
            )
            async for chunk in tls:
                await tls.send(chunk)
            await tls.aclose()
        except (OSError, anyio.BrokenResourceError, anyio.EndOfStream):
            pass  # how clients leave
        finally:
            await anyio.aclose_forcefully(raw)


@dataclass
class Overheard(ByteStream):
    """What goes upstream is noted: this is what the outside gets to see."""

    below: SocketStream
    heard: bytearray

    async def receive(self, max_bytes: int = CHUNK) -> bytes:
        return await self.below.receive(max_bytes)

    async def send(self, item: bytes) -> None:
        self.heard += item
        await self.below.send(item)

    async def send_eof(self) -> None:
        await self.below.send_eof()

    async def aclose(self) -> None:
        await self.below.aclose()


@dataclass
class Scene:
    provider: Provider
    tally: Counted
    port: int

    async def connect(self) -> SocketStream:
        return await anyio.connect_tcp("127.0.0.1", self.port)

    async def judged(self, count: int = 1) -> Outcome:
        """The last outcome, once there are ``count``."""
        with anyio.fail_after(PATIENCE):
            while len(self.tally.outcomes) < count:
                await self.tally.wait()
        return self.tally.outcomes[-1]


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    return Provider(tmp_path)


@asynccontextmanager
async def scene(provider: Provider, bounds: Bounds | None = None) -> AsyncIterator[Scene]:
    """A proxy before ``provider``."""
    tally = Counted()
    made = Proxy({HOST}, tally, bounds=bounds, resolve=provider.resolve, dial=provider.dial)
    outside = (await anyio.create_tcp_listener(local_host="127.0.0.1")).listeners[0]
    inside = (await anyio.create_tcp_listener(local_host="127.0.0.1")).listeners[0]
    provider.port = outside.extra(SocketAttribute.local_port)
    assert isinstance(inside, SocketListener)
    async with outside, inside, anyio.create_task_group() as tasks:
        tasks.start_soon(outside.serve, provider.serve)
        tasks.start_soon(made.serve, inside)
        yield Scene(provider, tally, inside.extra(SocketAttribute.local_port))
        tasks.cancel_scope.cancel()


async def rest_of(stream: ByteStream) -> bytes:
    """All that comes until the other side ends."""
    said = b""
    with anyio.fail_after(PATIENCE):
        while True:
            try:
                said += await stream.receive()
            except anyio.EndOfStream:
                return said


async def said_to(there: Scene, sent: bytes) -> bytes:
    """All that the proxy answers to ``sent``."""
    async with await there.connect() as client:
        await client.send(sent)
        return await rest_of(client)


async def tunnelled(client: ByteStream) -> None:
    """Ask for the tunnel, and have it."""
    await client.send(CONNECT)
    with anyio.fail_after(PATIENCE):
        answer = b""
        while len(answer) < len(OPENED):
            answer += await client.receive()
    assert answer == OPENED


# --- allowed ---------------------------------------------------------------------------------------------


async def test_a_client_speaks_tls_with_the_host_through_the_tunnel(provider: Provider) -> None:
    async with scene(provider) as there, await there.connect() as client:
        await tunnelled(client)
        tls = await TLSStream.wrap(
            client, hostname=HOST, ssl_context=provider.trust, standard_compatible=False
        )
        text = bytes(range(256)) * 4000
        answer = b""
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(tls.send, text)
                while len(answer) < len(text):
                    answer += await tls.receive()
        assert answer == text
        await tls.aclose()
        assert there.tally.outcomes == [Outcome.ALLOWED]
        assert provider.dialled == [PUBLIC]
        assert min(there.tally.carried_bytes.values()) > len(text)


async def test_the_last_answer_arrives_after_the_client_has_ended(provider: Provider) -> None:
    async with scene(provider) as there, await there.connect() as client:
        await tunnelled(client)
        await client.send(real_hello(HOST))
        await client.send_eof()
        assert (await rest_of(client))[0] in (21, 22)  # TLS: the server's flight, or its alert
    with anyio.fail_after(PATIENCE):
        while there.tally.open:
            await there.tally.wait()


async def test_a_hello_that_comes_with_the_request(provider: Provider) -> None:
    async with scene(provider) as there, await there.connect() as client:
        await client.send(CONNECT + real_hello(HOST))
        assert (await there.judged()) is Outcome.ALLOWED
        assert provider.received.startswith(b"\x16\x03")


async def test_the_next_address_is_tried(provider: Provider) -> None:
    provider.names[HOST] = [["93.184.216.35", PUBLIC]]
    provider.down = {"93.184.216.35"}
    async with scene(provider) as there, await there.connect() as client:
        await tunnelled(client)
        assert provider.dialled == ["93.184.216.35", PUBLIC]


# --- refused before the tunnel ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "outcome", "status"),
    [
        (f"CONNECT {OTHER}:443 HTTP/1.1\r\n\r\n".encode(), Outcome.HOST, b"403"),
        (f"CONNECT {HOST}:22 HTTP/1.1\r\n\r\n".encode(), Outcome.PORT, b"403"),
        (f"GET http://{HOST}/ HTTP/1.1\r\n\r\n".encode(), Outcome.METHOD, b"405"),
        (b"CONNECT\r\n\r\n", Outcome.MALFORMED, b"400"),
        (CONNECT[:-2] + b"X: " + b"y" * HEAD_BYTES, Outcome.MALFORMED, b"400"),
        (b"\xff" * 2 * HEAD_BYTES, Outcome.MALFORMED, b"400"),
    ],
)
async def test_a_request_is_refused_with_its_reason(
    provider: Provider, sent: bytes, outcome: Outcome, status: bytes
) -> None:
    async with scene(provider) as there:
        answer = await said_to(there, sent)
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert answer.rpartition(b"\r\n\r\n")[2].startswith(b"consilium egress: ")
        assert there.tally.outcomes == [outcome]
        assert provider.asked == provider.dialled == []


@pytest.mark.parametrize(
    "addresses",
    [
        ["10.0.0.1"],
        ["127.0.0.1"],
        ["169.254.169.254"],
        ["::1"],
        ["::ffff:10.0.0.1"],
        [PUBLIC, "192.168.0.1"],
    ],
)
async def test_a_name_that_leads_inside_is_refused(provider: Provider, addresses: list[str]) -> None:
    provider.names[HOST] = [addresses]
    async with scene(provider) as there:
        assert (await said_to(there, CONNECT)).startswith(b"HTTP/1.1 403")
        assert there.tally.outcomes == [Outcome.ADDRESS]
        assert provider.dialled == []


async def test_a_name_that_changes_its_mind_is_asked_once(provider: Provider) -> None:
    """DNS rebinding: the address that was judged is the one that is dialled."""
    provider.names[HOST] = [[PUBLIC], ["127.0.0.1"]]
    async with scene(provider) as there, await there.connect() as client:
        await tunnelled(client)
        assert provider.asked == [HOST]
        assert provider.dialled == [PUBLIC]


async def test_a_name_without_an_address(provider: Provider) -> None:
    provider.names = {}
    async with scene(provider) as there:
        assert (await said_to(there, CONNECT)).startswith(b"HTTP/1.1 502")
        assert there.tally.outcomes == [Outcome.UNRESOLVED]


async def test_a_host_that_does_not_answer(provider: Provider) -> None:
    provider.down = {PUBLIC}
    async with scene(provider) as there:
        assert (await said_to(there, CONNECT)).startswith(b"HTTP/1.1 502")
        assert there.tally.outcomes == [Outcome.UNREACHABLE]


async def test_a_slow_request(provider: Provider) -> None:
    async with scene(provider, Bounds(head=0.2)) as there, await there.connect() as client:
        await client.send(CONNECT[:-1])
        assert (await rest_of(client)).startswith(b"HTTP/1.1 408")
        assert there.tally.outcomes == [Outcome.SLOW]


async def test_too_many_from_one_address(provider: Provider) -> None:
    async with (
        scene(provider, Bounds(per_address=1)) as there,
        await there.connect() as first,
    ):
        await tunnelled(first)
        assert (await said_to(there, CONNECT)).startswith(b"HTTP/1.1 503")
        assert there.tally.outcomes == [Outcome.CROWDED]


async def test_a_flood_is_closed_and_takes_nobody_s_place(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wrapper.egress.proxy.MOST_TURNED_AWAY", 0)
    async with scene(provider, Bounds(per_address=1)) as there:
        async with await there.connect() as first:
            await tunnelled(first)
            for _ in range(5):
                async with await there.connect() as crowding:
                    assert await rest_of(crowding) == b""
        assert there.tally.outcomes == [Outcome.CROWDED] * 5
        with anyio.fail_after(PATIENCE):
            while there.tally.open:
                await there.tally.wait()
        async with await there.connect() as later:
            await tunnelled(later)


async def test_too_many_in_all(provider: Provider) -> None:
    async with scene(provider, Bounds(connections=1)) as there, await there.connect() as first:
        await tunnelled(first)
        assert (await said_to(there, CONNECT)).startswith(b"HTTP/1.1 503")


# --- refused in the tunnel -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "outcome"),
    [
        (real_hello(OTHER), Outcome.OTHER_NAME),
        (hello_for(HOST.upper().encode()), Outcome.OTHER_NAME),
        (hello_for(f"{HOST}.".encode()), Outcome.OTHER_NAME),
        (hello_for(HOST.encode() + b"\0.evil.test"), Outcome.OTHER_NAME),
        (real_hello(None), Outcome.NO_NAME),
        (hello_for(HOST.encode(), OTHER.encode()), Outcome.NO_NAME),
        (CONNECT.replace(b"443", b"22"), Outcome.NOT_TLS),
        (b"GET / HTTP/1.1\r\n\r\n", Outcome.NOT_TLS),
        (b"SSH-2.0-x\r\n", Outcome.NOT_TLS),
    ],
)
async def test_nothing_but_the_right_hello_goes_upstream(
    provider: Provider, sent: bytes, outcome: Outcome
) -> None:
    async with scene(provider) as there:
        assert await said_to(there, CONNECT + sent) == OPENED + ACCESS_DENIED
        assert there.tally.outcomes == [outcome]
        assert provider.received == b""


async def test_a_slow_hello(provider: Provider) -> None:
    async with scene(provider, Bounds(head=0.2)) as there:
        assert await said_to(there, CONNECT + real_hello(HOST)[:-1]) == OPENED + ACCESS_DENIED
        assert there.tally.outcomes == [Outcome.SLOW]
        assert provider.received == b""


# --- bounds, and what others do --------------------------------------------------------------------------


async def test_an_idle_tunnel_ends(provider: Provider) -> None:
    async with scene(provider, Bounds(idle=0.3)) as there, await there.connect() as client:
        await client.send(CONNECT + real_hello(HOST))
        with suppress(anyio.BrokenResourceError):
            await rest_of(client)


async def test_a_host_that_breaks_off_ends_the_tunnel(provider: Provider) -> None:
    async with scene(provider) as there, await there.connect() as client:
        await tunnelled(client)
        await client.send(real_hello(HOST) + b"\x16\x03\x03\x00\x05wrong")
        assert (await there.judged()) is Outcome.ALLOWED
        await rest_of(client)


async def test_a_bug_ends_one_connection_alone(provider: Provider, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(host: str) -> Sequence[str]:
        raise RuntimeError(host)

    provider.resolve, kept = broken, provider.resolve  # type: ignore[method-assign]
    async with scene(provider) as there:
        assert await said_to(there, CONNECT) == b""
        assert "a bug in the egress proxy" in caplog.text
    provider.resolve = kept  # type: ignore[method-assign]
    async with scene(provider) as there, await there.connect() as client:
        await tunnelled(client)


async def test_a_flood_of_refusals_is_counted_and_not_told_line_by_line(
    provider: Provider, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "LOG_BURST", 5)
    request = f"CONNECT {OTHER}:443 HTTP/1.1\r\n\r\n".encode()
    async with scene(provider) as there:
        for _ in range(40):
            await said_to(there, request)
        told = [record for record in caplog.records if "refused (host)" in record.getMessage()]
        assert 5 <= len(told) < 20
        await anyio.sleep(1 / proxy.LOG_RATE)
        await said_to(there, request)
        assert there.tally.outcomes == [Outcome.HOST] * 41
    (last,) = [line for line in caplog.messages[-2:] if "only counted" in line]
    assert int(last.split()[1]) > 0


async def test_a_refusal_is_one_line_of_the_log(provider: Provider, caplog: pytest.LogCaptureFixture) -> None:
    async with scene(provider) as there:
        await said_to(there, b"CONNECT \x1b[31mevil\x1b[0m:443 HTTP/1.1\r\n\r\n")
        await said_to(there, f"CONNECT {OTHER}:443 HTTP/1.1\r\n\r\n".encode())
    lines = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert [line.partition(": ")[2][:17] for line in lines] == ["refused (malforme", "refused (host): o"]
    assert all(line.isprintable() for line in lines)
