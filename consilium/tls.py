"""One TLS 1.3 session over any byte stream, the same for both ends: stdlib `ssl` over memory BIOs.

1. Ciphertext leaves in the order in which it was made: whoever encrypts holds the lock until it is sent.
2. What cannot be read or sent once can never be again: the first reason is kept and told to every later call.
3. Nothing of `ssl` or `anyio` escapes, cancellation apart: a connection ends as `ChannelClosed` or
   `ChannelBroken`, in words that a person understands.
"""

from __future__ import annotations

import _ssl
import contextlib
import os
import ssl
import sys
from typing import TYPE_CHECKING

import anyio

from consilium.errors import ChannelBroken, ChannelClosed, ChannelError, ChannelRefused, Objection, UserError

if TYPE_CHECKING:
    from anyio.abc import ByteStream

    from consilium.credentials import Credentials

CLOSE_SECONDS = 1.0
"""How long a closing connection may take to say so."""

SLICE = 4 * 1024
"""Most text put into one record: a memory BIO keeps for life the largest size it ever had."""

SEALED = SLICE + 22
"""The same as it travels, header and tag included: most ciphertext put into a memory BIO at once."""

CHUNK = 4 * SEALED
"""Most ciphertext taken from the stream, and decrypted, without a pause for other connections."""

RECORD = 16 * 1024
"""Largest plaintext of one TLS record, so that one read always empties one record."""

MAX_BARREN = 32 * 1024
"""Most ciphertext accepted in a row without text: one record and change, no flood of KeyUpdates."""

LINGER_CHUNKS = 64
"""Most chunks thrown away while a closing connection waits for the peer's end."""

LINGER_PAUSE = 0.01

CLOSED_HERE = "this end closed the connection"

_VERDICTS = {
    "self-signed certificate": "an authority that we do not trust issued it",
    "self-signed certificate in certificate chain": "an authority that we do not trust issued it",
    "unable to get local issuer certificate": "an authority that we do not trust issued it",
    "unsuitable certificate purpose": "it was issued for another use",
}
_ALERTS = {
    "access denied": "our certificate: access denied",
    "bad certificate": "our certificate: bad certificate (not yet valid, for another name, or damaged)",
    "certificate expired": "our certificate: certificate expired",
    "certificate required": "the connection: certificate required, and we sent none",
    "certificate revoked": "our certificate: certificate revoked",
    "certificate unknown": "our certificate: certificate unknown",
    "unknown ca": "our certificate: unknown CA (another authority issued it)",
    "unsupported certificate": "our certificate: unsupported certificate (issued for another use)",
}
_OBJECTIONS = {
    "certificate expired": Objection.OWN_EXPIRED,
    "certificate revoked": Objection.OWN_REVOKED,
    "unknown ca": Objection.OWN_AUTHORITY,
    "handshake failure": Objection.NOT_TLS,
    "protocol version": Objection.NOT_TLS,
}
_PASSING = frozenset({"internal error", "user canceled", "close notify"})
"""Alerts that say nothing about the next attempt."""

_VERIFY_CODES = {
    9: Objection.PEER_NOT_YET_VALID,
    10: Objection.PEER_EXPIRED,
    18: Objection.PEER_AUTHORITY,
    19: Objection.PEER_AUTHORITY,
    20: Objection.PEER_AUTHORITY,
    21: Objection.PEER_AUTHORITY,
    62: Objection.PEER_NAME,
    64: Objection.PEER_NAME,
}
"""What OpenSSL's X509_V_ERR_... say of a certificate; any other one is `Objection.PEER_CERTIFICATE`."""


