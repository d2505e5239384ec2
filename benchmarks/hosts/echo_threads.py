"""Reference of P6: an echo of lines on blocking TLS sockets, a thread for each connection."""

from __future__ import annotations

import argparse
import contextlib
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.hosts import common
from consilium.credentials import Credentials
from consilium.tls import server_context

if TYPE_CHECKING:
    import ssl


def echo(raw: socket.socket, context: ssl.SSLContext) -> None:
    """Serve one connection to its end."""
    with contextlib.suppress(OSError):
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(raw, server_side=True) as connection:
            for line in connection.makefile("rb"):
                connection.sendall(line)
            connection.unwrap()


def accept(listener: socket.socket, context: ssl.SSLContext) -> None:
    """Start a thread for each connection, until the process ends."""
    while True:
        raw, _ = listener.accept()
        threading.Thread(target=echo, args=(raw, context), daemon=True).start()


def main() -> None:
    """Read the command line, serve in threads, end with standard input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--certs", type=Path, required=True)
    context = server_context(Credentials.load(parser.parse_args().certs))
    listener = common.listen()
    threading.Thread(target=accept, args=(listener, context), daemon=True).start()
    common.announce(ports=[[listener.getsockname()[1]] * 2])
    common.wait_for_the_end()


if __name__ == "__main__":
    main()
