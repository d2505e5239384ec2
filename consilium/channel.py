"""One channel as both ends see it: typed messages over a TLS stream (§5.1), and how a client dials one.

1. A line that cannot be read ends the reading for good. The other direction still works, for the ERROR.
2. Message ids count up in the order in which the lines are sent.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import SocketAttribute

from consilium.codec import Line, encode
from consilium.errors import ChannelBroken, ChannelRefused, Objection, PeerError
from consilium.framing import MAX_LINE_BYTES, LineFramer
from consilium.messages import Message
from consilium.sockets import SERVER_NAME
from consilium.tls import TlsStream, client_context
from consilium.unixstream import connect_unix

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from anyio.abc import ByteStream

    from consilium.codec import Codec
    from consilium.credentials import Credentials

In = TypeVar("In", bound=Message)

DIAL_SECONDS = 10.0
"""How long a client tries to reach the Arbiter before it says that it cannot."""


KEEP_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 6),
)
"""After 30 s of silence, a sign of life that only TCP sees."""


class Channel(Generic[In]):
    """Messages of the types ``In`` come in, any message goes out. One task receives; any may send."""

    def __init__(
        self, stream: TlsStream, codec: Codec[In], *, prefix: str, limit: int = MAX_LINE_BYTES
    ) -> None:
        """``prefix`` begins this end's message ids; ``limit`` bounds a line that comes in, in bytes."""
        self._stream = stream
        self._codec = codec
        self._framer = LineFramer(limit)
        self._lines: deque[bytes] = deque()
        self._ids = (f"{prefix}-{number}" for number in count(1))
        self._refused = False

    @property
    def peer_der(self) -> bytes | None:
        """The peer's certificate, as TLS verified it."""
        return self._stream.peer_der

    @property
    def peer_chain(self) -> tuple[bytes, ...]:
        """The peer's certificate and those above it, as TLS verified them."""
        return self._stream.peer_chain

    def limit(self, size: int) -> None:
        """Bound a line that comes in to ``size`` bytes from now on; what came before stays."""
        self._framer.limit = size

    async def receive(self) -> Line[In]:
        """Return the next message.

        Raises `PeerError` for a line that breaks the rules, and `ChannelBroken` ever after; `ChannelError`
        when the connection ends.
        """
        if self._refused:
            raise ChannelBroken("nothing is read after a line that was refused")
        try:
            return self._codec.decode(await self._next_line())
        except PeerError:
            self._refused = True
            raise

    async def send(self, message: Message, *, in_reply_to: str | None = None) -> str:
        """Send one message; return its id. Raises `ChannelError`."""
        msg_id = next(self._ids)
        await self._stream.send(encode(message, msg_id, in_reply_to))
        return msg_id

    async def send_many(self, messages: Iterable[tuple[Message, str | None]]) -> list[str]:
        """Send messages, each with what it replies to, in one write; return their ids."""
        ids = []
        lines = []
        for message, in_reply_to in messages:
            ids.append(next(self._ids))
            lines.append(encode(message, ids[-1], in_reply_to))
        await self._stream.send(b"".join(lines))
        return ids

    async def aclose(self, seconds: float | None = None) -> None:
        """Close the connection in good order, within ``seconds``, as `TlsStream.aclose`. Raises nothing."""
        await self._stream.aclose(seconds)

    async def _next_line(self) -> bytes:
        if self._lines:
            # Lines that came together must not shut out everybody else's.
            await anyio.lowlevel.checkpoint()
        while not self._lines:
            self._lines.extend(self._framer.feed(await self._stream.receive()))
        return self._lines.popleft()


async def dial(
    host: str,
    port: int,
    context: Credentials | ssl.SSLContext,
    codec: Codec[In],
    *,
    prefix: str,
    server_name: str | None = None,
    timeout: float = DIAL_SECONDS,  # noqa: ASYNC109 - the refusal names it, which a caller's scope could not
    limit: int = MAX_LINE_BYTES,
) -> Channel[In]:
    """Connect to the Arbiter and authenticate it as ``server_name``, or else as ``host``.

    Raises `ChannelBroken` with one sentence that names host and port, `UserError` when the credentials
    cannot be used. The Arbiter may yet refuse our certificate: that shows at the first `receive`.
    """
    where = f"{host}:{port}" if ":" not in host else f"[{host}]:{port}"
    stream = await _reach(where, lambda: _connect_tcp(host, port), context, server_name or host, timeout)
    return Channel(stream, codec, prefix=prefix, limit=limit)


async def dial_path(
    path: Path,
    context: Credentials | ssl.SSLContext,
    codec: Codec[In],
    *,
    prefix: str,
    server_name: str | None = None,
    timeout: float = DIAL_SECONDS,  # noqa: ASYNC109 - as in `dial`
    limit: int = MAX_LINE_BYTES,
) -> Channel[In]:
    """Connect to the Arbiter's UNIX socket at ``path``; as `dial`, but a path is no name to authenticate.

    The Arbiter must be ``server_name``, or else `SERVER_NAME`.
    """
    name = server_name or SERVER_NAME
    stream = await _reach(str(path), lambda: connect_unix(path), context, name, timeout)
    return Channel(stream, codec, prefix=prefix, limit=limit)


async def _connect_tcp(host: str, port: int) -> ByteStream:
    stream = await anyio.connect_tcp(host, port)
    # A data connection is silent for as long as the others speak, and routers forget what is silent.
    for level, option, value in KEEP_ALIVE:
        stream.extra(SocketAttribute.raw_socket).setsockopt(level, option, value)
    return stream


async def _reach(
    where: str,
    connect: Callable[[], Awaitable[ByteStream]],
    context: Credentials | ssl.SSLContext,
    server_name: str,
    seconds: float,
) -> TlsStream:
    """Connect and authenticate. Raises `ChannelBroken`, which names ``where``."""
    if not isinstance(context, ssl.SSLContext):
        context = await anyio.to_thread.run_sync(client_context, context)
    with anyio.move_on_after(seconds) as scope:
        try:
            raw = await connect()
            return await TlsStream.handshake(raw, context, server_side=False, server_hostname=server_name)
        except (ChannelBroken, OSError, ValueError) as error:
            words = _words(error) if isinstance(error, OSError) else str(error)
            words = f"no connection to the Arbiter at {where}: {words}"
            if isinstance(error, ChannelRefused):
                raise ChannelRefused(words, error.objection) from error
            if isinstance(error, ValueError):  # no certificate could bear such a name
                raise ChannelRefused(words, Objection.PEER_NAME) from error
            raise ChannelBroken(words) from error
    assert scope.cancelled_caught
    raise ChannelBroken(f"the Arbiter at {where} did not answer within {seconds:g} seconds")


def system_error(error: BaseException) -> OSError | None:
    """Find the system's own error below what was made of it; of several addresses, the first one's."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, OSError) and cause.errno:
            return cause
        cause = cause.__cause__
    return None


def _words(error: OSError) -> str:
    found = system_error(error)
    if found is None or not found.errno:
        return str(error)
    # Name resolution counts below zero, and has its words in the error itself.
    return (os.strerror(found.errno) if found.errno > 0 else str(found.strerror)).lower()
