"""Reference of P2, the floor: the five messages on blocking sockets, one thread, nothing checked."""

from __future__ import annotations

import argparse
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from benchmarks.hosts import common, model
from consilium.credentials import Credentials
from consilium.tls import server_context

if TYPE_CHECKING:
    import ssl


class Wire:
    """One blocking TLS connection that carries lines."""

    def __init__(self, listener: socket.socket, context: ssl.SSLContext) -> None:
        raw, _ = listener.accept()
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = context.wrap_socket(raw, server_side=True)
        self.send = connection.sendall
        self.line = connection.makefile("rb").readline


def hold(context: ssl.SSLContext, doors: list[socket.socket], seats: int, debate: model.Model) -> None:
    """Seat everybody, then turn after turn, until the process ends."""
    table = []
    for _ in range(seats):
        control = Wire(doors[0], context)
        name = orjson.loads(control.line())["name"]
        control.send(model.line("REG_OK", 0, session_id=name, data_token=name))
        data = Wire(doors[1], context)
        data.line()
        data.send(model.line("DATA_OK", 0))
        table.append((name, control, data))
    while True:
        for name, control, data in table:
            start, delta = debate.start()
            control.send(start)
            data.send(delta)
            debate.end(name, [control.line(), data.line(), control.line()])


def main() -> None:
    """Read the command line, hold the debate in a thread, end with standard input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--certs", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seats", type=int, default=3)
    args = parser.parse_args()
    context = server_context(Credentials.load(args.certs))
    doors = [common.listen() for _ in range(2)]
    debate = model.Model.recorded_in(args.folder)
    threading.Thread(target=hold, args=(context, doors, args.seats, debate), daemon=True).start()
    common.announce(ports=[[door.getsockname()[1] for door in doors]])
    common.wait_for_the_end()


if __name__ == "__main__":
    main()
