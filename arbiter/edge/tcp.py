"""A TCP connection of the Arbiter's, read as it comes.

anyio's own stream has the kernel watch a descriptor for every receive anew, and not after it: a tenth of
the Arbiter's time in a turn. Here it is watched from the first receive on, and what arrives meanwhile waits,
up to `MOST` bytes; then the peer waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque

import anyio
import anyio.lowlevel

from consilium.rawstream import RawStream

MOST = 32 * 1024
"""Bytes that are read at once, and so many unread ones are enough: at worst, twice as many wait."""


class TcpStream(RawStream):
    """A connected TCP socket, which it takes over. One task may receive while another sends."""

    def __init__(self, connected: socket.socket) -> None:
        super().__init__(connected)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._loop = asyncio.get_running_loop()
        self._arrived: deque[bytes] = deque()
        self._size = 0
        self._in_a_row = 0
        self._watched = False
        self._waiting: asyncio.Future[None] | None = None
        self._end: Exception | None = None

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Return what has arrived. Raises as every stream of anyio does."""
        if self._waiting is not None:
            raise anyio.BusyResourceError("reading from")
        if self._arrived:
            await anyio.lowlevel.checkpoint()
        while not self._arrived:
            await self._more()
        data = self._arrived.popleft()
        if len(data) > max_bytes:
            self._arrived.appendleft(data[max_bytes:])
            data = data[:max_bytes]
        self._size -= len(data)
        return data

    async def send(self, item: bytes) -> None:
        """Send all of ``item``. Raises as every stream of anyio does.

        Other tasks get their turn every `MOST` bytes, and not every time: that would cost more than to send.
        """
        self._in_a_row += len(item)
        if self._in_a_row >= MOST:
            self._in_a_row = 0
            await anyio.lowlevel.checkpoint()
        else:
            await anyio.lowlevel.checkpoint_if_cancelled()
        await self._send_all(item)

    async def send_eof(self) -> None:
        """Say that nothing more will be sent."""
        with contextlib.suppress(OSError):  # whoever is gone need not be told
            self._socket.shutdown(socket.SHUT_WR)

    async def aclose(self) -> None:
        """Close; whoever waits on it is told that it is closed here."""
        if self._socket.fileno() >= 0:
            self._watch(on=False)
            anyio.notify_closing(self._socket)
            self._socket.close()
            self._wake()
        await anyio.lowlevel.checkpoint()

    async def _more(self) -> None:
        """Wait until something has arrived, or raise that nothing will."""
        if self._socket.fileno() < 0:
            raise anyio.ClosedResourceError
        if isinstance(self._end, OSError):
            raise anyio.BrokenResourceError from self._end
        if self._end is not None:
            raise anyio.EndOfStream
        self._watch(on=True)
        self._waiting = self._loop.create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def _watch(self, *, on: bool) -> None:
        if on is not self._watched:
            self._watched = on
            if on:
                self._loop.add_reader(self._socket, self._read)
            else:
                self._loop.remove_reader(self._socket)

    def _read(self) -> None:
        """Take what there is: the event loop calls this when there is something."""
        try:
            data = self._socket.recv(MOST)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end = error
        else:
            if data:
                self._arrived.append(data)
                self._size += len(data)
            else:
                self._end = EOFError()
        if self._end is not None or self._size >= MOST:
            self._watch(on=False)
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
