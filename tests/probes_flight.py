"""Probes of the client's flight: certificates that are none, stolen ones, messages out of order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cryptography.hazmat.primitives.asymmetric import ec
from probing import BAD_MAC, DECODE, ENDS, GOES_ON, OVERFLOW, PARAMETER, SYNTAX, UNEXPECTED, Probe, kind
from standing import line
from tls13 import (
    ALERT,
    CCS,
    CERTIFICATE,
    CERTIFICATE_REQUEST,
    CERTIFICATE_VERIFY,
    CLIENT_HELLO,
    END_OF_EARLY_DATA,
    FINISHED,
    HANDSHAKE,
    KEY_UPDATE,
    NEW_TICKET,
    TEXT,
    Client,
    extension,
    message,
    record,
    vector,
)


def answering(reply: Callable[[Client], list[bytes]]) -> Callable[[Client], None]:
    """A good hello, and ``reply`` as handshake messages under the handshake's key."""

    def act(client: Client) -> None:
        client.send_hello()
        client.read_server_flight()
        client.send_flight(reply(client))

    return act


def proving(certificate: Callable[[Client], bytes]) -> Callable[[Client], None]:
    """A flight with another Certificate, and all that follows right for it."""

    def reply(client: Client) -> list[bytes]:
        first = certificate(client)
        verify = client.verify(client.transcript + first)
        return [first, verify, client.finished(client.transcript + first + verify)]

    return answering(reply)


CERTIFICATE_ALERTS = (
    DECODE
    | PARAMETER
    | {
        "bad_certificate",
        "certificate_unknown",
        "certificate_expired",
        "certificate_required",
        "unknown_ca",
        "unsupported_certificate",
        "decrypt_error",
        "handshake_failure",
        "internal_error",
    }
)


@kind
def flipped_certificate() -> Iterator[Probe]:
    for at in range(4, 480, 3):

        def spoiled(client: Client, at: int = at) -> bytes:
            leaf, *above = client.chain
            at = min(at, len(leaf) - 1)
            return client.certificate([leaf[:at] + bytes([leaf[at] ^ 0x55]) + leaf[at + 1 :], *above])

        yield Probe(f"byte {at}", proving(spoiled), CERTIFICATE_ALERTS, member=True)


def _cut_at(size: int) -> Callable[[Client], bytes]:
    return lambda client: client.certificate([client.chain[0][:size]])


def _instead(junk: bytes) -> Callable[[Client], bytes]:
    return lambda client: client.certificate([junk])


@kind
def cut_certificate() -> Iterator[Probe]:
    for size in (0, 1, 2, 4, 10, 100, 300, 400):
        yield Probe(
            f"{size} bytes of it",
            proving(_cut_at(size)),
            CERTIFICATE_ALERTS,
            member=True,
        )
    for junk in (b"\x30\x80", b"\x30\x84\xff\xff\xff\xff", bytes(500), b"\x30\x82\x01\x00" + bytes(256)):
        yield Probe(
            f"junk {junk[:4].hex()}",
            proving(_instead(junk)),
            CERTIFICATE_ALERTS,
            member=True,
        )


@kind
def odd_chains() -> Iterator[Probe]:
    shapes: dict[str, tuple[Callable[[Client], bytes], set[str]]] = {
        "turned round": (lambda c: c.certificate(c.chain[::-1]), CERTIFICATE_ALERTS),
        "the leaf only": (lambda c: c.certificate(c.chain[:1]), {"unknown_ca"}),
        "the authority only": (lambda c: c.certificate(c.chain[1:]), CERTIFICATE_ALERTS),
        "a hundred": (
            lambda c: c.certificate([*c.chain, *[c.chain[1]] * 100]),
            CERTIFICATE_ALERTS | {"certificate_unknown"} | GOES_ON | ENDS | {"close_notify"},
        ),
        "with a context": (lambda c: c.certificate(context=b"x"), SYNTAX),
        "with an unknown extension": (
            lambda c: message(
                CERTIFICATE, b"\0" + vector(3, vector(3, c.chain[0]) + vector(2, extension(0xFAFA, b"")))
            ),
            CERTIFICATE_ALERTS | {"unsupported_extension"},
        ),
        "longer than it is": (lambda c: message(CERTIFICATE, b"\0\0\xff\xff" + c.chain[0]), DECODE),
        "of 1 MiB": (lambda c: c.certificate([bytes(1 << 20)]), CERTIFICATE_ALERTS | ENDS),
    }
    for label, (shape, endings) in shapes.items():
        yield Probe(label, proving(shape), endings, member=True)


def _with_key(change: Callable[[Client, bytes], bytes]) -> Callable[[Client], list[bytes]]:
    def reply(client: Client) -> list[bytes]:
        first = client.certificate()
        verify = change(client, client.transcript + first)
        return [first, verify, client.finished(client.transcript + first + verify)]

    return reply


