"""A TLS 1.3 client of few lines that can be made to say what no client would: for probes, and only for those.

It speaks X25519 and TLS_AES_128_GCM_SHA256, checks nothing that the server proves, and keeps its steps apart:

    client = Client.connect(port, credentials)
    client.send_hello()
    client.read_server_flight()
    client.send_flight(client.flight())
    client.send(b"...")             # text
    client.ending()                 # the alert's name, "closed", "reset" or "silent"

RFC 8446, by section: key schedule 7.1, records 5, handshake messages 4.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
import socket
import ssl
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

if TYPE_CHECKING:
    from collections.abc import Iterable

    from consilium.credentials import Credentials

CCS, ALERT, HANDSHAKE, TEXT = 20, 21, 22, 23
CLIENT_HELLO, NEW_TICKET, END_OF_EARLY_DATA, CERTIFICATE, CERTIFICATE_REQUEST = 1, 4, 5, 11, 13
CERTIFICATE_VERIFY, FINISHED, KEY_UPDATE = 15, 20, 24

RECORD = 16384
"""Most text in one record."""

SHARE = X25519PrivateKey.generate()
"""One for all connections of a run, so that their hellos are the same, byte by byte."""

PATIENCE = 20.0

ALERTS = {
    0: "close_notify",
    10: "unexpected_message",
    20: "bad_record_mac",
    22: "record_overflow",
    40: "handshake_failure",
    42: "bad_certificate",
    43: "unsupported_certificate",
    44: "certificate_revoked",
    45: "certificate_expired",
    46: "certificate_unknown",
    47: "illegal_parameter",
    48: "unknown_ca",
    50: "decode_error",
    51: "decrypt_error",
    70: "protocol_version",
    80: "internal_error",
    109: "missing_extension",
    110: "unsupported_extension",
    112: "unrecognized_name",
    116: "certificate_required",
    120: "no_application_protocol",
}


def record(kind: int, body: bytes, *, version: int = 0x0303, length: int | None = None) -> bytes:
    """One record as it travels; ``length`` is what it claims."""
    return struct.pack("!BHH", kind, version, len(body) if length is None else length) + body


def message(kind: int, body: bytes, *, length: int | None = None) -> bytes:
    """One handshake message; ``length`` is what it claims."""
    return bytes([kind]) + (len(body) if length is None else length).to_bytes(3, "big") + body


def vector(size: int, body: bytes) -> bytes:
    """``body`` behind its length in ``size`` bytes."""
    return len(body).to_bytes(size, "big") + body


def extension(kind: int, body: bytes) -> bytes:
    return struct.pack("!H", kind) + vector(2, body)


def expand(secret: bytes, label: str, context: bytes, length: int) -> bytes:
    """HKDF-Expand-Label (7.1), for at most one block."""
    info = struct.pack("!H", length) + vector(1, b"tls13 " + label.encode()) + vector(1, context)
    return hmac.digest(secret, info + b"\x01", "sha256")[:length]


def extract(salt: bytes, secret: bytes) -> bytes:
    return hmac.digest(salt, secret, "sha256")


@dataclass
class Keys:
    """One direction's keys."""

    secret: bytes
    count: int = 0

    def nonce(self) -> bytes:
        base = int.from_bytes(expand(self.secret, "iv", b"", 12), "big")
        self.count += 1
        return (base ^ (self.count - 1)).to_bytes(12, "big")

    def cipher(self) -> AESGCM:
        return AESGCM(expand(self.secret, "key", b"", 16))

    def seal(self, kind: int, body: bytes, padding: int = 0) -> bytes:
        """A protected record."""
        inner = body + bytes([kind]) + bytes(padding)
        header = struct.pack("!BHH", TEXT, 0x0303, len(inner) + 16)
        return header + self.cipher().encrypt(self.nonce(), inner, header)

    def open(self, header: bytes, body: bytes) -> tuple[int, bytes]:
        inner = self.cipher().decrypt(self.nonce(), body, header).rstrip(b"\0")
        return inner[-1], inner[:-1]

    def updated(self) -> Keys:
        return Keys(expand(self.secret, "traffic upd", b"", 32))


