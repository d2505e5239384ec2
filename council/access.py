"""An operator's way to the Arbiter: which credentials, at which place, and the options that say so."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilium import passphrase
from consilium.bundle import open_bundle
from consilium.errors import UserError
from consilium.ports import Ports
from consilium.sockets import socket_path
from consilium.tls import client_context
from council import operator

if TYPE_CHECKING:
    import argparse
    import ssl
    from contextlib import AbstractAsyncContextManager

    from council.operator import Operator

WORDS = ("passphrase_file", "host", "port", "socket_dir", "server_name")
"""The options of the place that a command repeats when it names another one."""


def add_options(command: argparse.ArgumentParser, *, default: Any = None) -> None:
    """Have ``command`` take the options of `Access`; ``default`` as argparse has it."""
    group = command.add_argument_group("who you are, and where the Arbiter is")
    group.add_argument(
        "--bundle", type=Path, metavar="PATH", default=default, help="your credentials, folder or file"
    )
    group.add_argument(
        "--passphrase-file",
        type=Path,
        metavar="FILE",
        default=default,
        help="its first line opens the bundle",
    )
    group.add_argument("--host", default=default, help="where the Arbiter is (127.0.0.1)")
    group.add_argument("--port", type=int, metavar="N", default=default, help="its admin port (9997)")
    group.add_argument(
        "--socket-dir",
        type=Path,
        metavar="DIR",
        default=default,
        help="the folder of its UNIX sockets, in place of host and port",
    )
    group.add_argument(
        "--server-name",
        metavar="NAME",
        default=default,
        help="the name in its certificate, if not the host, or localhost behind a socket",
    )
    group.add_argument(
        "--operator",
        metavar="COMMAND",
        default=default,
        help="what a person types to be the operator, for the lines that are shown (default: this command)",
    )


class Access:
    """Connects as the operator that a command line names."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Raises `UserError` for a place, or a person's command, that cannot be one."""
        self._options = options
        self._typed = None if options.operator is None else _split(options.operator)
        self._ports = Ports.of(host=options.host, admin_port=options.port, socket_dir=options.socket_dir)
        self._context: ssl.SSLContext

    def open(self) -> None:
        """Read the credentials; this may ask for a passphrase. Raises `UserError`."""
        options = self._options
        prompt = f"Passphrase of {options.bundle}"
        secret = passphrase.source(options.passphrase_file, os.environ, prompt=prompt)
        with open_bundle(options.bundle, secret) as credentials:
            self._context = client_context(credentials)

    def connect(self) -> AbstractAsyncContextManager[Operator]:
        """A connection to the Arbiter, once the credentials were read. Raises as `operator.connect`."""
        ports, name = self._ports, self._options.server_name
        if ports.sockets is not None:
            path = socket_path(ports.sockets, "admin")
            return operator.connect_path(path, self._context, server_name=name)
        return operator.connect(ports.host, ports.admin_port, self._context, server_name=name)

    def command(self, *words: str) -> str:
        """What a person types to carry out ``words`` with the same credentials, at the same place."""
        if self._typed is not None:
            return shlex.join([*self._typed, *words])
        options = self._options
        line = ["consilium", "admin", "--bundle", str(options.bundle)]
        for name in WORDS:
            if (value := getattr(options, name)) is not None:
                line += [f"--{name.replace('_', '-')}", str(value)]
        return shlex.join([*line, *words])


def _split(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError(f"--operator is no command: {error}") from None
    if not words:
        raise UserError("--operator is no command: it is empty")
    return words
