"""What the journal asks of the file system, and how its file is created or found again (§5.6).

1. A new transcript is a new file; an old one is opened only if it is as `create` leaves it: a record is not
   overwritten, a link not followed, and the file is nobody's but ours (0600).
2. Whoever holds the descriptor holds the file's lock: no two Arbiters write one transcript. The kernel takes
   the lock back from whoever is killed.
3. Everything that can fail in the middle of a debate goes through `Disk`, so that a test can make it fail.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import stat
from typing import TYPE_CHECKING, Protocol

from consilium.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


MODE = 0o600


class Disk(Protocol):
    """The operations on an open file. All block; all raise `OSError`."""

    def write(self, descriptor: int, data: bytes) -> int:
        """Write at the end; return how many bytes were taken."""
        ...

    def fdatasync(self, descriptor: int) -> None:
        """Return when everything written is on the device."""
        ...

    def ftruncate(self, descriptor: int, length: int) -> None:
        """Cut the file to ``length`` bytes."""
        ...


class RealDisk:
    """The operating system's own operations."""

    def write(self, descriptor: int, data: bytes) -> int:
        """See `Disk`."""
        return os.write(descriptor, data)

    def fdatasync(self, descriptor: int) -> None:
        """See `Disk`."""
        os.fdatasync(descriptor)

    def ftruncate(self, descriptor: int, length: int) -> None:
        """See `Disk`."""
        os.ftruncate(descriptor, length)


def create(path: Path, *, sync: bool) -> int:
    """Create the file at ``path`` to be appended to and read back; return its descriptor, locked.

    With ``sync``, its name is on disk too when this returns. Raises `UserError`, with the way out, when
    something stands there already or the folder does not take it.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, MODE)
    except OSError as error:
        raise _refusal(path, error) from error
    try:
        _lock(path, descriptor)
        if sync:
            sync_folder(path)
    except UserError:  # It is somebody else's by now.
        os.close(descriptor)
        raise
    except OSError as error:
        path.unlink()
        os.close(descriptor)
        raise _refusal(path, error) from error
    return descriptor


def reopen(path: Path) -> int:
    """Open the file at ``path``, which `create` made, as that did; return its descriptor, locked.

    Raises `UserError`, with the way out, when it is not such a file, or another Arbiter writes it.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        _check(path, path.lstat())  # First: to open a device may be to do something.
        descriptor = os.open(path, flags)
    except OSError as error:
        hint = "give the path of a transcript that an Arbiter wrote"
        raise UserError(f"{path} cannot be opened: {error.strerror}", hint=hint) from error
    try:
        _check(path, os.fstat(descriptor))  # Again: by now it may be another.
        _lock(path, descriptor)
    except OSError as error:
        os.close(descriptor)
        hint = "keep transcripts on a file system that has locks"
        raise UserError(f"{path} cannot be locked: {error.strerror}", hint=hint) from error
    except UserError:
        os.close(descriptor)
        raise
    return descriptor


def unlock(descriptor: int) -> None:
    """Let another Arbiter have the file, although readers may still hold duplicates of ``descriptor``."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def _lock(path: Path, descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        hint = "let that one end, or give another path"
        raise UserError(f"another Arbiter is writing {path}", hint=hint) from None


def _check(path: Path, status: os.stat_result) -> None:
    """Refuse what `create` did not leave: anything but a regular file of ours that is ours alone."""
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        hint = "give the path of a transcript that an Arbiter of this user wrote"
        raise UserError(f"no debate can go on in {path}: it is {_what(status)}", hint=hint)
    mode = stat.S_IMODE(status.st_mode)
    if mode != MODE:
        hint = f"if nobody else has written into it: chmod 600 {shlex.quote(str(path))}"
        raise UserError(f"no debate can go on in {path}: its mode is {mode:04o}, not {MODE:04o}", hint=hint)


def sync_folder(path: Path) -> None:
    """Return when the folder of ``path`` is on disk: a file without a name is as good as lost."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refusal(path: Path, error: OSError) -> UserError:
    folder = path.parent
    match error.errno:
        case errno.EEXIST:
            return _occupied(path)
        case errno.ENOENT | errno.ENOTDIR:
            return UserError(f"the transcript's folder {folder} is not there", hint=f"mkdir -p {folder}")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            hint = f"give a path in a folder that user {os.geteuid()} may write to"
            return UserError(f"the folder {folder} takes no transcript: {error.strerror}", hint=hint)
        case _:
            return UserError(f"{path} cannot be created: {error.strerror}", hint="give another path")


def _occupied(path: Path) -> UserError:
    """Say what stands where the transcript should be."""
    hint = "give another path: a transcript is never overwritten, and never written through something else"
    message = f"the transcript cannot be created: {path} is already {_what(path.lstat())}"
    return UserError(message, hint=hint)


def _what(status: os.stat_result) -> str:
    kinds = (
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISREG, "a file"),
    )
    what = next((name for test, name in kinds if test(status.st_mode)), "a special file")
    return f"{what} of another owner (user {status.st_uid})" if status.st_uid != os.geteuid() else what
