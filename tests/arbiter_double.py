"""A scripted Arbiter, over real TLS on loopback: a test says line by line what it hears and what it says."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
from anyio.abc import SocketAttribute, SocketListener

from consilium import messages as m
from consilium.channel import Channel
from consilium.codec import Codec
from consilium.errors import ChannelClosed, ChannelError, ErrorCode
from consilium.tls import TlsStream
from wrapper.link import Address

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from anyio.abc import SocketStream
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from consilium.codec import Line

In = TypeVar("In", bound=m.Message)
Kind = TypeVar("Kind", bound=m.Message)

HOST = "127.0.0.1"
PATIENCE = 20.0
"""Seconds that a test waits for the seat before it fails."""

TOPIC = "Wrap it or rewrite it?"


class Peer(Generic[In]):
    """One connection of the seat, as the Arbiter sees it."""

    def __init__(self, channel: Channel[In], stream: TlsStream, raw: SocketStream) -> None:
        self.channel = channel
        self.stream = stream
        self._raw = raw

    async def line(self) -> Line[In]:
        """The next line, heartbeats included."""
        with anyio.fail_after(PATIENCE):
            return await self.channel.receive()

    async def hear(self, kind: type[Kind]) -> Kind:
        """The next message that is no heartbeat, which must be of ``kind``."""
        while True:
            message = (await self.line()).message
            if not isinstance(message, m.Ping | m.Pong):
                assert isinstance(message, kind), f"heard {message!r}, expected {kind.__name__}"
                return message

    async def hears_nothing(self, seconds: float = 0.2) -> bool:
        """Whether the seat stays silent for so long, heartbeats apart."""
        with anyio.move_on_after(seconds):
            while isinstance((await self.channel.receive()).message, m.Ping | m.Pong):
                pass
            return False
        return True

    async def hears_the_end(self) -> None:
        """The seat closes the connection in good order, without another word."""
        try:
            said = await self.hear(m.Message)
        except ChannelClosed:
            return
        raise AssertionError(f"the seat said {said!r} before it closed the connection")

    async def say(self, *said: m.Message, in_reply_to: str | None = None) -> None:
        """Send messages in one write."""
        await self.channel.send_many((message, in_reply_to) for message in said)

    async def say_bytes(self, data: bytes) -> None:
        """Send what no Arbiter sends."""
        await self.stream.send(data)

    async def close(self) -> None:
        """Close in good order."""
        await self.channel.aclose()

    async def cut(self) -> None:
        """Die: close the connection without a word."""
        await anyio.aclose_forcefully(self._raw)


@dataclass(frozen=True, slots=True)
class Seated:
    """The two connections of a seat that has taken its place."""

    control: Peer[Any]
    data: Peer[Any]
    reg: m.Reg

    async def assign(self, turn_id: int, *delta: m.DeltaEntry, deadline_ms: int = 60_000) -> None:
        """Give the seat a turn, CONTEXT and all, and hear its ACK."""
        await self.data.say(context(turn_id, *delta))
        await self.control.say(start(turn_id, deadline_ms))
        assert (await self.control.hear(m.Ack)).turn_id == turn_id

    async def finish_after(self, *kinds: type[m.Message]) -> None:
        """Hear these on the control channel, in this order; then end the debate."""
        for kind in kinds:
            await self.control.hear(kind)
        await self.finish()

    async def finish(self) -> None:
        """End the debate, as the Arbiter does."""
        await self.control.say(m.DebateEnded(outcome=m.DebateState.FINISHED, cap=None, turn_counter=1))
        await self.control.hears_the_end()


class ArbiterDouble:
    """Listens for seats; a test accepts their connections one by one."""

    def __init__(
        self, control: SocketListener, data: SocketListener, context: ssl.SSLContext, host: str = HOST
    ) -> None:
        self.address = Address(host, _port(control), _port(data))
        self._listeners = (control, data)
        self._context = context
        self._arrivals: dict[str, tuple[MemoryObjectSendStream[Any], MemoryObjectReceiveStream[Any]]] = {
            "control": anyio.create_memory_object_stream(8),
            "data": anyio.create_memory_object_stream(8),
        }
        self._peers: list[Peer[Any]] = []

    def present(self, context: ssl.SSLContext) -> None:
        """Be somebody else from the next connection on."""
        self._context = context

    async def control(self) -> Peer[Any]:
        """The next control connection."""
        return await self._next("control")

    async def data(self) -> Peer[Any]:
        """The next data connection."""
        return await self._next("data")

    async def register(self, **changes: Any) -> tuple[Peer[Any], m.Reg]:
        """Take a seat's registration and grant it."""
        control = await self.control()
        line = await control.line()
        assert isinstance(line.message, m.Reg)
        await control.say(reg_ok(line.message, **changes), in_reply_to=line.msg_id)
        return control, line.message

    async def seat(self, **changes: Any) -> Seated:
        """Take a seat all the way into the rotation."""
        control, reg = await self.register(**changes)
        data = await self.data()
        line = await data.line()
        granted = reg_ok(reg, **changes)
        assert line.message == m.DataHello(session_id=granted.session_id, data_token=granted.data_token)
        await data.say(m.DataOk(), in_reply_to=line.msg_id)
        return Seated(control, data, reg)

    async def refuse(self, code: ErrorCode, message: str = "no") -> None:
        """Refuse the next registration, as the Arbiter does: one ERROR, then the end."""
        control = await self.control()
        line = await control.line()
        await control.say(m.Error(code=code, message=message), in_reply_to=line.msg_id)
        await control.close()

    async def _next(self, which: str) -> Peer[Any]:
        with anyio.fail_after(PATIENCE):
            peer: Peer[Any] = await self._arrivals[which][1].receive()
        return peer

    async def serve(self) -> None:
        """Accept until cancelled."""
        async with anyio.create_task_group() as tasks:
            for listener, which, union in zip(
                self._listeners, self._arrivals, (m.ControlFromSeat, m.DataFromSeat), strict=True
            ):
                tasks.start_soon(self._accept, listener, which, Codec(union))

    async def _accept(self, listener: SocketListener, which: str, codec: Codec[Any]) -> None:
        while True:
            raw = await listener.accept()
            try:
                stream = await TlsStream.handshake(raw, self._context, server_side=True)
            except ChannelError:
                continue
            peer: Peer[Any] = Peer(Channel(stream, codec, prefix="a"), stream, raw)
            self._peers.append(peer)
            await self._arrivals[which][0].send(peer)

    async def aclose(self) -> None:
        """Leave nothing open."""
        for listener in self._listeners:
            await listener.aclose()
        for peer in self._peers:
            await peer.cut()
        for send, receive in self._arrivals.values():
            send.close()
            receive.close()


