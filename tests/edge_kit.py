"""Loopback connections and a council's certificates for the tests of the TLS edge."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketListener
from certificates import SERVER_AUTH, forge_root, issue_odd
from cryptography import x509

from consilium.errors import ChannelClosed
from consilium.tls import CHUNK, TlsStream, client_context, server_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    from anyio.abc import SocketStream

    from consilium.credentials import Credentials

T = TypeVar("T")

HOSTS: list[x509.GeneralName] = [
    x509.DNSName("localhost"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
]
"""The names that a test's Arbiter has."""


class Council:
    """An authority, an Arbiter's certificate and a seat's, with a context for each end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = forge_root()
        self.arbiter = self.issue("arbiter", usages=(SERVER_AUTH,), names=HOSTS)
        self.alice = self.issue("alice")
        self.server = server_context(self.arbiter)
        self.client = client_context(self.alice)

    def issue(self, name: str, **odd: Any) -> Credentials:
        """Write a certificate of this council's authority; ``odd`` as for `issue_odd`."""
        return issue_odd(self.root, **odd).write(self.folder / name)


class Watched(ByteStream):
    """A stream that delivers at most ``size`` bytes at a time, and keeps what is sent through it."""

    def __init__(self, below: ByteStream, size: int = CHUNK) -> None:
        self.below = below
        self.size = size
        self.sent: list[bytes] = []
        self.closed = False

    async def receive(self, max_bytes: int = CHUNK) -> bytes:
        return await self.below.receive(min(max_bytes, self.size))

    async def send(self, item: bytes) -> None:
        self.sent.append(item)
        await self.below.send(item)

    async def send_eof(self) -> None:
        await self.below.send_eof()

    async def aclose(self) -> None:
        self.closed = True
        await self.below.aclose()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        return self.below.extra_attributes


@contextlib.asynccontextmanager
async def tcp() -> AsyncIterator[tuple[SocketStream, SocketStream]]:
    """Connect two ends over loopback: client, server. What a test leaves open is dropped."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listeners:
        (listener,) = listeners.listeners
        assert isinstance(listener, SocketListener)
        port = listener.extra(SocketAttribute.local_port)
        async with await anyio.connect_tcp("127.0.0.1", port) as client, await listener.accept() as server:
            yield client, server


@dataclass
class Ends:
    """Both ends of one authenticated connection, and the sockets below them."""

    client: TlsStream
    server: TlsStream
    client_raw: SocketStream
    server_raw: SocketStream
    client_wire: Watched
    server_wire: Watched


@contextlib.asynccontextmanager
async def tls(
    council: Council,
    *,
    client: ssl.SSLContext | None = None,
    server: ssl.SSLContext | None = None,
    size: int = CHUNK,
) -> AsyncIterator[Ends]:
    """Authenticate two ends over loopback; each receives at most ``size`` bytes at a time."""
    async with tcp() as (client_raw, server_raw):
        client_wire, server_wire = Watched(client_raw, size), Watched(server_raw, size)
        client_tls, server_tls = await gather(
            lambda: connect(client_wire, client or council.client),
            lambda: TlsStream.handshake(server_wire, server or council.server, server_side=True),
        )
        yield Ends(client_tls, server_tls, client_raw, server_raw, client_wire, server_wire)


async def connect(raw: ByteStream, context: ssl.SSLContext, name: str = "localhost") -> TlsStream:
    """Shake hands as a client."""
    return await TlsStream.handshake(raw, context, server_side=False, server_hostname=name)


async def gather(*functions: Callable[[], Awaitable[T]]) -> list[T]:
    """Run all at once; return their results in order."""
    results: dict[int, T] = {}

    async def run(index: int, function: Callable[[], Awaitable[T]]) -> None:
        results[index] = await function()

    async with anyio.create_task_group() as tasks:
        for index, function in enumerate(functions):
            tasks.start_soon(run, index, function)
    return [results[index] for index in range(len(functions))]


async def outcome(function: Callable[[], Awaitable[T]]) -> T | Exception:
    """Return what ``function`` returns, or what it raises."""
    try:
        return await function()
    except Exception as error:  # noqa: BLE001 - the test looks at it
        return error


async def drain(stream: TlsStream) -> bytes:
    """Return everything up to the peer's close_notify."""
    received = bytearray()
    with contextlib.suppress(ChannelClosed):
        while True:
            received += await stream.receive()
    return bytes(received)


def reset(stream: SocketStream) -> None:
    """Make the next close of ``stream`` a reset (RST)."""
    raw = stream.extra(SocketAttribute.raw_socket)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def nodelay(stream: ByteStream) -> bool:
    """Whether TCP_NODELAY is set below ``stream``."""
    raw = stream.extra(SocketAttribute.raw_socket)
    return bool(raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
