"""Bytes to lines (§5.1): JSON Lines with a size limit that holds before the newline arrives."""

from __future__ import annotations

from consilium.errors import ErrorCode, PeerError

MAX_LINE_BYTES = 256 * 1024
"""Largest line either end accepts, newline excluded."""


class LineFramer:
    """Cut a byte stream into lines. Memory stays below the limit plus one chunk, whatever arrives."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self.limit = limit
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take ``data``; return the lines that it completes, without their newlines.

        Raises `PeerError` (TOO_LARGE) once a line is over the limit; the framer is then of no more use.
        """
        self._buffer += data
        lines: list[bytes] = []
        start = 0
        end = self._buffer.find(b"\n", self._searched)
        while end >= 0:
            self._check(end - start)
            lines.append(bytes(self._buffer[start:end]))
            start = end + 1
            end = self._buffer.find(b"\n", start)
        del self._buffer[:start]
        self._searched = len(self._buffer)
        self._check(self._searched)
        return lines

    @property
    def partial(self) -> int:
        """How many bytes of an unfinished line are held."""
        return len(self._buffer)

    def _check(self, length: int) -> None:
        if length > self.limit:
            raise PeerError(ErrorCode.TOO_LARGE, f"a line may hold at most {self.limit} bytes")
