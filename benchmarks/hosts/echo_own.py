"""Reference of P6, P7 and P16: an echo of lines on the Arbiter's own streams, and nothing else."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import SocketAttribute

from arbiter.edge.listener import bind
from benchmarks.hosts import common
from consilium.credentials import Credentials
from consilium.errors import ChannelError
from consilium.tls import TlsStream, server_context

if TYPE_CHECKING:
    from anyio.abc import SocketStream


async def serve(args: argparse.Namespace) -> None:
    """Serve until standard input ends."""
    context = server_context(Credentials.load(args.certs))

    async def echo(raw: SocketStream) -> None:
        with contextlib.suppress(ChannelError):
            stream = await TlsStream.handshake(raw, context, server_side=True)
            try:
                while True:
                    line = await stream.receive()
                    while not line.endswith(b"\n"):
                        line += await stream.receive()
                    await stream.send(line)
            finally:
                await stream.aclose()

    async with anyio.create_task_group() as tasks:
        (listener,) = await bind(common.HOST, 0, setting="a port")
        tasks.start_soon(listener.serve, echo)
        common.announce(ports=[[listener.extra(SocketAttribute.local_port)] * 2])
        await common.answer(dict)
        common.leave()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--certs", type=Path, required=True)
    anyio.run(serve, parser.parse_args())


if __name__ == "__main__":
    main()
