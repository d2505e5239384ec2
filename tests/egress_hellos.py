"""TLS ClientHellos, well made and otherwise, and the pieces in which they may come."""

from __future__ import annotations

import functools
import ssl


@functools.cache
def real_hello(host: str | None) -> bytes:
    """What this machine's OpenSSL sends first to ``host``: made once a run, for its context is dear."""
    context = ssl.create_default_context()
    context.check_hostname = host is not None
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname=host)
    try:
        session.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError


def vector(content: bytes, size: int) -> bytes:
    """``content`` after its length in ``size`` bytes."""
    return len(content).to_bytes(size) + content


def extension(kind: int, content: bytes) -> bytes:
    return kind.to_bytes(2) + vector(content, 2)


def name_extension(*names: bytes, kind: int = 0) -> bytes:
    """server_name with one entry a name."""
    return extension(0, vector(b"".join(kind.to_bytes(1) + vector(name, 2) for name in names), 2))


def body(*extensions: bytes) -> bytes:
    """The body of a ClientHello with ``extensions``."""
    start = b"\x03\x03" + bytes(32) + vector(bytes(32), 1) + vector(b"\x13\x01", 2) + vector(b"\x00", 1)
    return start + vector(b"".join(extensions), 2)


def message(content: bytes, kind: int = 1) -> bytes:
    return kind.to_bytes(1) + vector(content, 3)


def records(data: bytes, *, size: int = 16384, kind: int = 22) -> bytes:
    """``data`` in records of at most ``size`` bytes."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(kind.to_bytes(1) + b"\x03\x01" + vector(piece, 2) for piece in pieces)


def hello_for(*names: bytes) -> bytes:
    """A whole ClientHello that names ``names``, in one record."""
    return records(message(body(extension(43, b"\x02\x03\x04"), name_extension(*names))))