class TlsStream:
    """An authenticated, encrypted byte stream. One task may receive while others send."""

    __slots__ = (
        "_closed",
        "_in",
        "_lock",
        "_out",
        "_peer",
        "_raw",
        "_ssl",
        "_unreadable",
        "_unsendable",
        "peer_chain",
        "peer_der",
    )

    def __init__(
        self, raw: ByteStream, context: ssl.SSLContext, *, server_side: bool, server_hostname: str | None
    ) -> None:
        self._raw = raw
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._ssl = context.wrap_bio(
            self._in, self._out, server_side=server_side, server_hostname=server_hostname
        )
        self._lock = anyio.Lock(fast_acquire=True)
        self._peer = "the client" if server_side else "the Arbiter"
        self._unreadable: ChannelError | None = None
        self._unsendable: ChannelError | None = None
        self._closed = False
        self.peer_der: bytes | None = None
        """The peer's certificate, as it was verified in the handshake."""
        self.peer_chain: tuple[bytes, ...] = ()
        """The same and those above it, up to and with the trust anchor, each as DER."""

    @classmethod
    async def handshake(
        cls,
        raw: ByteStream,
        context: ssl.SSLContext,
        *,
        server_side: bool,
        server_hostname: str | None = None,
    ) -> TlsStream:
        """Authenticate both ends. Takes ``raw`` over: it is closed whenever this does not return.

        Raises `ChannelBroken` after telling the peer by an alert, `ValueError` for a ``server_hostname`` that
        no certificate could bear. The time limit is the caller's.
        A client that returns from here may still be refused (TLS 1.3): it learns at its first `receive`.
        """
        try:
            stream = cls(raw, context, server_side=server_side, server_hostname=server_hostname)
            await stream._shake_hands()
        except BaseException:
            await anyio.aclose_forcefully(raw)
            raise
        return stream

    async def receive(self) -> bytes:
        """Return what has arrived, at least one byte.

        Raises `ChannelClosed` after the peer's close_notify, `ChannelBroken` after anything else.
        """
        # The first text may have come with the end of the handshake.
        text = self._read() if self._in.pending and self._unreadable is None else b""
        barren = 0
        while not text:
            _raise(self._unreadable)
            chunk = await self._pull(CHUNK)
            text = self._decrypt(chunk)
            barren += len(chunk)
            if barren > MAX_BARREN and not text:
                self._stop_reading(ChannelBroken(f"{self._peer} sends TLS records without any text"))
            # Whoever holds the lock also sends what reading produced meanwhile.
            if self._out.pending and not self._lock.locked():
                await self._answer()
        return text

    async def send(self, data: bytes) -> None:
        """Send all of ``data``. Raises `ChannelError`.

        A call that is cancelled while it sends leaves half a record behind, and nothing can follow that.
        """
        async with self._lock:
            _raise(self._unsendable or self._unreadable)
            await self._transmit(self._encrypt(data))

    async def aclose(self, seconds: float | None = None) -> None:
        """Say close_notify, let what was sent arrive, close. Raises nothing.

        It takes at most ``seconds``, or else `CLOSE_SECONDS`.
        """
        if self._closed:
            return
        self._closed = True
        # A cancelled owner still owes the peer its close_notify, hence the shield. Whatever a dying
        # connection raises, nobody is left who could act on it, hence the silence.
        limit = CLOSE_SECONDS if seconds is None else seconds
        with anyio.CancelScope(shield=True):
            with contextlib.suppress(Exception), anyio.move_on_after(limit):
                await self._part()
            with contextlib.suppress(Exception):
                await anyio.aclose_forcefully(self._raw)

    # Handshake and parting

    async def _shake_hands(self) -> None:
        done = False
        while not done:
            try:
                self._ssl.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                reason = _refusal(error, self._peer)
                self._stop_reading(reason)
                await self._answer()
                await self.aclose()
                # A frame that held what it raises would be a cycle: refused peers would pile up in memory.
                raise _copy(reason) from error
            await self._flush()
            if not done:
                self._in.write(await self._pull(SEALED))
        self.peer_der = self._ssl.getpeercert(binary_form=True)
        self.peer_chain = tuple(_verified_chain(self._ssl))

    async def _part(self) -> None:
        self._stop_reading(ChannelClosed(CLOSED_HERE))
        async with self._lock:
            if self._unsendable is not None:
                return
            # It wants the peer's close_notify too, which can wait; or TLS has broken down, which is as well.
            with contextlib.suppress(ssl.SSLError):
                self._ssl.unwrap()
            await self._transmit(self._out.read())
        # To close while the peer's bytes are still arriving resets the connection, and a reset may overtake
        # what was sent last: the alert, or the ERROR that says why.
        await self._raw.send_eof()
        for _ in range(LINGER_CHUNKS):
            try:
                await self._raw.receive(CHUNK)
            except anyio.BusyResourceError:
                await anyio.sleep(LINGER_PAUSE)  # another task still reads: it will meet the end for us

    # Reading

    async def _pull(self, most: int) -> bytes:
        try:
            return await self._raw.receive(most)
        except anyio.EndOfStream:
            reason = f"{self._peer} died, or the line was cut: the connection ended without a close_notify"
            if self._ssl.version() is None:
                reason = f"{self._peer} hung up during the TLS handshake"
            raise self._stop_reading(ChannelBroken(reason)) from None
        except anyio.BrokenResourceError as error:
            raise self._stop_reading(self._lost(error)) from error
        except anyio.ClosedResourceError:
            raise self._stop_reading(ChannelClosed(CLOSED_HERE)) from None

    def _decrypt(self, chunk: bytes) -> bytes:
        if len(chunk) <= SEALED:
            self._in.write(chunk)
            return self._read()
        view = memoryview(chunk)
        texts = []
        for start in range(0, len(chunk), SEALED):
            self._in.write(view[start : start + SEALED])
            texts.append(self._read())
        return b"".join(texts)

    def _read(self) -> bytes:
        """Empty the incoming BIO. What came before a failure is returned; the failure waits its turn."""
        texts = []
        try:
            while self._in.pending:
                text = self._ssl.read(RECORD)
                if not text:
                    self._stop_reading(ChannelClosed(f"{self._peer} closed the connection"))
                    break
                texts.append(text)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self._stop_reading(_refusal(error, self._peer))
        return texts[0] if len(texts) == 1 else b"".join(texts)

    async def _answer(self) -> None:
        """Send what reading produced: the answer to a KeyUpdate, or the alert that names a fatal error."""
        with contextlib.suppress(ChannelError), anyio.move_on_after(CLOSE_SECONDS):
            await self._flush()

    def _stop_reading(self, reason: ChannelError) -> ChannelError:
        """Keep ``reason`` unless there is an earlier one; return what is kept, for the caller to raise."""
        self._unreadable = self._unreadable or reason
        return _copy(self._unreadable)

    # Sending

    def _encrypt(self, data: bytes) -> bytes:
        if len(data) <= SLICE:
            self._ssl.write(data)
            return self._out.read()
        view = memoryview(data)
        records = []
        for start in range(0, len(data), SLICE):
            self._ssl.write(view[start : start + SLICE])
            records.append(self._out.read())
        return b"".join(records)

    async def _flush(self) -> None:
        async with self._lock:
            if self._unsendable is None:
                await self._transmit(self._out.read())

    async def _transmit(self, data: bytes) -> None:
        """Send ``data``, and what reading produces meanwhile. The caller holds the lock."""
        try:
            while data:
                await self._raw.send(data)
                data = self._out.read()
        except anyio.BrokenResourceError as error:
            self._unsendable = self._lost(error)
        except anyio.ClosedResourceError:
            self._unsendable = ChannelClosed(CLOSED_HERE)
        except BaseException:
            self._unsendable = ChannelBroken("an earlier send was interrupted half-way")
            raise
        _raise(self._unsendable)

    def _lost(self, error: Exception) -> ChannelBroken:
        cause = error.__cause__
        words = cause.strerror if isinstance(cause, OSError) and cause.strerror else "connection lost"
        return ChannelBroken(f"the connection to {self._peer} was lost: {words}")


