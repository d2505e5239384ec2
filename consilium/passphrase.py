"""Where a bundle's passphrase comes from: a file, the environment, or the person at the terminal."""

from __future__ import annotations

import getpass
import os
from typing import TYPE_CHECKING

from consilium.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

VARIABLE = "CONSILIUM_BUNDLE_PASSPHRASE"
MAX_BYTES = 4096
"""The longest passphrase that a file may hold."""

WAYS = f"give it with --passphrase-file FILE, or in {VARIABLE}"


def source(file: Path | None, environ: Mapping[str, str], *, prompt: str) -> Callable[[], bytes]:
    """Return what gives the passphrase when it is wanted, which may be never.

    ``file`` wins over `VARIABLE`, and that over the terminal. What is returned raises `UserError` when the
    file cannot be read, or when nobody is there to be asked.
    """

    def give() -> bytes:
        if file is not None:
            return read(file)
        if VARIABLE in environ:
            return os.fsencode(environ[VARIABLE])
        return ask(prompt)

    return give


def read(file: Path) -> bytes:
    """The first line of ``file``. Raises `UserError`."""
    try:
        with file.open("rb") as opened:
            line = opened.readline(MAX_BYTES + 2)
    except OSError as cause:
        raise UserError(f"{file} cannot be read: {cause.strerror}") from cause
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    if len(line) > MAX_BYTES:
        raise UserError(f"the first line of {file} is too long to be a passphrase")
    return line


def ask(prompt: str) -> bytes:
    """Ask at the terminal, without an echo. Raises `UserError` when there is none."""
    try:
        # Without one, getpass would read standard input with an echo: that may be the text of an INJECT.
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        raise UserError("a passphrase is needed, and there is no terminal to ask at", hint=WAYS) from None
    try:
        return getpass.getpass(f"{prompt}: ").encode()
    except EOFError:
        raise UserError("no passphrase was given", hint=WAYS) from None