@dataclass
class Client:
    """One connection, from its first byte to its last."""

    raw: socket.socket
    chain: tuple[bytes, ...] = ()
    key: ec.EllipticCurvePrivateKey | None = None
    share: X25519PrivateKey = SHARE
    transcript: bytes = b""
    buffer: bytes = b""
    handshake: bytes = b""
    reading: list[Keys] = field(default_factory=list)
    writing: Keys | None = None
    schedule: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def connect(cls, port: int, credentials: Credentials | None = None) -> Self:
        raw = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if credentials is None:
            return cls(raw)
        pem = credentials.cert.read_text()
        found = re.findall(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", pem, re.DOTALL)
        key = serialization.load_pem_private_key(credentials.key.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return cls(raw, tuple(ssl.PEM_cert_to_DER_cert(each) for each in found), key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.raw.close()

    # --- what is said ---------------------------------------------------------------------------------

    def extensions(self) -> dict[str, bytes]:
        """The extensions of a good ClientHello, by name."""
        public = self.share.public_key().public_bytes_raw()
        return {
            "server_name": extension(0, vector(2, b"\0" + vector(2, b"localhost"))),
            "supported_groups": extension(10, vector(2, b"\x00\x1d")),
            "signature_algorithms": extension(13, vector(2, b"\x04\x03")),
            "supported_versions": extension(43, vector(1, b"\x03\x04")),
            "key_share": extension(51, vector(2, b"\x00\x1d" + vector(2, public))),
        }

    def hello(
        self,
        extensions: bytes | None = None,
        *,
        version: int = 0x0303,
        session: bytes = bytes(32),
        suites: bytes = b"\x13\x01",
        compression: bytes = b"\0",
    ) -> bytes:
        """A ClientHello message; good unless an argument says otherwise."""
        given = b"".join(self.extensions().values()) if extensions is None else extensions
        body = struct.pack("!H", version) + bytes(range(32)) + vector(1, session)
        return message(CLIENT_HELLO, body + vector(2, suites) + vector(1, compression) + vector(2, given))

    def send_raw(self, data: bytes) -> None:
        """Send bytes as they are; that the other end has gone shows when it is listened to."""
        with contextlib.suppress(ConnectionError):
            self.raw.sendall(data)

    def send_hello(self, hello: bytes | None = None) -> None:
        hello = self.hello() if hello is None else hello
        self.transcript += hello
        self.send_raw(record(HANDSHAKE, hello, version=0x0301))

    def flight(self) -> list[bytes]:
        """What a good client answers with: Certificate, CertificateVerify, Finished."""
        certificate = self.certificate()
        if not self.chain:
            return [certificate, self.finished(self.transcript + certificate)]
        verify = self.verify(self.transcript + certificate)
        return [certificate, verify, self.finished(self.transcript + certificate + verify)]

    def certificate(self, entries: Iterable[bytes] | None = None, context: bytes = b"") -> bytes:
        listed = self.chain if entries is None else entries
        body = b"".join(vector(3, der) + vector(2, b"") for der in listed)
        return message(CERTIFICATE, vector(1, context) + vector(3, body))

    def verify(
        self, transcript: bytes, *, words: bytes = b"TLS 1.3, client CertificateVerify", scheme: int = 0x0403
    ) -> bytes:
        assert self.key is not None
        signed = b" " * 64 + words + b"\0" + hashlib.sha256(transcript).digest()
        signature = self.key.sign(signed, ec.ECDSA(hashes.SHA256()))
        return message(CERTIFICATE_VERIFY, struct.pack("!H", scheme) + vector(2, signature))

    def finished(self, transcript: bytes) -> bytes:
        key = expand(self.schedule["client handshake"], "finished", b"", 32)
        return message(FINISHED, hmac.digest(key, hashlib.sha256(transcript).digest(), "sha256"))

    def send_flight(self, flight: Iterable[bytes]) -> None:
        """Send handshake messages, each in a record, under the handshake's key; then go on to the text's."""
        assert self.writing is not None
        for part in flight:
            for at in range(0, len(part), RECORD):
                self.send_raw(self.writing.seal(HANDSHAKE, part[at : at + RECORD]))
        self.writing = Keys(self.schedule["client text"])

    def shake_hands(self) -> None:
        """All of it, in good order."""
        self.send_hello()
        self.read_server_flight()
        self.send_flight(self.flight())

    def send(self, body: bytes, kind: int = TEXT, padding: int = 0) -> None:
        """Send one protected record."""
        assert self.writing is not None
        self.send_raw(self.writing.seal(kind, body, padding))

    # --- what is heard --------------------------------------------------------------------------------

    def _read(self) -> tuple[bytes, bytes] | None:
        """The next record: header and body; None at the end. Raises `ConnectionError`, `TimeoutError`."""
        while len(self.buffer) < 5 or len(self.buffer) < 5 + int.from_bytes(self.buffer[3:5], "big"):
            more = self.raw.recv(65536)
            if not more:
                return None
            self.buffer += more
        size = 5 + int.from_bytes(self.buffer[3:5], "big")
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken[:5], taken[5:]

    def next(self) -> tuple[int, bytes] | None:
        """The next record's type and text, CCS apart; None at the end."""
        while True:
            got = self._read()
            if got is None:
                return None
            header, body = got
            if header[0] == CCS:
                continue
            if header[0] != TEXT or not self.reading:
                return header[0], body
            while True:
                counts = self.reading[0].count
                try:
                    return self._note(self.reading[0].open(header, body))
                except InvalidTag:
                    self.reading[0].count = counts
                    if len(self.reading) == 1:
                        raise
                    self.reading.pop(0)  # The other end has gone on to its next key.

    def _note(self, got: tuple[int, bytes]) -> tuple[int, bytes]:
        """Follow the other end to its next key."""
        if got[0] == HANDSHAKE and got[1][0] == KEY_UPDATE:
            self.reading[0] = self.reading[0].updated()
        return got

    def read_server_flight(self) -> None:
        """Read up to the server's Finished, and derive what it takes. Raises `Refused`."""
        hello = self._message()
        self._derive(hello)
        while self._message()[0] != FINISHED:
            pass
        master = self.schedule["master"]
        digest = hashlib.sha256(self.transcript).digest()
        self.schedule["client text"] = expand(master, "c ap traffic", digest, 32)
        self.reading.append(Keys(expand(master, "s ap traffic", digest, 32)))

    def _message(self) -> bytes:
        while len(self.handshake) < 4 or len(self.handshake) < 4 + int.from_bytes(self.handshake[1:4], "big"):
            got = self.next()
            if got is None:
                raise Refused("closed")
            if got[0] == ALERT:
                raise Refused(ALERTS.get(got[1][1], str(got[1][1])))
            self.handshake += got[1]
        size = 4 + int.from_bytes(self.handshake[1:4], "big")
        taken, self.handshake = self.handshake[:size], self.handshake[size:]
        self.transcript += taken
        return taken

    def _derive(self, hello: bytes) -> None:
        found = re.search(rb"\x00\x33\x00\x24\x00\x1d\x00\x20(.{32})", hello, re.DOTALL)
        if found is None:
            raise Refused("another hello")
        shared = self.share.exchange(X25519PublicKey.from_public_bytes(found[1]))
        empty = hashlib.sha256(b"").digest()
        early = extract(bytes(32), bytes(32))
        secret = extract(expand(early, "derived", empty, 32), shared)
        digest = hashlib.sha256(self.transcript).digest()
        self.schedule["client handshake"] = expand(secret, "c hs traffic", digest, 32)
        self.schedule["master"] = extract(expand(secret, "derived", empty, 32), bytes(32))
        self.reading = [Keys(expand(secret, "s hs traffic", digest, 32))]
        self.writing = Keys(self.schedule["client handshake"])

    def ending(self, *, finish: bool = True) -> str:
        """How it ends: an alert's name, ``closed``, ``reset`` or ``silent``; what comes before is skipped.

        ``finish``: this end says no more, so that a peer that waits need not wait.
        """
        if finish:
            with contextlib.suppress(OSError):
                self.raw.shutdown(socket.SHUT_WR)
        try:
            while True:
                got = self.next()
                if got is None:
                    return "closed"
                if got[0] == ALERT:
                    return ALERTS.get(got[1][1], f"alert {got[1][1]}")
        except ConnectionError:
            return "reset"
        except TimeoutError:
            return "silent"
        except InvalidTag:
            return "unreadable"


class Refused(Exception):  # noqa: N818 - what happened, in a word
    """Raised when the server ended the handshake; the message is as for `Client.ending`."""
