"""A UNIX socket as a byte stream, on the readiness of its descriptor alone.

anyio's own leaves a reader behind on a descriptor that it has closed, and trips over a cancellation that
meets arriving bytes: a server whose peers come and go would see both.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from consilium.rawstream import RawStream

if TYPE_CHECKING:
    from pathlib import Path

BUSY_PAUSE = 0.02
"""Seconds between attempts to connect to a listener whose queue is full: nobody is told when it is not."""


class UnixStream(RawStream):
    """A connected UNIX socket, which it takes over. One task may receive while another sends."""

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Return what has arrived. Raises as every stream of anyio does."""
        await anyio.lowlevel.checkpoint()
        while True:
            try:
                data = self._socket.recv(max_bytes)
            except BlockingIOError:
                await anyio.wait_readable(self._socket)
            except OSError as error:
                raise self._lost() from error
            else:
                if not data:
                    raise anyio.EndOfStream
                return data

    async def send(self, item: bytes) -> None:
        """Send all of ``item``. Raises as every stream of anyio does."""
        await anyio.lowlevel.checkpoint()
        await self._send_all(item)

    async def send_eof(self) -> None:
        """Say that nothing more will be sent."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            raise self._lost() from error

    async def aclose(self) -> None:
        """Close; whoever waits on it is told that it is closed here."""
        if self._socket.fileno() >= 0:
            anyio.notify_closing(self._socket)
            self._socket.close()
        await anyio.lowlevel.checkpoint()


async def connect_unix(path: Path | str) -> UnixStream:
    """Connect to the socket at ``path``. Raises `OSError`."""
    made = socket.socket(socket.AF_UNIX)
    try:
        made.setblocking(False)  # noqa: FBT003 - positional only
        while True:
            try:
                made.connect(os.fspath(path))
            except BlockingIOError:
                await anyio.sleep(BUSY_PAUSE)
            else:
                return UnixStream(made)
    except BaseException:
        made.close()
        raise
