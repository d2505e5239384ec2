"""What streams of our own have in common over any kind of socket: how it is written to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from anyio.abc import SocketStream

if TYPE_CHECKING:
    import socket


class RawStream(SocketStream):
    """A connected socket, which it takes over. One task may receive while another sends."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)  # noqa: FBT003 - positional only
        self._socket = connected

    @property
    def _raw_socket(self) -> socket.socket:
        return self._socket

    async def _send_all(self, item: bytes) -> None:
        """Write all of ``item``. Raises as every stream of anyio does."""
        left = memoryview(item)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                await anyio.wait_writable(self._socket)
            except OSError as error:
                raise self._lost() from error

    def _lost(self) -> Exception:
        return anyio.ClosedResourceError() if self._socket.fileno() < 0 else anyio.BrokenResourceError()
