"""The seat's two connections to the Arbiter (§4, §5.4, §5.5): dial, read, send, keep alive.

1. Whatever arrives or befalls goes into one inbox; nothing is decided here.
2. A heartbeat never gets as far as the inbox: PING is answered here, at once.
3. A connection that cannot be sent on is told as lost by the task that reads it, once.
4. A link is one attempt. Whoever wants another makes another: this one tells nothing after it was dropped.
"""

from __future__ import annotations

import errno
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import anyio

from consilium.channel import DIAL_SECONDS, dial, dial_path, system_error
from consilium.codec import Codec
from consilium.conversation import SILENT_INTERVALS, Beat, Heartbeat
from consilium.errors import ChannelError, ChannelRefused, PeerError
from consilium.framing import MAX_ARBITER_LINE_BYTES
from consilium.messages import ControlToSeat, DataToSeat, Message, Ping, Pong
from consilium.sockets import socket_path
from wrapper.events import (
    ControlOpened,
    DataOpened,
    FromControl,
    FromData,
    LinkLost,
    LinkRefused,
    PeerFaulted,
    SeatEvent,
)

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from anyio.abc import TaskGroup

    from consilium.channel import Channel
    from consilium.codec import Line

In = TypeVar("In", bound=Message)

SEND_SECONDS = 5.0
"""How long the Arbiter may leave a message unread before the connection counts as lost."""

PARTING_SECONDS = 2.0
"""How long the control connection may outlive the data connection, to say why it ended."""


_OBSTACLES = {
    errno.ECONNREFUSED: "Nobody listens on that port: is the Arbiter running, and open to other machines?",
    errno.ECONNRESET: "Something took the connection and dropped it: is there an Arbiter behind it?",
    errno.EHOSTUNREACH: "This machine finds no way there: is it on the right network, or VPN?",
    errno.ENETUNREACH: "This machine finds no way there: is it on the right network, or VPN?",
    errno.ENOENT: "There is no such socket: is the Arbiter running, and is this its folder?",
}
_NO_NAME = "The name leads nowhere: check how it is spelt, and the name server of this machine"
_NO_ANSWER = "No answer at all: does a firewall keep the port, or is the address another one now?"


def obstacle(error: BaseException) -> str:
    """What may help against ``error``, for which no connection came about; empty if nothing is known."""
    found = system_error(error)
    if isinstance(found, socket.gaierror):
        return _NO_NAME
    if found is not None and found.errno:
        return _OBSTACLES.get(found.errno, "")
    return _NO_ANSWER if error.__cause__ is None else ""


class Inbox(Protocol):
    """Where a link posts what happens to it."""

    async def send(self, item: SeatEvent) -> None:
        """Post one event; wait while the inbox is full."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the Arbiter listens: ``host`` and ports, or the folder ``sockets`` where there is one.

    Its certificate must bear ``server_name``; None is the host, or `consilium.sockets.SERVER_NAME`.
    """

    host: str
    control_port: int
    data_port: int
    sockets: Path | None = None
    server_name: str | None = None


class _Wire(Generic[In]):
    """One of the two connections, from its dialling to its end."""

    def __init__(self, name: str, codec: Codec[In]) -> None:
        self.name = name
        self._codec = codec
        self._channel: Channel[In] | None = None
        self._heard = False
        self._given_up = ""

    async def dial(self, at: Address, context: ssl.SSLContext, *, within: float) -> None:
        """Connect. Raises `ChannelBroken`."""
        how: dict[str, Any] = {
            "prefix": self.name[0],
            "server_name": at.server_name,
            "timeout": within,
            "limit": MAX_ARBITER_LINE_BYTES,
        }
        if at.sockets is not None:
            path = socket_path(at.sockets, self.name)
            self._channel = await dial_path(path, context, self._codec, **how)
        else:
            port = at.control_port if self.name == "control" else at.data_port
            self._channel = await dial(at.host, port, context, self._codec, **how)

    async def receive(self) -> Line[In]:
        """Return the next message. Raises `PeerError` or `ChannelError`; `ending` says what that means."""
        assert self._channel is not None
        line = await self._channel.receive()
        self._heard = True
        return line

    async def send(self, message: Message, *, in_reply_to: str | None = None) -> None:
        """Send, or give the connection up: the task that reads it ends then, and tells why."""
        if self._channel is None or self._given_up:
            return
        try:
            with anyio.fail_after(SEND_SECONDS):
                await self._channel.send(message, in_reply_to=in_reply_to)
        except ChannelError as error:
            # Not closed here: what the Arbiter said last may still be waiting to be read.
            self._given_up = str(error)
        except TimeoutError:
            self._given_up = f"the Arbiter has read nothing for {SEND_SECONDS:g} seconds"
            await self.aclose()

    def ending(self, error: PeerError | ChannelError) -> LinkRefused | LinkLost | PeerFaulted:
        """Say what ``error``, which `dial` or `receive` raised, means for the seat."""
        if isinstance(error, PeerError):
            return PeerFaulted(f"on the {self.name} channel: {error.message}")
        # TLS 1.3 lets a client finish its handshake and write before it learns that it is refused.
        if isinstance(error, ChannelRefused) and not self._heard:
            return LinkRefused(str(error), error.objection)
        if self._channel is None:
            return LinkLost(str(error), obstacle(error))
        return LinkLost(f"the {self.name} connection is lost: {self._given_up or error}")

    async def aclose(self) -> None:
        """Close in good order. Bounded, and raises nothing."""
        if self._channel is not None:
            await self._channel.aclose()


