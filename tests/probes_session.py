"""Probes by somebody who is authenticated: what TLS does not allow any more, and floods."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from probing import BAD_MAC, DECODE, ENDS, OVERFLOW, SYNTAX, UNEXPECTED, VERSION, Probe, kind, raw
from standing import line
from tls13 import (
    ALERT,
    CCS,
    CERTIFICATE_REQUEST,
    END_OF_EARLY_DATA,
    FINISHED,
    HANDSHAKE,
    KEY_UPDATE,
    NEW_TICKET,
    TEXT,
    Client,
    message,
    record,
)


def member(act: Callable[[Client], None]) -> Callable[[Client], None]:
    """An authenticated client that has been greeted as one."""

    def after(client: Client) -> None:
        client.shake_hands()
        client.send(line("PING", ts=1))
        told = client.next()
        assert told is not None
        assert b"PONG" in told[1]
        act(client)

    return after


UPDATE = message(KEY_UPDATE, b"\0")
ASKING_UPDATE = message(KEY_UPDATE, b"\1")


def updates(count: int, body: bytes) -> Callable[[Client], None]:
    def act(client: Client) -> None:
        for _ in range(count):
            client.send(body, HANDSHAKE)
            assert client.writing is not None
            client.writing = client.writing.updated()

    return act


def _both(*records: tuple[bytes, int]) -> Callable[[Client], None]:
    def act(client: Client) -> None:
        for body, content in records:
            client.send(body, content)

    return act


@kind
def after_the_handshake() -> Iterator[Probe]:
    said: dict[str, tuple[Callable[[Client], None], set[str]]] = {
        "noise": (raw(record(TEXT, b"\xaa" * 64)), BAD_MAC),
        "plain text": (raw(record(TEXT, line("REG", name="plain"))), BAD_MAC),
        "no record at all": (raw(line("REG", name="plain")), ENDS | UNEXPECTED | VERSION | OVERFLOW),
        "http": (raw(b"GET / HTTP/1.1\r\n\r\n"), ENDS | UNEXPECTED | VERSION | OVERFLOW),
        "a plain handshake record": (raw(record(HANDSHAKE, UPDATE)), UNEXPECTED),
        "a second ClientHello": (lambda c: c.send(c.hello(), HANDSHAKE), UNEXPECTED),
        "a Certificate": (lambda c: c.send(c.certificate(), HANDSHAKE), UNEXPECTED),
        "a CertificateRequest": (
            lambda c: c.send(message(CERTIFICATE_REQUEST, b"\0\0\0"), HANDSHAKE),
            UNEXPECTED,
        ),
        "a Finished": (lambda c: c.send(message(FINISHED, bytes(32)), HANDSHAKE), UNEXPECTED),
        "a ticket": (lambda c: c.send(message(NEW_TICKET, bytes(12)), HANDSHAKE), UNEXPECTED),
        "an end of early data": (lambda c: c.send(message(END_OF_EARLY_DATA, b""), HANDSHAKE), UNEXPECTED),
        "a KeyUpdate of 2": (lambda c: c.send(message(KEY_UPDATE, b"\2"), HANDSHAKE), SYNTAX),
        "a KeyUpdate of no bytes": (lambda c: c.send(message(KEY_UPDATE, b""), HANDSHAKE), SYNTAX),
        "a KeyUpdate and more": (lambda c: c.send(UPDATE + b"\0", HANDSHAKE), UNEXPECTED | SYNTAX),
        "the old key after a KeyUpdate": (_both((UPDATE, HANDSHAKE), (b"x", TEXT)), BAD_MAC),
        "an empty handshake record": (lambda c: c.send(b"", HANDSHAKE), UNEXPECTED | DECODE),
        "a CCS": (raw(record(CCS, b"\1")), UNEXPECTED),
        "a sealed CCS": (lambda c: c.send(b"\1", CCS), UNEXPECTED),
        "type 0": (lambda c: c.send(b"", 0), UNEXPECTED),
        "type 99": (lambda c: c.send(b"x", 99), UNEXPECTED),
        "over the size": (lambda c: c.send(bytes(16385)), OVERFLOW),
        "far over the size": (raw(record(TEXT, bytes(16641))), OVERFLOW),
        "a fatal alert": (lambda c: c.send(b"\2\x28", ALERT), ENDS | {"close_notify"}),
        "an alert of one byte": (lambda c: c.send(b"\2", ALERT), UNEXPECTED | DECODE),
        "goodbye": (lambda c: c.send(b"\1\0", ALERT), {"close_notify"} | ENDS),
        "goodbye and more": (
            _both((b"\1\0", ALERT), (line("REG", name="ghost"), TEXT)),
            {"close_notify"} | ENDS,
        ),
        "half a record": (raw(record(TEXT, b"x" * 30)[:20]), {"close_notify"} | ENDS),
    }
    for label, (act, endings) in said.items():
        yield Probe(label, member(act), endings, member=True, door="control")


@kind
def floods() -> Iterator[Probe]:
    """Much that says nothing: bounded, and then refused."""
    cut = {"close_notify"} | ENDS | UNEXPECTED | BAD_MAC
    yield Probe(
        "2,000 KeyUpdates", member(updates(2000, UPDATE)), cut, member=True, door="control", waits=True
    )
    yield Probe(
        "2,000 KeyUpdates that ask for one",
        member(updates(2000, ASKING_UPDATE)),
        cut,
        member=True,
        door="control",
        waits=True,
    )
    yield Probe(
        "3,000 records without text", member(_many(3000, b"")), cut, member=True, door="control", waits=True
    )
    yield Probe(
        "200 records of padding",
        member(_many(200, b"", padding=4000)),
        cut,
        member=True,
        door="control",
        waits=True,
    )
    yield Probe(
        "3,000 bytes in as many records",
        member(_many(3000, b"x")),
        cut,
        member=True,
        door="control",
        waits=True,
    )
    yield Probe(
        "600 warnings",
        member(_many(600, b"\1\x5a", kind=ALERT)),
        cut,
        member=True,
        door="control",
        waits=True,
    )
    yield Probe(
        "a line of 2 MiB", member(_many(128, b"x" * 16384)), cut, member=True, door="control", waits=True
    )


def _many(count: int, body: bytes, kind: int = TEXT, padding: int = 0) -> Callable[[Client], None]:
    def act(client: Client) -> None:
        assert client.writing is not None
        client.send_raw(b"".join(client.writing.seal(kind, body, padding) for _ in range(count)))

    return act