def client_context(credentials: Credentials) -> ssl.SSLContext:
    """Build what a seat or an operator connects with: servers only, checked by name. Raises `UserError`."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, credentials)


def server_context(credentials: Credentials, revocations: bytes = b"") -> ssl.SSLContext:
    """Build what the Arbiter listens with: every client proves itself, anew each time. Raises `UserError`.

    ``revocations`` is the PEM of lists of revoked certificates. With any, every certificate of a client's
    chain must be on the list of its issuer's that holds now, and not revoked there: no list, no entry.
    """
    context = _context(ssl.PROTOCOL_TLS_SERVER, credentials)
    if revocations:
        _load_revocations(context, revocations)
    context.verify_mode = ssl.CERT_REQUIRED
    # A session ticket would outlive a revocation. Tickets of before this line would still be honoured,
    # so it stands before the context's first use.
    context.num_tickets = 0
    return context


def _load_revocations(context: ssl.SSLContext, revocations: bytes) -> None:
    """Have ``context`` refuse who is revoked. `ssl` reads lists from a path only, and these were checked."""
    descriptor = os.memfd_create("crl")
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(revocations)
        context.load_verify_locations(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN


def _verified_chain(session: ssl.SSLObject) -> list[bytes]:
    """The chain of the peer's that was verified; before Python 3.13 it is there, but has no public name."""
    if sys.version_info >= (3, 13):
        return session.get_verified_chain()
    below = session._sslobj  # type: ignore[attr-defined]  # noqa: SLF001 - public from 3.13 on
    return [certificate.public_bytes(_ssl.ENCODING_DER) for certificate in below.get_verified_chain() or ()]


