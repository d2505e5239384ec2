"""The port that Prometheus asks: GET /metrics, and nothing else. Plain HTTP/1.1, one request a connection.

1. A visitor has `PATIENCE` seconds for everything, whatever it sends or does not read.
2. When too many are inside, the one that came first goes: Prometheus is done long before that, and the silent
   are not.
3. A page is made at most every `FRESH` seconds, and by one thread at a time: however often somebody asks, the
   debate has its processor.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING

import anyio
import anyio.abc
import anyio.to_thread

from arbiter.edge.listener import BACK_OFF_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anyio.abc import SocketListener, SocketStream, TaskGroup

log = logging.getLogger("arbiter")

PATIENCE = 5.0
MOST_INSIDE = 32
FRESH = 1.0

HEAD_BYTES = 8192
"""Longest request, and most that is read of one after its answer."""

PATH = "/metrics"

_REQUEST = re.compile(rb"([A-Z]{1,16}) (\S{1,4000}) HTTP/1\.[01]")


class MetricsDoor:
    """Serves one page. ``on_served`` is called whenever somebody has been given it."""

    def __init__(
        self, make: Callable[[], Callable[[], bytes]], content_type: str, *, fresh: float = FRESH
    ) -> None:
        """``make`` is called on the event loop; what it returns makes the page, in a thread."""
        self._make = make
        self._content_type = content_type
        self._fresh = fresh
        self._lock = anyio.Lock()
        self._page = b""
        self._made_at = float("-inf")
        self._inside: dict[anyio.CancelScope, None] = {}
        self._broken = False
        self.served_at = float("-inf")
        """When somebody was last given the page, in the event loop's time."""
        self.on_served: Callable[[], None] = lambda: None

    async def serve(self, listeners: Sequence[SocketListener]) -> None:
        """Serve until cancelled; then close the listeners."""
        try:
            async with anyio.create_task_group() as visitors:
                for listener in listeners:
                    visitors.start_soon(self._accept, listener, visitors)
        finally:
            with anyio.CancelScope(shield=True):
                for listener in listeners:
                    await listener.aclose()

    async def _accept(self, listener: SocketListener, visitors: TaskGroup) -> None:
        while True:
            try:
                stream = await listener.accept()
            except anyio.ClosedResourceError:
                return
            except OSError:  # out of descriptors, most likely, until somebody leaves
                await anyio.sleep(BACK_OFF_SECONDS)
            else:
                visitors.start_soon(self._visit, stream)

    async def _visit(self, stream: SocketStream) -> None:
        if len(self._inside) >= MOST_INSIDE:
            next(iter(self._inside)).cancel()
        try:
            with anyio.move_on_after(PATIENCE) as scope, suppress(anyio.BrokenResourceError):
                self._inside[scope] = None
                await self._answer(stream)
        finally:
            self._inside.pop(scope, None)
            await anyio.aclose_forcefully(stream)

    async def _answer(self, stream: SocketStream) -> None:
        status = judge(await _head(stream))
        if status is HTTPStatus.OK and (page := await self._current()) is not None:
            await stream.send(_response(status, self._content_type, page))
            self.served_at = anyio.current_time()
            self.on_served()
        else:
            status = HTTPStatus.INTERNAL_SERVER_ERROR if status is HTTPStatus.OK else status
            await stream.send(_response(status, "text/plain", f"{status} {status.phrase}\n".encode()))
        # Closed with something unread, the connection would be reset, and perhaps the answer lost.
        await stream.send_eof()
        left = HEAD_BYTES
        with suppress(anyio.EndOfStream):
            while left > 0:
                left -= len(await stream.receive(left))

    async def _current(self) -> bytes | None:
        """The page, made anew if it is old; None when it cannot be made."""
        async with self._lock:
            now = anyio.current_time()
            if now - self._made_at >= self._fresh:
                try:
                    write = self._make()
                    self._page = await anyio.to_thread.run_sync(write)
                except Exception:
                    # A mistake in a figure may not touch the debate. Said once: scrapes come for ever.
                    if not self._broken:
                        log.exception("a bug in the metrics, and nothing else: please report what follows")
                    self._broken = True
                    return None
                self._made_at = now
            return self._page


def judge(head: bytes | None) -> HTTPStatus:
    """What to answer to a request, of which ``head`` is everything up to its first empty line."""
    if head is None:
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    found = _REQUEST.fullmatch(head.split(b"\r\n", 1)[0])
    if found is None:
        return HTTPStatus.BAD_REQUEST
    if found[2].split(b"?", 1)[0] != PATH.encode():
        return HTTPStatus.NOT_FOUND
    return HTTPStatus.OK if found[1] == b"GET" else HTTPStatus.METHOD_NOT_ALLOWED


async def _head(stream: SocketStream) -> bytes | None:
    """A request up to its empty line, or to the end of what comes; None if it is too long."""
    head = b""
    with suppress(anyio.EndOfStream):
        while b"\r\n\r\n" not in head:
            if len(head) >= HEAD_BYTES:
                return None
            head += await stream.receive(HEAD_BYTES)
    return head


def _response(status: HTTPStatus, content_type: str, body: bytes) -> bytes:
    allow = "Allow: GET\r\n" if status is HTTPStatus.METHOD_NOT_ALLOWED else ""
    head = (
        f"HTTP/1.1 {status} {status.phrase}\r\nContent-Type: {content_type}\r\n{allow}"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
