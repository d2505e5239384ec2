"""Bytes to lines (§5.1): JSON Lines with a size limit that holds before the newline arrives."""

from __future__ import annotations

from consilium.errors import ErrorCode, PeerError

MAX_LINE_BYTES = 512 * 1024
"""Largest line that the Arbiter accepts, newline excluded.

JSON may write any byte of a text as six (``\\u0000``), so the largest SPEECH takes 384 KiB at worst.
"""

MAX_ARBITER_LINE_BYTES = 32 * 1024 * 1024
"""Largest line that a seat or an operator accepts from the Arbiter, newline excluded.

A CONTEXT holds what others said since the recipient's last turn: 64 seats with the largest SPEECH each
take 24 MiB at worst.
"""


class LineFramer:
    """Cut a byte stream into lines. Memory stays below the limit plus one chunk, whatever arrives."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self.limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._failed = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take ``data``; return the lines that it completes, without their newlines.

        Raises `PeerError` (TOO_LARGE) once a line is over the limit, in place of what the same ``data``
        completed before it. From then on the framer refuses everything and holds nothing.
        """
        if self._failed:
            raise self._too_large()
        if not self._buffer and data.endswith(b"\n") and len(data) <= self.limit:
            return data.split(b"\n")[:-1]  # as nearly everything comes
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
            self._failed = True
            self._buffer.clear()
            raise self._too_large()

    def _too_large(self) -> PeerError:
        return PeerError(ErrorCode.TOO_LARGE, f"a line may hold at most {self.limit} bytes")
