"""Reference of P7: an echo of lines on asyncio's streams, as the standard library comes."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from benchmarks.hosts import common
from consilium.credentials import Credentials
from consilium.tls import server_context


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one connection to its end."""
    while line := await reader.readline():
        writer.write(line)
        await writer.drain()
    writer.close()


async def serve(args: argparse.Namespace) -> None:
    """Serve until standard input ends."""
    context = server_context(Credentials.load(args.certs))
    server = await asyncio.start_server(echo, common.HOST, 0, ssl=context, backlog=256)
    common.announce(ports=[[server.sockets[0].getsockname()[1]] * 2])
    await common.answer(dict)
    common.leave()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--certs", type=Path, required=True)
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
