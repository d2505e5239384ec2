"""What the journal asks of the file system, and how its file comes into being (§5.6).

1. The file is created, never opened: a record is not overwritten, a link not followed, and the file is
   nobody's but ours (0600).
2. Everything that can fail in the middle of a debate goes through `Disk`, so that a test can make it fail.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Protocol

from consilium.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


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
    """Create the file at ``path`` to be appended to and read back; return its descriptor.

    With ``sync``, its name is on disk too when this returns. Raises `UserError`, with the way out, when
    something stands there already or the folder does not take it.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise _refusal(path, error) from error
    try:
        if sync:
            sync_folder(path)
    except OSError as error:
        os.close(descriptor)
        path.unlink()
        raise _refusal(path, error) from error
    return descriptor


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
    status = path.lstat()
    hint = "give another path: a transcript is never overwritten, and never written through something else"
    kinds = (
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISREG, "a file"),
    )
    what = next((name for test, name in kinds if test(status.st_mode)), "a special file")
    owner = f" of another owner (user {status.st_uid})" if status.st_uid != os.geteuid() else ""
    return UserError(f"the transcript cannot be created: {path} is already {what}{owner}", hint=hint)