@kind
def stolen_certificate() -> Iterator[Probe]:
    """Somebody else's certificate, without its key."""
    changes: dict[str, tuple[Callable[[Client, bytes], bytes], set[str]]] = {
        "signed with another key": (_another_key, {"decrypt_error"}),
        "signed for a server": (
            lambda c, t: c.verify(t, words=b"TLS 1.3, server CertificateVerify"),
            {"decrypt_error"},
        ),
        "of another transcript": (lambda c, t: c.verify(t + b"x"), {"decrypt_error"}),
        "of another scheme": (lambda c, t: c.verify(t, scheme=0x0804), PARAMETER | {"handshake_failure"}),
        "of an old scheme": (lambda c, t: c.verify(t, scheme=0x0203), PARAMETER | {"handshake_failure"}),
        "of no scheme": (lambda c, t: c.verify(t, scheme=0), PARAMETER | {"handshake_failure"}),
        "without a signature": (
            lambda c, t: message(CERTIFICATE_VERIFY, b"\4\3" + vector(2, b"")),
            {"decrypt_error"} | SYNTAX,
        ),
        "of zeros": (
            lambda c, t: message(CERTIFICATE_VERIFY, b"\4\3" + vector(2, bytes(70))),
            {"decrypt_error"},
        ),
        "longer than it is": (lambda c, t: message(CERTIFICATE_VERIFY, b"\4\3\xff\xff" + bytes(70)), SYNTAX),
        "empty": (lambda c, t: message(CERTIFICATE_VERIFY, b""), SYNTAX),
        "of 20,000 bytes": (
            lambda c, t: message(CERTIFICATE_VERIFY, b"\4\3" + vector(2, bytes(16000))),
            {"decrypt_error"} | SYNTAX,
        ),
    }
    for label, (change, endings) in changes.items():
        yield Probe(label, answering(_with_key(change)), endings, member=True)


def _another_key(client: Client, transcript: bytes) -> bytes:
    client.key = ec.generate_private_key(ec.SECP256R1())
    return client.verify(transcript)


def _says(odd: bytes) -> Callable[[Client], list[bytes]]:
    return lambda _: [odd]


def _finishes(odd: bytes) -> Callable[[Client], list[bytes]]:
    return lambda client: [*client.flight()[:2], odd]


@kind
def odd_flights() -> Iterator[Probe]:
    """Good messages in another order, other messages, or none."""

    def order(*wanted: int) -> Callable[[Client], list[bytes]]:
        return lambda client: [client.flight()[at] for at in wanted]

    for wanted, endings in (
        ((2,), UNEXPECTED),
        ((1, 0, 2), UNEXPECTED),
        ((0, 2), UNEXPECTED),
        ((0, 0, 1, 2), UNEXPECTED),
        ((0, 1, 1, 2), UNEXPECTED),
        ((0, 2, 1), UNEXPECTED),
        ((1,), UNEXPECTED),
    ):
        yield Probe(f"order {wanted}", answering(order(*wanted)), endings, member=True)
    for value in (CLIENT_HELLO, NEW_TICKET, END_OF_EARLY_DATA, CERTIFICATE_REQUEST, KEY_UPDATE, 0, 99):
        yield Probe(
            f"a message of type {value}",
            answering(_says(message(value, b"\0"))),
            UNEXPECTED,
            member=True,
        )
    for label, body in {"short": bytes(31), "long": bytes(33), "wrong": bytes(32), "empty": b""}.items():
        yield Probe(
            f"a Finished that is {label}",
            answering(_finishes(message(FINISHED, body))),
            {"decrypt_error"} | SYNTAX,
            member=True,
        )


@kind
def odd_records_in_the_handshake() -> Iterator[Probe]:
    def sends(data: Callable[[Client], bytes]) -> Callable[[Client], None]:
        def act(client: Client) -> None:
            client.send_hello()
            client.read_server_flight()
            client.send_raw(data(client))

        return act

    def sealed(kind: int, body: bytes, padding: int = 0) -> Callable[[Client], bytes]:
        def data(client: Client) -> bytes:
            assert client.writing is not None
            return client.writing.seal(kind, body, padding)

        return data

    yield Probe(
        "in plain",
        sends(lambda client: record(HANDSHAKE, b"".join(client.flight()))),
        UNEXPECTED | BAD_MAC,
        member=True,
    )
    yield Probe("sealed noise", sends(lambda _: record(TEXT, b"\xaa" * 64)), BAD_MAC)
    yield Probe("too short to be sealed", sends(lambda _: record(TEXT, b"\xaa" * 16)), BAD_MAC | DECODE)
    yield Probe("an empty record", sends(lambda _: record(TEXT, b"")), BAD_MAC | DECODE | UNEXPECTED)
    yield Probe("sealed nothing", sends(sealed(0, b"")), UNEXPECTED | BAD_MAC)
    yield Probe("only padding", sends(sealed(0, bytes(200))), UNEXPECTED | BAD_MAC)
    yield Probe("an empty message", sends(sealed(HANDSHAKE, b"")), UNEXPECTED | DECODE)
    yield Probe("text before it is time", sends(sealed(TEXT, line("REG", name="early"))), UNEXPECTED)
    yield Probe("a sealed CCS", sends(sealed(CCS, b"\1")), UNEXPECTED)
    yield Probe("type 99", sends(sealed(99, b"x")), UNEXPECTED)
    yield Probe("over the size", sends(sealed(HANDSHAKE, bytes(16385))), OVERFLOW)
    yield Probe("far over the size", sends(lambda _: record(TEXT, bytes(16641))), OVERFLOW)
    yield Probe("a CCS with two bytes", sends(lambda _: record(CCS, b"\1\1")), UNEXPECTED | PARAMETER)
    yield Probe("a fatal alert", sends(sealed(ALERT, b"\2\x28")), ENDS)
    yield Probe("an alert of one byte", sends(sealed(ALERT, b"\2")), ENDS | UNEXPECTED | DECODE)
