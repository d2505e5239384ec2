"""Reference of P1: the five messages by hand, on anyio and its own TLS stream, in a straight line.

Nothing is checked, and nobody but the speaker is listened to: a seat that asked for something out of turn,
turn, or was lost, would go unnoticed, and one that did not read would hold up everybody.
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

    from anyio.abc import SocketStream


class Wire:
    """One TLS connection that carries lines."""

    def __init__(self, stream: TLSStream) -> None:
        self.send = stream.send
        self._lines = BufferedByteReceiveStream(stream)

    async def line(self) -> bytes:
        """The next line."""
        return await self._lines.receive_until(b"\n", common.LIMIT)


class Table:
    """Takes connections in until every seat has two, then holds the debate."""

    def __init__(self, context: ssl.SSLContext, seats: int, debate: model.Model) -> None:
        self._context = context
        self._debate = debate
        self._names = model.names(seats)
        self._control: dict[str, Wire] = {}
        self._data: dict[str, Wire] = {}
        self._complete = anyio.Event()

    async def control(self, raw: SocketStream) -> None:
        """REG, REG_OK."""
        wire = Wire(await TLSStream.wrap(raw, server_side=True, ssl_context=self._context))
        name = orjson.loads(await wire.line())["name"]
        self._control[name] = wire
        await wire.send(model.line("REG_OK", 0, session_id=name, data_token=name))

    async def data(self, raw: SocketStream) -> None:
        """DATA_HELLO, DATA_OK."""
        wire = Wire(await TLSStream.wrap(raw, server_side=True, ssl_context=self._context))
        name = orjson.loads(await wire.line())["session_id"]
        await wire.send(model.line("DATA_OK", 0))
        self._data[name] = wire
        if len(self._data) == len(self._names):
            self._complete.set()

    async def hold(self) -> None:
        """Turn after turn, once every seat is bound."""
        await self._complete.wait()
        while True:
            for name in self._names:
                control, data = self._control[name], self._data[name]
                start, context = self._debate.start()
                await control.send(start)
                await data.send(context)
                ack = await control.line()
                speech = await data.line()
                self._debate.end(name, [ack, speech, await control.line()])


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