def _context(protocol: ssl._SSLMethod, credentials: Credentials) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    try:
        # Without a password of ours, OpenSSL would ask the terminal for one.
        context.load_cert_chain(credentials.cert, credentials.key, password="")
    except OSError as error:
        raise UserError(
            f"certificate {credentials.cert} with key {credentials.key} cannot be used: {_words(error)}",
            hint="issue a fresh pair with `consilium pki issue`",
        ) from error
    try:
        context.load_verify_locations(credentials.ca)
    except OSError as error:
        raise UserError(
            f"trust anchors {credentials.ca} cannot be used: {_words(error)}",
            hint="copy ca.pem from the authority that issued the certificate",
        ) from error
    return context


def _refusal(error: ssl.SSLError, peer: str) -> ChannelBroken:
    words = _explain(error, peer)
    if isinstance(error, ssl.SSLCertVerificationError):
        return ChannelRefused(words, _VERIFY_CODES.get(error.verify_code, Objection.PEER_CERTIFICATE))
    _, is_alert, alert = (error.reason or "").lower().replace("_", " ").partition(" alert ")
    if alert in _PASSING:
        return ChannelBroken(words)
    return ChannelRefused(
        words, _OBJECTIONS.get(alert, Objection.OWN_CERTIFICATE) if is_alert else Objection.NOT_TLS
    )


def _explain(error: ssl.SSLError, peer: str) -> str:
    """Say in a person's words why TLS ended, and whose doing it was."""
    if isinstance(error, ssl.SSLCertVerificationError):
        verdict = error.verify_message.rstrip(".")
        return f"{peer}'s certificate was refused: {_VERDICTS.get(verdict, verdict)}"
    if error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return f"{peer} sent no certificate"
    _, is_alert, alert = (error.reason or "").partition("_ALERT_")
    if is_alert:
        words = alert.lower().replace("_", " ")
        return f"{peer} refused {_ALERTS.get(words, f'the connection: {words}')}"
    return f"{peer} does not keep to TLS 1.3: {_words(error)}"


def _words(error: OSError) -> str:
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return error.strerror or str(error)


def _raise(reason: ChannelError | None) -> None:
    if reason is not None:
        raise _copy(reason)


def _copy(reason: ChannelError) -> ChannelError:
    # Each caller gets its own: one exception raised twice would carry both callers' tracebacks.
    return type(reason)(*reason.args)
