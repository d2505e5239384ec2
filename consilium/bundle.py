"""A holder's certificate, key and trust anchors, from a folder or from one file.

A file is PKCS#12 or PEM: its content says which, not its name. `consilium pki bundle` writes both.

No key is written to a disk here. `ssl` takes keys from paths only, so the parts of a file are put into memory
files (memfd), which have no name in any folder and are gone with their descriptors, whatever ends this
process. A private folder that is removed at once would stay behind whenever the process is killed in between.
"""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from consilium.credentials import Credentials
from consilium.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_BYTES = 1024 * 1024
"""The largest file that is read as a bundle."""

_PRIVATE = 0o077


@contextmanager
def open_bundle(path: Path, passphrase: Callable[[], bytes] | None = None) -> Iterator[Credentials]:
    """Yield the credentials of ``path``: a folder as `Credentials.load` takes it, or a bundle file.

    Those of a file hold until the block ends; `consilium.tls.client_context` has read them by then.
    ``passphrase`` is called when the key turns out to be encrypted, and only then. Raises `UserError`.
    """
    content = _content(path)
    if content is None:
        yield Credentials.load(path)
        return
    from consilium.unpacking import unpack  # noqa: PLC0415 - loads `cryptography`; a folder needs none of it

    parts = unpack(content, passphrase, name=str(path))
    with ExitStack() as stack:
        cert, key, ca = (stack.enter_context(_memory_file(part)) for part in parts)
        yield Credentials(cert=cert, key=key, ca=ca)


def _content(path: Path) -> bytes | None:
    """What the file holds; None for a folder."""
    try:
        # O_NONBLOCK: a named pipe in this place would otherwise hold us until somebody writes to it.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            mode = os.fstat(fd).st_mode
            if stat.S_ISDIR(mode):
                return None
            _check(path, mode)
            with open(fd, "rb", closefd=False) as file:
                content = file.read(MAX_BYTES + 1)
        finally:
            os.close(fd)
    except OSError as cause:
        raise UserError(f"{path} cannot be read: {cause.strerror}") from cause
    if len(content) > MAX_BYTES:
        raise UserError(f"{path} is too large to be a bundle")
    return content


def _check(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise UserError(f"{path} is neither a file nor a folder")
    if stat.S_IMODE(mode) & _PRIVATE:
        raise UserError(f"{path} holds a key and is open to other users", hint=f"chmod 600 {path}")


@contextmanager
def _memory_file(content: bytes) -> Iterator[Path]:
    """Yield the path of a file in memory. Whoever opens it reads it from its beginning."""
    fd = os.memfd_create("consilium", os.MFD_CLOEXEC)
    try:
        os.fchmod(fd, 0o600)
        with open(fd, "wb", closefd=False) as file:
            file.write(content)
        yield Path(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
