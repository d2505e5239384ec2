"""The server that a TLS ClientHello names (RFC 8446 §4.1.2, RFC 6066 §3). Pure.

Fed with bytes as they come, in whatever pieces: a ClientHello may be split over records, and a record over
segments. The names of RFC 8446 are used for its parts.
"""

from __future__ import annotations

from wrapper.egress.verdicts import Outcome, RefusedError

HELLO_BYTES = 64 * 1024
"""The longest ClientHello; post-quantum key shares take two or three thousand bytes."""

_HANDSHAKE, _CLIENT_HELLO = 22, 1
_RECORD_HEADER, _MAX_RECORD = 5, 2**14
_MESSAGE_HEADER = 4
_SERVER_NAME, _ENCRYPTED_HELLO = 0, 0xFE0D
_HOST_NAME = 0


class Hello:
    """Finds the name in the first bytes of one connection."""

    def __init__(self) -> None:
        self.taken = bytearray()
        """Everything that was fed, to be passed on once the name is right."""
        self._at = 0  # where the next record begins in what was taken
        self._message = bytearray()

    def feed(self, data: bytes) -> str | None:
        """Take ``data``; return the name once it is known, and None while more is needed.

        Raises `RefusedError` for what is no ClientHello, and for one that names no server.
        """
        self.taken += data
        while len(self.taken) >= self._at + _RECORD_HEADER:
            kind, major, _, *length = self.taken[self._at : self._at + _RECORD_HEADER]
            size = int.from_bytes(length)
            if kind != _HANDSHAKE or major != 3 or not 0 < size <= _MAX_RECORD:
                raise _not_tls("no TLS record")
            end = self._at + _RECORD_HEADER + size
            if len(self.taken) < end:
                break
            self._message += self.taken[self._at + _RECORD_HEADER : end]
            self._at = end
            if (name := self._name()) is not None:
                return name
        return None

    def _name(self) -> str | None:
        """The name, once the message is whole."""
        if self._message[0] != _CLIENT_HELLO:
            raise _not_tls("no ClientHello")
        size = int.from_bytes(self._message[1:_MESSAGE_HEADER])
        if len(self._message) >= _MESSAGE_HEADER and size > HELLO_BYTES:
            raise _not_tls("the ClientHello is too long")
        if len(self._message) < _MESSAGE_HEADER + size or len(self._message) < _MESSAGE_HEADER:
            return None
        return server_name(bytes(self._message[_MESSAGE_HEADER : _MESSAGE_HEADER + size]))


def server_name(hello: bytes) -> str:
    """The one host that the body of a ClientHello names. Raises `RefusedError`."""
    body = _Vector(hello)
    body.take(2 + 32)  # legacy_version, random
    body.vector(1)  # legacy_session_id
    body.vector(2)  # cipher_suites
    body.vector(1)  # legacy_compression_methods
    if not body.rest:
        raise _no_name("names no server")
    extensions = body.vector(2)
    body.end()
    names: list[bytes] = []
    while extensions.rest:
        kind = extensions.number(2)
        content = extensions.vector(2)
        if kind == _ENCRYPTED_HELLO:
            raise _no_name("hides the server that it names")
        if kind == _SERVER_NAME:
            names += _names(content)
    if not names:
        raise _no_name("names no server")
    if len(names) > 1:
        raise _no_name("names more than one server")
    try:
        return names[0].decode("ascii")
    except UnicodeDecodeError:
        raise _not_tls("the server's name is none") from None


def _names(extension: _Vector) -> list[bytes]:
    entries = extension.vector(2)
    extension.end()
    found = []
    while entries.rest:
        if entries.number(1) != _HOST_NAME:
            raise _not_tls("a name of an unknown type")
        found.append(entries.vector(2).rest)
    return found


class _Vector:
    """Bytes that are taken from the front; too few of them are no ClientHello."""

    def __init__(self, content: bytes) -> None:
        self.rest = content

    def take(self, size: int) -> bytes:
        if len(self.rest) < size:
            raise _not_tls("the ClientHello is cut short")
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def vector(self, size: int) -> _Vector:
        """What is preceded by its length in ``size`` bytes."""
        return _Vector(self.take(self.number(size)))

    def end(self) -> None:
        if self.rest:
            raise _not_tls("the ClientHello goes on after its end")


def _not_tls(why: str) -> RefusedError:
    return RefusedError(Outcome.NOT_TLS, why)


def _no_name(why: str) -> RefusedError:
    return RefusedError(Outcome.NO_NAME, f"the ClientHello {why}")
