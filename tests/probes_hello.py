"""Probes of the ClientHello: cut, of other lengths, of other content, byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from probing import (
    BAD_MAC,
    DECODE,
    ENDS,
    GOES_ON,
    OVERFLOW,
    PARAMETER,
    SYNTAX,
    UNEXPECTED,
    VERSION,
    Probe,
    greeting,
    kind,
    raw,
    template,
    with_extensions,
)
from standing import line
from tls13 import CLIENT_HELLO, HANDSHAKE, TEXT, extension, message, record, vector

ANYTHING_SAID = (
    SYNTAX
    | UNEXPECTED
    | VERSION
    | BAD_MAC
    | OVERFLOW
    | ENDS
    | {"missing_extension", "handshake_failure", "unrecognized_name", "unsupported_extension"}
)


@kind
def cut_hello() -> Iterator[Probe]:
    whole = record(HANDSHAKE, template().hello())
    for size in range(1, len(whole), 5):
        yield Probe(f"after {size} bytes", raw(whole[:size]), ENDS)


@kind
def cut_hello_in_a_whole_record() -> Iterator[Probe]:
    """The record is whole, the message in it is not, and says so or does not."""
    hello = template().hello()
    for size in range(4, len(hello), 6):
        body = hello[4:size]
        yield Probe(
            f"{size} bytes that say so",
            raw(record(HANDSHAKE, message(CLIENT_HELLO, body))),
            SYNTAX | {"missing_extension", "protocol_version", "handshake_failure"},
        )


@kind
def message_lengths() -> Iterator[Probe]:
    hello = template().hello()
    for off in (-100, -10, -1):
        body = message(CLIENT_HELLO, hello[4:], length=len(hello) - 4 + off)
        yield Probe(
            f"{off}", raw(record(HANDSHAKE, body)), SYNTAX | UNEXPECTED | VERSION | {"missing_extension"}
        )
    for off in (1, 100, 10_000):
        body = message(CLIENT_HELLO, hello[4:], length=len(hello) - 4 + off)
        yield Probe(f"+{off}", raw(record(HANDSHAKE, body)), ENDS)
    body = message(CLIENT_HELLO, hello[4:], length=0xFFFFFF)
    yield Probe("16 MiB", raw(record(HANDSHAKE, body)), SYNTAX | ENDS)


@kind
def message_types() -> Iterator[Probe]:
    body = template().hello()[4:]
    for value in (0, 2, 4, 8, 11, 13, 15, 20, 24, 67, 254, 255):
        yield Probe(f"type {value}", raw(record(HANDSHAKE, message(value, body))), UNEXPECTED | DECODE)


@kind
def hello_fields() -> Iterator[Probe]:
    made = template()
    yield Probe(
        "no extensions", greeting(made.hello(b"")), VERSION | {"missing_extension", "handshake_failure"}
    )
    for suites in (
        b"",
        b"\x13",
        b"\x13\x01\x13",
        b"\xc0\x2f",
        b"\x00\xff",
        bytes(2),
    ):
        yield Probe(
            f"suites {suites.hex()}", greeting(made.hello(suites=suites)), SYNTAX | {"handshake_failure"}
        )
    for compression in (b"", b"\1", b"\1\0", b"\0\1", bytes(255)):
        yield Probe(
            f"compression {compression.hex()[:8]}",
            greeting(made.hello(compression=compression)),
            SYNTAX | GOES_ON if compression == bytes(255) else SYNTAX,
        )
    for size in (0, 1, 31):
        yield Probe(f"session of {size}", greeting(made.hello(session=bytes(size))), GOES_ON)
    for size in (33, 255):
        yield Probe(f"session of {size}", greeting(made.hello(session=bytes(size))), SYNTAX)
    for version in (0x0000, 0x0300, 0x0301, 0x0304, 0xFFFF):
        yield Probe(
            f"legacy {version:#06x}",
            raw(record(HANDSHAKE, made.hello(version=version))),
            SYNTAX | VERSION | ENDS | {"handshake_failure"},
        )


@kind
def versions_offered() -> Iterator[Probe]:
    for offered in (b"\x03\x03", b"\x03\x01\x03\x02", b"\x03\x05", b"\x00\x00", b"\x7f\x1c", b"\xff\xff"):
        hello = with_extensions(supported_versions=extension(43, vector(1, offered)))
        yield Probe(offered.hex(), greeting(hello), VERSION)
    for odd in (b"", b"\0", b"\1\3", b"\3\3\4\3", b"\2\3", b"\4\3\4", b"\xff\3\4"):
        hello = with_extensions(supported_versions=extension(43, odd))
        yield Probe(f"odd {odd.hex()}", greeting(hello), SYNTAX | VERSION)
    yield Probe("none", greeting(with_extensions(supported_versions=None)), VERSION)


@kind
def key_shares() -> Iterator[Probe]:
    share = b"\x00\x1d" + vector(2, bytes(32))
    odd = {
        "none": (b"", DECODE),
        "an empty list": (
            vector(2, b""),
            SYNTAX | {"missing_extension", "handshake_failure", "unexpected_message"} | ENDS,
        ),
        "zero": (vector(2, share), PARAMETER | {"internal_error"}),
        "too short": (vector(2, b"\x00\x1d" + vector(2, bytes(31))), SYNTAX),
        "too long": (vector(2, b"\x00\x1d" + vector(2, bytes(33))), SYNTAX),
        "of no bytes": (vector(2, b"\x00\x1d" + vector(2, b"")), SYNTAX),
        "for P-256 but of X25519": (vector(2, b"\x00\x17" + vector(2, bytes(32))), SYNTAX | ENDS),
        "a point off the curve": (vector(2, b"\x00\x17" + vector(2, b"\4" + bytes(64))), SYNTAX | ENDS),
        "unknown": (vector(2, b"\xfa\xfa" + vector(2, b"\0")), SYNTAX | ENDS | UNEXPECTED),
        "twice": (vector(2, share + share), SYNTAX),
        "longer than it is": (struct.pack("!H", 99) + share, DECODE),
        "and more": (vector(2, share) + b"\0", DECODE),
    }
    for label, (body, endings) in odd.items():
        yield Probe(label, raw(record(HANDSHAKE, with_extensions(key_share=extension(51, body)))), endings)


@kind
def odd_extensions() -> Iterator[Probe]:
    made = template()
    good = made.extensions()
    for name, data in good.items():
        yield Probe(f"{name} twice", greeting(made.hello(b"".join(good.values()) + data)), SYNTAX)
        yield Probe(
            f"{name} longer than it is",
            greeting(with_extensions(**{name: data[:2] + b"\xff\xff" + data[4:]})),
            DECODE,
        )
        yield Probe(
            f"{name} shorter than it is",
            greeting(with_extensions(**{name: data[:3] + bytes([data[3] - 1]) + data[4:]})),
            SYNTAX,
        )
        yield Probe(
            f"{name} empty",
            greeting(with_extensions(**{name: extension(int.from_bytes(data[:2], "big"), b"")})),
            SYNTAX | VERSION,
        )
    wanted = {
        "supported_groups": {"missing_extension", "handshake_failure"} | PARAMETER,
        "signature_algorithms": {"missing_extension", "handshake_failure"},
        "key_share": {"missing_extension", "handshake_failure"},
    }
    for name, endings in wanted.items():
        yield Probe(f"no {name}", greeting(with_extensions(**{name: None})), endings)
    for label, names in {
        "of two hosts": vector(2, (b"\0" + vector(2, b"a")) * 2),
        "of no bytes": vector(2, b"\0" + vector(2, b"")),
        "with a NUL": vector(2, b"\0" + vector(2, b"local\0host")),
        "of 300 bytes": vector(2, b"\0" + vector(2, b"a" * 300)),
        "of another type": vector(2, b"\1" + vector(2, b"localhost")),
    }.items():
        yield Probe(
            f"server name {label}",
            greeting(with_extensions(server_name=extension(0, names))),
            SYNTAX | {"unrecognized_name"} | GOES_ON,
        )


@kind
def early_data() -> Iterator[Probe]:
    """0-RTT without a ticket: refused, or skipped; never heard."""
    early = extension(42, b"")
    psk = extension(45, vector(1, b"\1"))
    binder = extension(41, vector(2, vector(2, bytes(64)) + bytes(4)) + vector(2, vector(1, bytes(32))))
    made = template()
    good = b"".join(made.extensions().values())
    for label, more in {
        "alone": early,
        "with a mode": psk + early,
        "with a ticket": psk + early + binder,
    }.items():
        hello = record(HANDSHAKE, made.hello(good + more))
        text = record(TEXT, line("REG", name="early") + bytes(40))
        yield Probe(label, raw(hello + text), SYNTAX | UNEXPECTED | BAD_MAC | ENDS | {"missing_extension"})
        yield Probe(
            f"{label}, a flood",
            raw(hello + text * 500),
            SYNTAX | UNEXPECTED | BAD_MAC | ENDS | {"missing_extension"},
        )
    yield Probe("a ticket last but one", greeting(made.hello(binder + good)), SYNTAX | {"missing_extension"})


@kind
def flipped_hello() -> Iterator[Probe]:
    """Each byte another. Where that is no mistake the handshake fails at the latest at the Finished."""
    hello = template().hello()
    for at in range(len(hello)):
        spoiled = hello[:at] + bytes([hello[at] ^ 0xFF]) + hello[at + 1 :]
        yield Probe(f"byte {at}", raw(record(HANDSHAKE, spoiled)), ANYTHING_SAID)
