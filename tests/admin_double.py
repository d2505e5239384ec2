"""A scripted Arbiter's administrative port, over real TLS on loopback, that can go away and come back.

desk = await stack.enter_async_context(admin_double(council.server))
peer = await desk.accept()
await peer.serve(records, from_seq=0)
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import orjson
from anyio.abc import SocketAttribute, SocketListener
from arbiter_double import HOST, PATIENCE, Peer

from consilium import messages as m
from consilium.channel import Channel
from consilium.codec import Codec
from consilium.errors import ChannelError
from consilium.records import GENESIS, AnyEntry, digest, seal, timestamp
from consilium.tls import TlsStream

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Iterable

    from anyio.abc import TaskGroup

START = 1_790_000_000.0


def stored(entries: Iterable[AnyEntry]) -> list[dict[str, Any]]:
    """Entries as the records of one transcript."""
    records, last = [], GENESIS
    for seq, entry in enumerate(entries):
        line = seal(entry, seq=seq, prev=last, ts=timestamp(START + seq))
        last = digest(line)
        records.append(orjson.loads(line))
    return records


class Desk:
    """Listens; a test accepts each connection and says what is said on it."""

    def __init__(self, context: ssl.SSLContext, tasks: TaskGroup) -> None:
        self.port = 0
        self._context = context
        self._tasks = tasks
        self._listener: SocketListener | None = None
        self._arrived = anyio.create_memory_object_stream[Peer[Any]](16)
        self._peers: list[Peer[Any]] = []

    async def opens(self) -> None:
        """Listen: on any free port at first, and ever after on the same one."""
        made = await anyio.create_tcp_listener(local_host=HOST, local_port=self.port)
        (listener,) = made.listeners
        assert isinstance(listener, SocketListener)
        self._listener = listener
        self.port = listener.extra(SocketAttribute.local_port)
        self._tasks.start_soon(self._accept, listener)

    async def closes(self) -> None:
        """Stop to listen; connections stay."""
        if self._listener is not None:
            await self._listener.aclose()

    async def accept(self) -> Peer[Any]:
        """The next connection."""
        with anyio.fail_after(PATIENCE):
            return await self._arrived[1].receive()

    async def serves(self, records: list[dict[str, Any]], *, from_seq: int = 0) -> Peer[Any]:
        """Accept a connection that watches from ``from_seq``, and send it what there is."""
        peer = await self.accept()
        line = await peer.line()
        assert line.message == m.Watch(from_seq=from_seq), line.message
        await peer.say(m.AdminOk(operation="WATCH"), in_reply_to=line.msg_id)
        for record in records[from_seq:]:
            await peer.say(m.Record(record=record), in_reply_to=line.msg_id)
        return peer

    async def refuses(self, code: str, message: str) -> Peer[Any]:
        """Accept a connection and refuse the first thing that it asks for."""
        peer = await self.accept()
        line = await peer.line()
        await peer.say(m.Error(code=code, message=message), in_reply_to=line.msg_id)
        return peer

    async def reports(self, status: m.Status) -> Peer[Any]:
        """Accept a connection that asks for STATUS, and answer."""
        peer = await self.accept()
        line = await peer.line()
        assert line.message == m.StatusRequest()
        await peer.say(status, in_reply_to=line.msg_id)
        return peer

    async def _accept(self, listener: SocketListener) -> None:
        while True:
            try:
                raw = await listener.accept()
            except anyio.ClosedResourceError:
                return
            try:
                stream = await TlsStream.handshake(raw, self._context, server_side=True)
            except ChannelError:
                continue
            codec: Codec[Any] = Codec(m.AdminFromOperator)
            peer: Peer[Any] = Peer(Channel(stream, codec, prefix="a"), stream, raw)
            self._peers.append(peer)
            await self._arrived[0].send(peer)

    async def aclose(self) -> None:
        """Leave nothing open."""
        await self.closes()
        for peer in self._peers:
            await peer.cut()
        for end in self._arrived:
            end.close()


@asynccontextmanager
async def admin_double(context: ssl.SSLContext) -> AsyncIterator[Desk]:
    """Listen on a free port of loopback until the block ends."""
    async with anyio.create_task_group() as tasks:
        desk = Desk(context, tasks)
        await desk.opens()
        try:
            yield desk
        finally:
            with anyio.CancelScope(shield=True):
                await desk.aclose()
            tasks.cancel_scope.cancel()