class Link:
    """Both connections of one session, from the dialling to `drop`, and no longer.

    `run` is a task, `drop` and the rest are calls.
    """

    def __init__(self, address: Address, context: ssl.SSLContext, inbox: Inbox) -> None:
        self._address = address
        self._context = context
        self._inbox = inbox
        self._control: _Wire[ControlToSeat] = _Wire("control", Codec(ControlToSeat))
        self._data: _Wire[DataToSeat] = _Wire("data", Codec(DataToSeat))
        self._heart: Heartbeat | None = None
        self._life = anyio.CancelScope()
        self._tasks: TaskGroup | None = None

    async def run(self, wait: float, within: float) -> None:
        """Wait so many seconds, then connect the control channel and read it, until `drop`."""
        with self._life:
            await anyio.sleep(wait)
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self.control, within)
                await anyio.sleep_forever()
        await self.aclose()

    def bind(self, heartbeat: float) -> None:
        """Registered: beat every ``heartbeat`` seconds, and connect the data channel too."""
        assert self._tasks is not None, "nobody registers on a link that does not run"
        self._tasks.start_soon(self.heartbeat, heartbeat)
        self._tasks.start_soon(self.data)

    def drop(self) -> None:
        """End it, whatever it is doing."""
        self._life.cancel()

    async def control(self, within: float) -> None:
        """Connect, within so many seconds, and read until the end."""
        try:
            await self._control.dial(self._address, self._context, within=within)
            await self._inbox.send(ControlOpened())
            while True:
                await self._hear(await self._control.receive())
        except (PeerError, ChannelError) as error:
            await self._inbox.send(self._control.ending(error))

    async def data(self) -> None:
        """Connect the data channel, and read until the end."""
        try:
            await self._data.dial(self._address, self._context, within=DIAL_SECONDS)
            await self._inbox.send(DataOpened())
            while True:
                line = await self._data.receive()
                await self._inbox.send(FromData(line.message))
        except (PeerError, ChannelError) as error:
            ending = self._data.ending(error)
            if isinstance(ending, LinkLost):
                # At the end of a debate this connection may close before DEBATE_ENDED has come on the other,
                # for which the Arbiter waits until we have closed our end of this one.
                await self._data.aclose()
                await anyio.sleep(PARTING_SECONDS)
            await self._inbox.send(ending)

    async def heartbeat(self, interval: float) -> None:
        """Send a PING every ``interval`` seconds; tell it when the Arbiter has been silent for too long."""
        heart = self._heart = Heartbeat(interval, anyio.current_time())
        beat = Beat.WAIT
        while beat is not Beat.LOST:
            await anyio.sleep_until(heart.next_at)
            beat = heart.tick(anyio.current_time())
            if beat is Beat.PING:
                await self.send_control(Ping(ts=time.time_ns() // 1_000_000))
        silence = f"the Arbiter has been silent for {SILENT_INTERVALS * interval:g} seconds"
        await self._inbox.send(LinkLost(f"the control connection is lost: {silence}"))

    async def send_control(self, message: Message) -> None:
        """Send on the control channel. Raises nothing (rule 3)."""
        await self._control.send(message)

    async def send_data(self, message: Message) -> None:
        """Send on the data channel. Raises nothing (rule 3)."""
        await self._data.send(message)

    async def aclose(self) -> None:
        """Close both connections in good order. Bounded, and raises nothing."""
        async with anyio.create_task_group() as closing:
            closing.start_soon(self._control.aclose)
            closing.start_soon(self._data.aclose)

    async def _hear(self, line: Line[ControlToSeat]) -> None:
        if self._heart is not None:
            self._heart.heard(anyio.current_time())
        if isinstance(line.message, Ping):
            await self._control.send(Pong(ts=line.message.ts), in_reply_to=line.msg_id)
        elif not isinstance(line.message, Pong):
            await self._inbox.send(FromControl(line.message))
