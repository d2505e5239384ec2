"""The door of one port: accept, authenticate, hand over (§4, architecture decision 2).

1. A connection's failure of any kind, in the handshake, in its handler or in closing, ends that connection
   and nothing else. A failure to accept pauses the accepting and nothing else.
2. A peer that has not authenticated itself gets a bounded place for a bounded time. Over the bound it is
   closed at once, without a TLS byte: in a waiting line the silent would crowd out the honest.
3. The TLS context and the limits are asked for anew for every connection: to swap them is to reload them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import traceback
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import anyio
from anyio.abc import SocketAttribute, SocketListener

from arbiter.edge.accepting import Listener
from arbiter.edge.limits import Doors, HandshakeGate
from arbiter.edge.tcp import TcpStream
from consilium.errors import ChannelError, ConsiliumError, UserError
from consilium.tls import TlsStream

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Sequence

    from anyio.abc import SocketStream, TaskGroup

BACK_OFF_SECONDS = 0.2
"""How long accepting pauses after it failed: out of descriptors, most likely, until somebody leaves."""


_CREDENTIALS = struct.Struct("iII")
"""What Linux says of the peer of a UNIX socket: process, user, group."""


class HandshakeOutcome(StrEnum):
    """What became of a connection, for logs and metrics."""

    ACCEPTED = "accepted"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    OVER_LIMIT = "over_limit"
    ACCEPT_FAILED = "accept_failed"
    HANDLER_FAILED = "handler_failed"


async def bind(host: str, port: int, *, setting: str) -> Sequence[SocketListener]:
    """Listen on ``host`` and ``port`` (0: any free one). ``setting`` is the name under which the port is set.

    Raises `UserError`, which names both.
    """
    try:
        listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    except OSError as error:
        raise UserError(
            f"cannot listen on {host}:{port}: {_words(error)}",
            hint=f"free the port, or set {setting} to another",
        ) from error
    return [Listener(each.extra(SocketAttribute.raw_socket), TcpStream) for each in listener.listeners]


def _words(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the port is in use by another program"
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return (error.strerror or str(error)).lower()


@dataclass(frozen=True, slots=True)
class Door:
    """Everything that one port needs to serve its connections.

    ``handler`` gets an authenticated stream and the peer's address for people; the stream is closed when it
    returns. ``observe`` is told outcome, peer and one sentence (for HANDLER_FAILED, the traceback); it must
    not block.
    """

    context: Callable[[], ssl.SSLContext]
    handler: Callable[[TlsStream, str], Awaitable[None]]
    observe: Callable[[HandshakeOutcome, str, str], None]
    limits: Callable[[], Doors] = Doors
    gate: HandshakeGate = field(default_factory=HandshakeGate)

    async def serve(self, listeners: Sequence[SocketListener]) -> None:
        """Serve until cancelled; then close the listeners. A listener that somebody closes just ends."""
        try:
            async with anyio.create_task_group() as connections:
                for listener in listeners:
                    connections.start_soon(self._accept, listener, connections)
        finally:
            with anyio.CancelScope(shield=True):
                for listener in listeners:
                    await listener.aclose()

    async def _accept(self, listener: SocketListener, connections: TaskGroup) -> None:
        while True:
            try:
                raw = await listener.accept()
            except anyio.ClosedResourceError:
                return
            except Exception as error:  # noqa: BLE001 - rule 1: whatever it is, the door stays open
                self._report(HandshakeOutcome.ACCEPT_FAILED, "", str(error))
                await anyio.sleep(BACK_OFF_SECONDS)
            else:
                connections.start_soon(self._contain, raw)

    async def _contain(self, raw: SocketStream) -> None:
        address, peer = _who(raw)
        stream = None
        try:
            stream = await self._admit(raw, address, peer)
            if stream is not None:
                await self._hand_over(stream, peer)
        except Exception:  # noqa: BLE001 - rule 1: a bug in one session is reported, and ends that session
            self._report(HandshakeOutcome.HANDLER_FAILED, peer, traceback.format_exc())
        finally:
            if stream is None:  # else it has closed what it stands on
                with contextlib.suppress(Exception):
                    await anyio.aclose_forcefully(raw)

    async def _admit(self, raw: SocketStream, address: str, peer: str) -> TlsStream | None:
        limits = self.limits()
        full = self.gate.enter(address, limits)
        if full is not None:
            self.observe(HandshakeOutcome.OVER_LIMIT, peer, full)
            return None
        stream = None
        try:
            with anyio.move_on_after(limits.handshake_seconds):
                stream = await TlsStream.handshake(raw, self.context(), server_side=True)
        except ConsiliumError as error:
            # The peer's failure, or ours to have a context that may be used: both refuse.
            self.observe(HandshakeOutcome.FAILED, peer, str(error))
            return None
        finally:
            self.gate.leave(address)
        if stream is None:
            spent = f"no handshake within {limits.handshake_seconds:g} seconds"
            self.observe(HandshakeOutcome.TIMED_OUT, peer, spent)
        else:
            self.observe(HandshakeOutcome.ACCEPTED, peer, "")
        return stream

    async def _hand_over(self, stream: TlsStream, peer: str) -> None:
        try:
            await self.handler(stream, peer)
        except* ChannelError:
            pass  # how connections end; the handler had nothing to add
        finally:
            await stream.aclose()

    def _report(self, outcome: HandshakeOutcome, peer: str, detail: str) -> None:
        # An observer that fails may not take the door down with it.
        with contextlib.suppress(Exception):
            self.observe(outcome, peer, detail)


def _who(raw: SocketStream) -> tuple[str, str]:
    """Return the address that limits count by, and the same with its port for people.

    On a UNIX socket that is the peer's user, as the kernel vouches for it: no program of one user can take
    the handshakes of another's.
    """
    remote = raw.extra(SocketAttribute.remote_address, None)
    if remote is None:
        return "", "a peer already gone"
    if raw.extra(SocketAttribute.family) == socket.AF_UNIX:
        below: socket.socket = raw.extra(SocketAttribute.raw_socket)
        pid, uid, _ = _CREDENTIALS.unpack(
            below.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        return f"uid {uid}", f"unix socket, uid {uid}, pid {pid}"
    host, port = str(remote[0]), remote[1]
    return host, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
