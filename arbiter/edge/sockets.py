"""The Arbiter's UNIX sockets (§15.1): a folder with 0770, three sockets with 0660, group ``consilium``.

1. What we did not make we do not change: a folder that is there is used as it is, or refused.
2. Nobody can connect before a socket has its mode and its group: it listens only then.
3. Who may reach a socket is for the file system to say; who somebody is, for their certificate (§5.2).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import grp
import logging
import os
import shlex
import socket
import stat
from typing import TYPE_CHECKING

from arbiter.edge.accepting import Listener
from consilium.errors import UserError
from consilium.sockets import GROUP, NAMES, socket_path
from consilium.unixstream import UnixStream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from pathlib import Path

    from anyio.abc import SocketListener

FOLDER_MODE, SOCKET_MODE = 0o770, 0o660
OTHERS = 0o007

BACKLOG = 1024
"""Connections that may wait to be accepted; the system's own bound may be lower."""

PATH_BYTES = 107
"""The longest path that a socket may have, in bytes."""

log = logging.getLogger("arbiter")


@contextlib.asynccontextmanager
async def open_sockets(folder: Path) -> AsyncIterator[Mapping[str, Sequence[SocketListener]]]:
    """Listen on the three sockets in ``folder``, by channel; remove them at the end.

    The folder is made if it is not there. Raises `UserError` when that cannot be, when others could reach
    into it, when an Arbiter that lives uses it, or when something that is no socket has a socket's name.
    """
    gid = usable_group(folder)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_held(folder, gid))
        bound = {name: stack.enter_context(_bound(socket_path(folder, name), gid)) for name in NAMES}
        yield {name: [Listener(each, UnixStream)] for name, each in bound.items()}


def usable_group(folder: Path) -> int | None:
    """The id of the group `GROUP`, or None, with a warning that says who reaches ``folder`` then."""
    own = _group_name(os.getegid())
    try:
        gid = grp.getgrnam(GROUP).gr_gid
    except KeyError:
        log.warning(
            "there is no group %s: the sockets in %s are for group %s (groupadd --system %s)",
            *(GROUP, folder, own, GROUP),
        )
        return None
    if os.geteuid() == 0 or gid in {os.getegid(), *os.getgroups()}:
        return gid
    log.warning(
        "this user is not in group %s: the sockets in %s are for group %s (usermod -aG %s USER)",
        *(GROUP, folder, own, GROUP),
    )
    return None


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


@contextlib.contextmanager
def _held(folder: Path, gid: int | None) -> Iterator[None]:
    """Make ``folder`` if it is not there, and hold it: one Arbiter at a time listens in it."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise _no_folder(folder, error) from None
    else:
        # The mode that mkdir was given went through the umask, and the group comes first.
        _own(folder, gid, FOLDER_MODE)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _no_folder(folder, error) from None
    try:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode & OTHERS:
            raise UserError(
                f"the folder {folder} is open to other users (mode {mode:04o})",
                hint=f"give a folder of its own, or chmod 0770 {shlex.quote(str(folder))}",
            )
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(folder) from None


def _in_use(path: Path) -> UserError:
    hint = "stop it, or give this one another folder: --socket-dir or CONSILIUM_SOCKET_DIR"
    return UserError(f"another Arbiter listens in {path}", hint=hint)


def _no_folder(folder: Path, error: OSError) -> UserError:
    place = shlex.quote(str(folder))
    return UserError(
        f"the folder {folder} cannot be used for sockets: {os.strerror(error.errno or 0).lower()}",
        hint=f"sudo install -d -m 0770 -o $(id -un) -g {GROUP} {place}\n  or give another: --socket-dir DIR",
    )


def _own(path: Path, gid: int | None, mode: int) -> None:
    if gid is not None:
        os.chown(path, -1, gid)
    path.chmod(mode)


@contextlib.contextmanager
def _bound(path: Path, gid: int | None) -> Iterator[socket.socket]:
    """A socket that listens at ``path``, which is removed at the end."""
    if len(os.fsencode(path)) > PATH_BYTES:
        raise UserError(
            f"{path} is too long for a socket's path: at most {PATH_BYTES} bytes", hint="--socket-dir DIR"
        )
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as made:
        try:
            _remove_stale(path)
            made.bind(os.fspath(path))
            _own(path, gid, SOCKET_MODE)
            made.listen(BACKLOG)
        except OSError as error:
            raise _no_folder(path.parent, error) from None
        try:
            yield made
        finally:
            with contextlib.suppress(OSError):
                path.unlink()


def _remove_stale(path: Path) -> None:
    """Remove the socket of an Arbiter that died. Raises `UserError` for anything else at ``path``."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise UserError(f"{path} is there and is no socket", hint="it is left alone; move it away")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as probe:
        probe.setblocking(False)  # noqa: FBT003 - positional only
        refusal = probe.connect_ex(os.fspath(path))
    # A crowded one answers EAGAIN, and is alive too.
    if refusal in (0, errno.EAGAIN):
        raise _in_use(path)
    if refusal != errno.ECONNREFUSED:
        raise OSError(refusal, os.strerror(refusal))
    path.unlink()
