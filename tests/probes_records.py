"""Probes before anybody is known: other protocols, and records that are none."""

from __future__ import annotations

from collections.abc import Iterator

from probing import (
    BAD_MAC,
    DECODE,
    ENDS,
    GOES_ON,
    OVERFLOW,
    SYNTAX,
    UNEXPECTED,
    VERSION,
    Probe,
    greeting_in,
    kind,
    raw,
    template,
)
from standing import line
from tls13 import ALERT, CCS, HANDSHAKE, TEXT, record


@kind
def other_protocols() -> Iterator[Probe]:
    spoken = {
        "http": (b"GET / HTTP/1.1\r\nHost: arbiter\r\n\r\n", ENDS | SYNTAX | VERSION | UNEXPECTED),
        "http/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ENDS | VERSION | UNEXPECTED),
        "ssh": (b"SSH-2.0-OpenSSH_9.6\r\n", ENDS | VERSION | UNEXPECTED),
        "smtp": (b"EHLO arbiter\r\n", ENDS | VERSION | UNEXPECTED),
        "json": (line("REG", name="plain"), ENDS | VERSION | UNEXPECTED),
        "zeros": (bytes(4096), ENDS | VERSION | UNEXPECTED),
        "ones": (b"\xff" * 4096, ENDS | VERSION | UNEXPECTED),
        "ssl 2": (
            b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10" + bytes(37),
            ENDS | VERSION | UNEXPECTED | SYNTAX,
        ),
        "proxy": (b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n", ENDS | VERSION | UNEXPECTED),
    }
    for label, (data, endings) in spoken.items():
        yield Probe(label, raw(data), endings)


@kind
def record_types() -> Iterator[Probe]:
    hello = template().hello()
    for value in (0, 1, 19, CCS, ALERT, TEXT, 24, 25, 26, 64, 127, 128, 200, 255):
        yield Probe(
            f"type {value}",
            raw(record(value, hello)),
            ENDS | UNEXPECTED | SYNTAX | VERSION | BAD_MAC | OVERFLOW,
        )
    for level, code in ((1, 0), (2, 0), (2, 40), (1, 90), (3, 1), (0, 0), (2, 255)):
        yield Probe(
            f"alert {level} {code}", raw(record(ALERT, bytes([level, code]))), ENDS | UNEXPECTED | SYNTAX
        )
    for size in (0, 1, 3, 100):
        yield Probe(f"alert of {size} bytes", raw(record(ALERT, bytes(size))), ENDS | UNEXPECTED | SYNTAX)


@kind
def record_versions() -> Iterator[Probe]:
    hello = template().hello()
    for version in (0x0301, 0x0302, 0x0303):
        yield Probe(f"{version:#06x}", greeting_in(record(HANDSHAKE, hello, version=version)), GOES_ON)
    for version in (0x0000, 0x0200, 0x0405, 0x7F1C, 0xFEFF, 0xFFFF):
        yield Probe(
            f"{version:#06x}", raw(record(HANDSHAKE, hello, version=version)), ENDS | VERSION | UNEXPECTED
        )


@kind
def record_lengths() -> Iterator[Probe]:
    hello = template().hello()
    for off in (-100, -50, -5, -4, -1):
        claimed = len(hello) + off
        # What is left over begins the next record, which has no such type.
        yield Probe(
            f"{off}", raw(record(HANDSHAKE, hello, length=claimed)), ENDS | UNEXPECTED | VERSION | DECODE
        )
    for off in (1, 100, 16000):
        yield Probe(f"+{off}", raw(record(HANDSHAKE, hello, length=len(hello) + off)), ENDS)
    for size in (16385, 16640, 16641, 20000, 65535):
        body = hello + bytes(size - len(hello))
        yield Probe(f"{size} bytes", raw(record(HANDSHAKE, body)), ENDS | OVERFLOW | DECODE)
    yield Probe("empty", raw(record(HANDSHAKE, b"")), ENDS | UNEXPECTED | DECODE)
    yield Probe("empty, many times", raw(record(HANDSHAKE, b"") * 500), ENDS | UNEXPECTED | DECODE)
    yield Probe("empty CCS", raw(record(CCS, b"")), ENDS | UNEXPECTED | DECODE)
    yield Probe("CCS, many times", raw(record(CCS, b"\1") * 500), ENDS | UNEXPECTED)


@kind
def pieces() -> Iterator[Probe]:
    """A good hello in small records is a good hello."""
    hello = template().hello()
    for size in (1, 2, 7, 50, 200):
        parts = [hello[at : at + size] for at in range(0, len(hello), size)]
        yield Probe(f"of {size}", greeting_in(b"".join(record(HANDSHAKE, part) for part in parts)), GOES_ON)
