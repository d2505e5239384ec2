"""A listening socket, TCP or UNIX, on the readiness of its descriptor alone.

anyio's own leaves a reader behind on a descriptor that it has closed: a server whose peers come and go would
see that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
from anyio.abc import SocketListener

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from anyio.abc import SocketStream


class Listener(SocketListener):
    """A socket that listens, which it takes over."""

    def __init__(self, listening: socket.socket, stream: Callable[[socket.socket], SocketStream]) -> None:
        """``stream`` makes the stream of each connection, and takes its socket over."""
        listening.setblocking(False)  # noqa: FBT003 - positional only
        self._socket = listening
        self._stream = stream

    @property
    def _raw_socket(self) -> socket.socket:
        return self._socket

    async def accept(self) -> SocketStream:
        """Return the next connection. Raises `anyio.ClosedResourceError`, `OSError`."""
        await anyio.lowlevel.checkpoint()
        while self._socket.fileno() >= 0:
            try:
                return self._stream(self._socket.accept()[0])
            except BlockingIOError:
                await anyio.wait_readable(self._socket)
        raise anyio.ClosedResourceError

    async def aclose(self) -> None:
        """Close; an accept that waits ends."""
        if self._socket.fileno() >= 0:
            anyio.notify_closing(self._socket)
            self._socket.close()
        await anyio.lowlevel.checkpoint()
