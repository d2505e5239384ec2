"""Reference of P1: an Arbiter of the five messages by hand, on anyio and its TLS stream. Nothing is checked.

It has an Arbiter's two duties towards its connections, for without them it would be another program: every
one is read all the time, since a seat may ask, or be lost, at any moment; and no reader holds up the debate.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import orjson
from anyio.abc import SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSStream

from benchmarks.hosts import common, model
from consilium.credentials import Credentials
from consilium.tls import server_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from anyio.abc import SocketStream

QUEUE = 256
"""Lines that may wait for one reader, and for the debate."""


class Wire:
    """One TLS connection that carries lines."""

    def __init__(self, stream: TLSStream) -> None:
        self._stream = stream
        self._lines = BufferedByteReceiveStream(stream)
        post, self._queue = anyio.create_memory_object_stream[bytes](QUEUE)
        self.put = post.send_nowait

    async def line(self) -> bytes:
        """The next line."""
        return await self._lines.receive_until(b"\n", common.LIMIT)

    async def write(self) -> None:
        """Send what is put, as it comes."""
        async for line in self._queue:
            await self._stream.send(line)


class Table:
    """Takes connections in until every seat has two, then holds the debate."""

    def __init__(self, context: ssl.SSLContext, seats: int, debate: model.Model) -> None:
        self._context = context
        self._debate = debate
        self._names = model.names(seats)
        self._control: dict[str, Wire] = {}
        self._data: dict[str, Wire] = {}
        self._post, self._inbox = anyio.create_memory_object_stream[bytes](QUEUE)

    async def control(self, raw: SocketStream) -> None:
        """Serve a control connection."""
        await self._serve(raw, self._register)

    async def data(self, raw: SocketStream) -> None:
        """Serve a data connection."""
        await self._serve(raw, self._bind)

    async def _serve(self, raw: SocketStream, greet: Callable[[Wire], Awaitable[None]]) -> None:
        wire = Wire(await TLSStream.wrap(raw, server_side=True, ssl_context=self._context))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wire.write)
            await greet(wire)
            while True:
                await self._post.send(await wire.line())

    async def _register(self, wire: Wire) -> None:
        name = orjson.loads(await wire.line())["name"]
        self._control[name] = wire
        wire.put(model.line("REG_OK", 0, session_id=name, data_token=name))

    async def _bind(self, wire: Wire) -> None:
        hello = await wire.line()
        self._data[orjson.loads(hello)["session_id"]] = wire
        wire.put(model.line("DATA_OK", 0))
        await self._post.send(hello)

    async def hold(self) -> None:
        """Turn after turn, once every seat is bound."""
        for _ in self._names:
            await self._inbox.receive()
        while True:
            for name in self._names:
                start, context = self._debate.start()
                self._control[name].put(start)
                self._data[name].put(context)
                self._debate.end(name, [await self._inbox.receive() for _ in range(3)])


async def hold(args: argparse.Namespace) -> None:
    """Hold the debate until standard input ends."""
    context = server_context(Credentials.load(args.certs))
    table = Table(context, args.seats, model.Model.recorded_in(args.folder))
    async with anyio.create_task_group() as tasks:
        ports = []
        for handler in (table.control, table.data):
            listener = await anyio.create_tcp_listener(local_host=common.HOST)
            ports.append(listener.extra(SocketAttribute.local_port))
            tasks.start_soon(listener.serve, handler)
        tasks.start_soon(table.hold)
        common.announce(ports=[ports])
        await common.answer(dict)
        common.leave()


def main() -> None:
    """Read the command line and hold the debate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--certs", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seats", type=int, default=3)
    anyio.run(hold, parser.parse_args())


if __name__ == "__main__":
    main()