@asynccontextmanager
async def arbiter_double(
    context: ssl.SSLContext, ports: tuple[int, int] = (0, 0), host: str = HOST
) -> AsyncIterator[ArbiterDouble]:
    """Listen on two ports of ``host``, any free ones by default, until the block ends."""
    control, data = [await _listen(port, host) for port in ports]
    double = ArbiterDouble(control, data, context, host)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(double.serve)
            yield double
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await double.aclose()


async def _listen(port: int, host: str) -> SocketListener:
    (listener,) = (await anyio.create_tcp_listener(local_host=host, local_port=port)).listeners
    assert isinstance(listener, SocketListener)
    return listener


def _port(listener: SocketListener) -> int:
    return int(listener.extra(SocketAttribute.local_port))


def reg_ok(reg: m.Reg, **changes: Any) -> m.RegOk:
    """What the Arbiter grants: everything, unless ``changes`` says otherwise."""
    fields: dict[str, Any] = {
        "session_id": "session-1",
        "participant_id": f"{reg.name}_0A1B2C3D",
        "debate_state": m.DebateState.WAITING_QUORUM,
        "topic": TOPIC,
        "phase": m.Phase.OPENING,
        "turn_counter": 0,
        "required": reg.required,
        "disconnect_policy": reg.disconnect_policy,
        "data_token": "a-token-for-one-use",
        "heartbeat_interval_ms": 15_000,
    }
    return m.RegOk(**(fields | changes))


def start(turn_id: int, deadline_ms: int = 60_000) -> m.TurnStart:
    """TURN_START."""
    return m.TurnStart(turn_id=turn_id, phase=m.Phase.OPENING, deadline_ms=deadline_ms)


def context(turn_id: int, *delta: m.DeltaEntry) -> m.Context:
    """CONTEXT."""
    return m.Context(turn_id=turn_id, phase=m.Phase.OPENING, topic=TOPIC, delta=delta)
