"""Keys and certificates on disk.

1. A key exists only in a file that was private from its first byte: created exclusively, mode 0600, in a
   folder of mode 0700, and never through a symbolic link.
2. A folder appears whole or not at all: it is filled beside its place and then renamed into it.
3. Files that exist are never replaced unless the caller says so. They are replaced inside their folder, each
   by one rename: a container that has the folder mounted sees the new ones. Owner and mode stay.
4. No content is ever printed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from consilium.credentials import CA, CERT, CRL, KEY
from consilium.errors import UserError
from pki.terms import INDEX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_PEM_BYTES = 1024 * 1024
"""The largest file that is read as certificates or as a key."""

MAX_INDEX_BYTES = 64 * 1024 * 1024
"""The largest index that is read: some hundred thousand certificates."""

LOCK_SECONDS = 20.0
"""How long another writer is waited for."""

_MODES = {CERT: 0o644, KEY: 0o600, CA: 0o644, CRL: 0o644, INDEX: 0o600}
_FRESH = ".new"


def make_root(folder: Path) -> None:
    """Make the folder that holds all others, if it is not there. Raises `UserError` as `check_root` does."""
    with _told(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
    check_root(folder)


def check_root(folder: Path) -> None:
    """Accept the folder that holds all others, or one of the authority's own.

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


def write_folder(folder: Path, files: Mapping[str, bytes], *, way_out: str = "") -> None:
    """Write ``files`` (``cert.pem``, ``root/key.pem``) as ``folder``, all at once.

    Raises `UserError` when something is there already, with ``way_out`` as the hint.
    """
    with _told(folder):
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            for name, content in files.items():
                place = fresh / name
                place.parent.mkdir(mode=0o700, exist_ok=True)
                _write(place, content, _MODES[place.name])
            for below in {(fresh / name).parent for name in files}:
                _sync(below)
            _sync(fresh)
            _put(fresh, folder, way_out)
            _sync(folder.parent)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def replace_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put ``files`` in the place of those in ``folder``, once all of them are on the disk.

    Whoever reads between two renames finds a key beside the certificate of another: it must read again.
    Raises `UserError` when ``folder`` is a symbolic link or no folder, or when a file there belongs to
    somebody whose it would not stay.
    """
    with _told(folder):
        if folder.is_symlink() or not folder.is_dir():
            raise UserError(f"{folder} is not a folder of ours, and is left alone")
        fresh = {folder / name: folder / f".{name}{_FRESH}" for name in files}
        try:
            for place, content in zip(fresh, files.values(), strict=True):
                fresh[place].unlink(missing_ok=True)  # left by somebody who was interrupted
                _write(fresh[place], content, _MODES[place.name])
                _keep_owner(fresh[place], place)
            for place, made in fresh.items():
                made.replace(place)
            _sync(folder)
        finally:
            for made in fresh.values():
                made.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the only writer of ``folder`` until the block ends, among all processes.

    The lock is the kernel's and ends with its holder. Raises `UserError` after `LOCK_SECONDS` of another's.
    """
    with _told(folder):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        last = time.monotonic() + LOCK_SECONDS
        while not _lock(fd):
            if time.monotonic() > last:
                raise UserError(
                    f"another `consilium pki` is writing in {folder}, and does not end",
                    hint=f"who it is: fuser -v {folder}",
                )
            time.sleep(0.01)
        yield
    finally:
        os.close(fd)


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
    return _read_private(path, MAX_PEM_BYTES)


def read_index(path: Path) -> bytes:
    """Read an authority's index. Raises `UserError` as `read_key` does, and when it is far too large."""
    content = _read_private(path, MAX_INDEX_BYTES + 1)
    if len(content) > MAX_INDEX_BYTES:
        raise UserError(f"{path} is too large to be an index")
    return content


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


def _read_private(path: Path, most: int) -> bytes:
    with _told(path):
        # O_NONBLOCK: a named pipe in this place would otherwise hold us until somebody writes to it.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:  # noqa: PTH123 - there is no Path.open for a descriptor
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                raise UserError(f"{path} is not a file")
            if stat.S_IMODE(mode) & 0o077:
                raise UserError(f"{path} is open to other users", hint=f"chmod 600 {path}")
            return file.read(most)


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


def _keep_owner(made: Path, place: Path) -> None:
    """Give ``made`` to whom the file in ``place`` belongs, with its mode: a key may be its seat's own.

    Where there is no file, or a link, which is replaced as what it is, the folder says whose it shall be.
    """
    old = place.lstat() if place.exists() and not place.is_symlink() else place.parent.lstat()
    if stat.S_ISREG(old.st_mode):
        made.chmod(stat.S_IMODE(old.st_mode) & _MODES[place.name])
    try:
        if os.geteuid() == 0 or old.st_uid != os.geteuid():
            os.chown(made, old.st_uid, old.st_gid)
    except PermissionError as cause:
        raise UserError(
            f"{place} belongs to user {old.st_uid}, and would be yours afterwards",
            hint="run this as that user, or as root",
        ) from cause


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
