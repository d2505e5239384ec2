"""What the Arbiter reads at its start, and again on SIGHUP or RELOAD: read whole, then taken whole.

1. A new configuration is checked as at the start; if anything in it cannot be used, all of the old stays.
2. A TLS context is built anew each time and never added to: nothing can be taken out of one.
3. The record says what changed before anybody is sent away for it.
4. When the file of revoked certificates changes, it is taken without being asked for, and the credentials
   beside it with it; the file of profiles, which somebody may just be writing, is not.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import anyio
import anyio.to_thread
from cryptography import x509

from arbiter.changes import Configured, changed
from arbiter.debate.events import Reloaded
from arbiter.observe import NOBODY
from arbiter.profiles import Entrance, load_profiles
from arbiter.revocation import MAX_BYTES, RevocationRefused, Revocations, Standing, judge
from consilium.certificate import UNREADABLE, CertificateRefused, identify_arbiter, validity
from consilium.credentials import CRL, Credentials
from consilium.errors import TranscriptError, UserError
from consilium.headseal import HeadSigner
from consilium.tls import server_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from arbiter.observe import Observer

POLL = 0.4
"""Seconds between two looks at whether that file has changed. Whom it revokes is out within a second."""

log = logging.getLogger("arbiter")

Stamp = tuple[int, int, int] | None
"""What tells that a file has been written: time, size and inode; None for one that is not there."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the configuration is read from. ``crl`` None is `CRL` in ``certs``, if that is there."""

    certs: Path
    profiles: Path | None = None
    crl: Path | None = None

    @property
    def revoked(self) -> Path:
        """The file of revoked certificates."""
        return self.crl or self.certs / CRL

    def stamp(self) -> Stamp:
        """What tells whether that file has been written since."""
        try:
            found = self.revoked.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that can be reloaded, checked and ready for use. ``stamp`` is that of `Sources`."""

    context: ssl.SSLContext
    signer: HeadSigner
    configured: Configured
    stamp: Stamp = None

    @classmethod
    def read(
        cls,
        sources: Sources,
        now: float,
        *,
        applied: Configuration | None = None,
        authorities: Iterable[bytes] = (),
        profiles: bool = True,
    ) -> Self:
        """Read what ``sources`` name. Raises `UserError`.

        ``now`` is seconds since the epoch: a certificate that does not hold then is refused. ``applied`` is
        what applies, ``authorities`` are the DER of those that have signed who is here. Without
        ``profiles``, what is ``applied`` stands in for those.
        """
        stamp = sources.stamp()
        credentials = Credentials.load(sources.certs)
        _check_own(credentials, now)
        anchors = _bytes(credentials.ca)
        entrance = load_profiles(sources.profiles) if profiles or applied is None else _entrance(applied)
        old = None if applied is None else applied.configured
        revocations = _read_revocations(sources, credentials, anchors, old, authorities=authorities, now=now)
        context, signer = server_context(credentials, revocations.pem), HeadSigner.load(credentials)
        configured = Configured(credentials.leaf(), anchors, entrance.profiles, revocations, entrance.doors)
        return cls(context, signer, configured, stamp)


def _entrance(applied: Configuration) -> Entrance:
    return Entrance(applied.configured.profiles, applied.configured.doors)


def _check_own(credentials: Credentials, now: float) -> None:
    """Refuse to listen with a certificate that no seat would accept. Raises `UserError`."""
    der = credentials.leaf()
    try:
        identify_arbiter(der)
        life = validity(der, now)
    except CertificateRefused as refusal:
        hint = f"consilium pki issue {credentials.cert.parent.parent} arbiter --profile arbiter"
        raise UserError(f"{credentials.cert} is not an Arbiter's certificate: {refusal}", hint=hint) from None
    if life.state != "valid":
        raise UserError(f"{credentials.cert} cannot be used: {life.sentence}")


def _read_revocations(
    sources: Sources,
    credentials: Credentials,
    anchors: bytes,
    old: Configured | None,
    *,
    authorities: Iterable[bytes],
    now: float,
) -> Revocations:
    """Read and judge the revoked certificates; none where there never were any. Raises `UserError`."""
    path = sources.revoked
    before = Revocations() if old is None else old.revocations
    if not path.is_file():
        if sources.crl is None and not before.lists:
            return before
        raise UserError(
            f"{path} is missing, or is no file", hint="put the list of revoked certificates there"
        )
    text = _bytes(path, MAX_BYTES + 1)
    try:
        found = Revocations.parse(text)
        trusted = _certificates(anchors, credentials.ca)
        signers = [*_certificates(_bytes(credentials.cert), credentials.cert)[1:]]
        signers += [x509.load_der_x509_certificate(der) for der in authorities]
        same = old is None or old.anchors == anchors
        judge(found, before, anchors=trusted, authorities=signers, same_anchors=same, now=now)
    except RevocationRefused as refusal:
        raise UserError(
            f"{path} {refusal}", hint="fetch the newest list from the authority that issued the certificates"
        ) from None
    for name in found.uncovered(trusted):
        log.warning("%s holds no list of %s: nobody whose certificate ends there can connect", path, name)
    return found


def _bytes(path: Path, most: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error


def _certificates(pem: bytes, path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except UNREADABLE:
        raise UserError(f"{path} holds a certificate that cannot be read") from None


class Reloader:
    """Holds the configuration that applies; calling it reads another. One at a time."""

    def __init__(
        self,
        current: Configuration,
        sources: Sources,
        tell: Callable[[Reloaded], Awaitable[None]],
        sign_with: Callable[[HeadSigner], Awaitable[None]],
        clock: Callable[[], float],
        *,
        observer: Observer = NOBODY,
    ) -> None:
        """``sign_with`` changes who signs the record's head. ``clock`` gives seconds since the epoch."""
        self.current = current
        self.refused: str | None = None
        """Why what is on disk is not what applies, if that is so."""
        self._sources = sources
        self._tell = tell
        self._sign_with = sign_with
        self._observer = observer
        self._clock = clock
        self._tried = current.stamp
        self._said: Standing | None = None
        self._lock = anyio.Lock()
        self.adopt: Callable[[Configured], None] = lambda _: None
        """Told what applies from now on."""
        self.authorities: Callable[[], Iterable[bytes]] = lambda: ()
        """Asked for the DER of the authorities that have signed who is here."""

    @property
    def standing(self) -> Standing:
        """How much the list of revoked certificates is worth now."""
        return self.current.configured.revocations.standing(self._clock())

    def warnings(self) -> tuple[str, ...]:
        """What an operator must know now."""
        sentence = self.current.configured.revocations.sentence(self._clock())
        refused = (
            self.refused
            and f"what was read last is refused, and what applied before still does: {self.refused}"
        )
        return tuple(each for each in (refused, sentence) if each)

    async def __call__(self, session: str | None = None, msg_id: str | None = None) -> None:
        """Reload for an operator's message, or for a signal. Raises `UserError`: the old stays."""
        async with self._lock:
            new = await self._read(profiles=True)
            await self._take(new, Reloaded(session, msg_id, changed(self.current.configured, new.configured)))

    async def watch(self) -> None:
        """Take the list of revoked certificates whenever it changes; say when it ages."""
        while True:
            await self.look()
            await anyio.sleep(POLL)

    async def look(self) -> None:
        """Take the list of revoked certificates if it has changed, and say how old it is if that is news."""
        async with self._lock:
            stamp = await anyio.to_thread.run_sync(self._sources.stamp)
            if stamp != self._tried:
                await self._follow(stamp)
        self._say_standing()

    def _say_standing(self) -> None:
        standing = self.standing
        if standing is self._said:
            return
        revocations = self.current.configured.revocations
        sentence = revocations.sentence(self._clock())
        if sentence:
            log.log(logging.ERROR if standing is Standing.EXPIRED else logging.WARNING, "%s", sentence)
        elif self._said is not None:
            log.warning(
                "there is a list of revoked certificates that holds; %d are on it", revocations.revoked
            )
        self._said = standing

    async def _follow(self, stamp: Stamp) -> None:
        self._tried = stamp
        try:
            new = await self._read(profiles=False)
        except UserError:
            return  # It has been logged, and stands in STATUS until there is a better one.
        names = changed(self.current.configured, new.configured)
        await self._take(new, Reloaded(None, None, names, by="file") if names else None)

    async def _read(self, *, profiles: bool) -> Configuration:
        authorities = tuple(self.authorities())

        def read() -> Configuration:
            return Configuration.read(
                self._sources, self._clock(), applied=self.current, authorities=authorities, profiles=profiles
            )

        try:
            return await anyio.to_thread.run_sync(read)
        except UserError as error:
            self.refused = error.message
            self._observer.reloaded(taken=False)
            log.error("nothing is reloaded, and what applied still does: %s", error)  # noqa: TRY400 - said in full
            raise
        except Exception as bug:
            # Whatever a file holds, the debate goes on with what applied: rule 1.
            self.refused = f"a bug, please report it: {type(bug).__name__}"
            self._observer.reloaded(taken=False)
            log.exception("nothing is reloaded, and what applied still does; please report what follows")
            raise UserError(self.refused) from bug

    async def _take(self, new: Configuration, event: Reloaded | None) -> None:
        # An operator who leaves now must not leave it half done.
        with anyio.CancelScope(shield=True):
            if event is not None:
                await self._tell(event)
            old, self.current = self.current, new
            self._tried, self.refused = new.stamp, None
            self.adopt(new.configured)
            self._observer.reloaded(taken=True)
            if new.signer.certificate != old.signer.certificate:
                await self._sign(new.signer)
        if event is not None:
            log.warning("reloaded; changed: %s", ", ".join(event.changed) or "nothing")

    async def _sign(self, signer: HeadSigner) -> None:
        try:
            await self._sign_with(signer)
        except TranscriptError as failure:
            log.warning("the transcript's head is not signed anew yet: %s", failure)
