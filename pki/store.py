"""Keys and certificates on disk.

1. A key exists only in a file that was private from its first byte: created exclusively, mode 0600, in a
   folder of mode 0700, and never through a symbolic link.
2. A holder's folder appears whole or not at all: it is filled beside its place and then renamed into it.
3. A folder that exists is never replaced unless the caller says so, and no content is ever printed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from consilium.credentials import CA, CERT, KEY
from consilium.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_PEM_BYTES = 1024 * 1024
"""The largest file that is read as certificates or as a key."""

_MODES = {CERT: 0o644, KEY: 0o600, CA: 0o644}


def make_root(folder: Path) -> None:
    """Make the folder that holds all others, if it is not there. Raises `UserError` as `check_root` does."""
    with _told(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
    check_root(folder)


def check_root(folder: Path) -> None:
    """Accept the folder that holds all others.

    Raises `UserError` when it is missing, a symbolic link or no folder, or when others may write to it:
    whoever can rename what is in it decides whom the council trusts.
    """
    with _told(folder):
        status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a folder"
        raise UserError(f"{folder} is {what}", hint="give the folder itself")
    if status.st_mode & 0o022:
        raise UserError(f"others may write to {folder}", hint=f"chmod go-w {folder}")


def write_folder(
    folder: Path, files: Mapping[str, bytes], *, replace: bool = False, way_out: str = ""
) -> None:
    """Write ``files`` (`cert.pem`, `key.pem`, `ca.pem`) as ``folder``, all at once.

    Raises `UserError` when it exists and ``replace`` was not asked for, with ``way_out`` as the hint, and
    when what is there is a symbolic link or no folder.
    """
    with _told(folder):
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            for name, content in files.items():
                _write(fresh / name, content, _MODES[name])
            _sync(fresh)
            if replace and os.path.lexists(folder):
                _swap(fresh, folder)
            else:
                _put(fresh, folder, way_out)
            _sync(folder.parent)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read. Raises `UserError`, also when something is there."""
    with _told(path.parent):
        try:
            _write(path, content, 0o600)
        except FileExistsError as cause:
            hint = "give another name, or remove it"
            raise UserError(f"{path} is there already, and no key is overwritten", hint=hint) from cause


def read_key(path: Path) -> bytes:
    """Read a private key's PEM.

    Raises `UserError` when it is missing, a symbolic link or no file, or open to anybody but its owner.
    """
    with _told(path):
        # O_NONBLOCK: a named pipe in this place would otherwise hold us until somebody writes to it.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:  # noqa: PTH123 - there is no Path.open for a descriptor
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                raise UserError(f"{path} is not a file")
            if stat.S_IMODE(mode) & 0o077:
                raise UserError(f"{path} is open to other users", hint=f"chmod 600 {path}")
            return file.read(MAX_PEM_BYTES)


def read_pem(path: Path) -> bytes:
    """Read a file of certificates. Raises `UserError` when it is missing, no file, or far too large."""
    with _told(path):
        if not path.exists():
            raise UserError(f"{path} does not exist")
        if not path.is_file():
            raise UserError(f"{path} is not a file")
        with path.open("rb") as file:
            content = file.read(MAX_PEM_BYTES + 1)
    if len(content) > MAX_PEM_BYTES:
        raise UserError(f"{path} is too large to be a certificate")
    return content


def _write(path: Path, content: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(path, flags, mode)
    try:
        with open(fd, "wb") as file:  # noqa: PTH123 - the mode must hold from the start
            file.write(content)
            file.flush()
            os.fsync(fd)
    except OSError:
        path.unlink()  # a part of a key is of no use to anybody
        raise


def _put(fresh: Path, folder: Path, way_out: str) -> None:
    """Rename into place. The kernel refuses when something is there, so that two issuers cannot both win."""
    try:
        fresh.rename(folder)
    except OSError as cause:
        if not os.path.lexists(folder):
            raise
        raise UserError(f"{folder} is there already, and no key is overwritten", hint=way_out) from cause


def _swap(fresh: Path, folder: Path) -> None:
    """Put ``fresh`` in the place of ``folder``. If that fails half-way, the old one is put back."""
    if folder.is_symlink() or not folder.is_dir():
        raise UserError(f"{folder} is not a folder of ours, and is left alone")
    old = fresh.with_name(f"{fresh.name}.old")
    folder.rename(old)
    try:
        fresh.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what the system refuses into one sentence about ``path``."""
    try:
        yield
    except FileNotFoundError as cause:
        raise UserError(f"{path} does not exist") from cause
    except OSError as cause:
        why = "is a symbolic link" if cause.errno == errno.ELOOP else f"cannot be used: {cause.strerror}"
        raise UserError(f"{path} {why}") from cause
