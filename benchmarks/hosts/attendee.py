"""One seat among many in one process: two connections, a heartbeat, and turns that it takes at once."""

from __future__ import annotations

import contextlib
import random  # noqa: TID251 - only of when to knock again
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from benchmarks.hosts.beats import Beats
from benchmarks.hosts.common import HOST
from consilium import messages as m
from consilium.channel import Channel
from consilium.codec import Codec
from consilium.errors import ChannelError, ConsiliumError
from consilium.framing import MAX_ARBITER_LINE_BYTES
from consilium.tls import TlsStream
from wrapper.reconnection import ARRIVING

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from anyio.abc import SocketStream, TaskGroup

CONTROL: Codec[Any] = Codec(m.ControlToSeat)
DATA: Codec[Any] = Codec(m.DataToSeat)


class Turned(ConsiliumError):  # noqa: N818 - away; what happened, in a word
    """Raised when the Arbiter answers with an ERROR."""


@dataclass(slots=True)
class Manners:
    """How the seats of one crowd behave; one object for all of them.

    ``interval`` is the heartbeat's and ``pace`` what a turn takes, in seconds. While ``hushed``, whoever has
    the floor says nothing.
    """

    context: ssl.SSLContext
    interval: float
    pace: float
    said: str
    speech_chars: int
    hushed: bool = False
    turns: int = 0
    lost: list[str] = field(default_factory=list)

    def speech(self) -> str:
        """The next one; the whole begins again at its end."""
        start = self.turns * self.speech_chars % (len(self.said) - self.speech_chars)
        self.turns += 1
        return self.said[start : start + self.speech_chars]


class Attendee:
    """A seat. `live` takes it and keeps it; ``bound`` is set while it is there."""

    def __init__(self, ports: Sequence[int], name: str, manners: Manners) -> None:
        self._ports = ports
        self._manners = manners
        self._raws: list[SocketStream] = []
        self._data: Channel[Any]
        self._cut = anyio.CancelScope()
        self.name = name
        self.attempts = 0
        self.bound = anyio.Event()
        self.beats = Beats(manners.interval, 0)

    async def live(self) -> None:
        """Take the seat, again and again if need be, and keep it until `cut`."""
        with anyio.CancelScope() as self._cut:
            while not self.bound.is_set():
                self.attempts += 1
                try:
                    async with anyio.create_task_group() as tasks:
                        await self._attend(tasks)
                except* (ChannelError, Turned, OSError) as ended:
                    if self.bound.is_set():
                        self._manners.lost.append(f"{self.name}: {ended.exceptions[0]}")
                await self._vanish()
                # As an arriving wrapper waits: up to twice as long each time, and none as long as the next.
                await anyio.sleep(random.uniform(ARRIVING.least, ARRIVING.most(self.attempts - 1)))
        self.beats.end(anyio.current_time())

    async def cut(self) -> None:
        """Vanish, as a machine does that loses its power: no close_notify, no UNREG."""
        self._cut.cancel()
        self.bound = anyio.Event()
        await self._vanish()

    async def _vanish(self) -> None:
        for raw in self._raws:
            await anyio.aclose_forcefully(raw)
        self._raws.clear()

    async def _attend(self, tasks: TaskGroup) -> None:
        control = Channel(await self._dial(0), CONTROL, prefix="s", limit=MAX_ARBITER_LINE_BYTES)
        await control.send(m.Reg(name=self.name))
        granted = await self._answer(control, m.RegOk)
        self.beats = Beats(self._manners.interval, anyio.current_time())
        tasks.start_soon(self._hear_control, control)
        tasks.start_soon(self._ping, control)
        self._data = Channel(await self._dial(1), DATA, prefix="s", limit=MAX_ARBITER_LINE_BYTES)
        hello = m.DataHello(session_id=granted.session_id, data_token=granted.data_token)
        await self._data.send(hello)
        await self._answer(self._data, m.DataOk)
        self.bound.set()
        while True:
            await self._data.receive()

    async def _dial(self, place: int) -> TlsStream:
        raw = await anyio.connect_tcp(HOST, self._ports[place])
        self._raws.append(raw)
        return await TlsStream.handshake(raw, self._manners.context, server_side=False, server_hostname=HOST)

    async def _answer(self, channel: Channel[Any], kind: type[Any]) -> Any:
        while True:
            line = await channel.receive()
            if isinstance(line.message, m.Error):
                raise Turned(line.message.message)
            if isinstance(line.message, kind):
                return line.message

    async def _hear_control(self, control: Channel[Any]) -> None:
        async with anyio.create_task_group() as turns:
            while True:
                line = await control.receive()
                if isinstance(line.message, m.Ping):
                    self.beats.ping(anyio.current_time())
                    await control.send(m.Pong(ts=line.message.ts), in_reply_to=line.msg_id)
                elif isinstance(line.message, m.Pong):
                    self.beats.pong(line.message.ts / 1000, anyio.current_time())
                elif isinstance(line.message, m.TurnStart):
                    turns.start_soon(self._speak, line.message.turn_id, control)

    async def _ping(self, control: Channel[Any]) -> None:
        await anyio.sleep(random.uniform(0, self._manners.interval))
        while True:
            await control.send(m.Ping(ts=int(anyio.current_time() * 1000)))
            await anyio.sleep(self._manners.interval)

    async def _speak(self, turn: int, control: Channel[Any]) -> None:
        await control.send(m.Ack(turn_id=turn))
        await anyio.sleep(self._manners.pace)
        while self._manners.hushed:
            await anyio.sleep(self._manners.pace)
        with contextlib.suppress(ChannelError):  # whoever reads will tell
            await self._data.send(m.Speech(turn_id=turn, text=self._manners.speech(), usage=None))
            await control.send(m.TurnEnd(turn_id=turn, speech=True))
