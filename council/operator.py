"""The operator's side of the administrative channel (§3.3.D, §4.3): ask, and watch the record grow.

One task reads the connection; it hands each reply to whoever asked, and each record to the one watcher. When
the connection ends, every one of them is told why.
"""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from consilium.channel import Channel, dial, dial_path
from consilium.codec import Codec, Line
from consilium.errors import ChannelClosed, ConsiliumError, ErrorCode, PeerError
from consilium.framing import MAX_ARBITER_LINE_BYTES
from consilium.messages import (
    AdminOk,
    AdminToOperator,
    Error,
    Message,
    Ping,
    Pong,
    Record,
    Status,
    Watch,
)
from council.causes import first_cause

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator
    from pathlib import Path

    from consilium.credentials import Credentials

Reply = AdminOk | Status

_CODEC: Codec[Any] = Codec(AdminToOperator)
_OURS: dict[str, Any] = {"prefix": "op", "limit": MAX_ARBITER_LINE_BYTES}


class Operator:
    """An authenticated operator's connection. Make one with `connect`."""

    def __init__(self, channel: Channel[Any]) -> None:
        self._channel = channel
        self._replies: dict[str, Reply | PeerError] = {}
        self._replied = anyio.Event()
        self._ended: ConsiliumError | None = None
        # Without a bound: a watcher that asks something in between must not hold up its own reply. What
        # can pile up is one debate's record.
        self._record_in, self._record_out = anyio.create_memory_object_stream[dict[str, Any]](math.inf)

    async def request(self, message: Message) -> Reply:
        """Send one operation and return its reply.

        Raises `PeerError` when the Arbiter refuses it, `ChannelError` when the connection ends first.
        """
        msg_id = await self._channel.send(message)
        while msg_id not in self._replies:
            if self._ended is not None:
                raise self._ended
            await self._replied.wait()
        reply = self._replies.pop(msg_id)
        if isinstance(reply, PeerError):
            raise reply
        return reply

    async def watch(self, from_seq: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Yield the record from ``from_seq`` on, and each new entry as it is written. Call it once.

        Ends when the Arbiter closes the connection in good order; raises like `request` otherwise.
        """
        await self.request(Watch(from_seq=from_seq))
        async for record in self._record_out:
            yield record
        if self._ended is not None and not isinstance(self._ended, ChannelClosed):
            raise self._ended

    async def read(self) -> None:
        """Read until the connection ends. `connect` runs this beside its body."""
        try:
            while True:
                await self._take(await self._channel.receive())
        except ConsiliumError as error:
            self._ended = error
        finally:
            self._wake()
            self._record_in.close()

    async def _take(self, line: Line[Any]) -> None:
        match line.message:
            case Record(record=record):
                self._record_in.send_nowait(record)
            case Ping(ts=ts):
                await self._channel.send(Pong(ts=ts), in_reply_to=line.msg_id)
            case Error() as error:
                refusal = PeerError(_code(error.code), error.message, in_reply_to=line.in_reply_to)
                if line.in_reply_to is None:
                    raise refusal
                self._settle(line.in_reply_to, refusal)
            case AdminOk() | Status() as reply if line.in_reply_to is not None:
                self._settle(line.in_reply_to, reply)

    def _settle(self, msg_id: str, reply: Reply | PeerError) -> None:
        self._replies[msg_id] = reply
        self._wake()

    def _wake(self) -> None:
        self._replied.set()
        self._replied = anyio.Event()

    def close_records(self) -> None:
        """Close both ends of the watch."""
        self._record_in.close()
        self._record_out.close()


@asynccontextmanager
async def connect(
    host: str,
    port: int,
    credentials: Credentials | ssl.SSLContext,
    *,
    server_name: str | None = None,
) -> AsyncIterator[Operator]:
    """Connect to the Arbiter's administrative endpoint as its operator.

    Raises `ChannelBroken` when it cannot be reached. A certificate that is no operator's shows at the first
    `Operator.request`.
    """
    channel = await dial(host, port, credentials, _CODEC, server_name=server_name, **_OURS)
    async with _held(channel) as operator:
        yield operator


@asynccontextmanager
async def connect_path(
    path: Path, credentials: Credentials | ssl.SSLContext, *, server_name: str | None = None
) -> AsyncIterator[Operator]:
    """As `connect`, to the Arbiter's UNIX socket at ``path``."""
    channel = await dial_path(path, credentials, _CODEC, server_name=server_name, **_OURS)
    async with _held(channel) as operator:
        yield operator


@asynccontextmanager
async def _held(channel: Channel[Any]) -> AsyncIterator[Operator]:
    operator = Operator(channel)
    try:
        with first_cause():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(operator.read)
                yield operator
                tasks.cancel_scope.cancel()
    finally:
        operator.close_records()
        with anyio.CancelScope(shield=True):
            await channel.aclose()


def _code(word: str) -> ErrorCode:
    """The code as we know it; one of a later version is a refusal all the same."""
    try:
        return ErrorCode(word)
    except ValueError:
        return ErrorCode.POLICY_DENIED
