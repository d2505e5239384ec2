"""What the Arbiter reads at its start, and again on SIGHUP or RELOAD: read whole, then taken whole.

1. A new configuration is checked as at the start; if anything in it cannot be used, all of the old stays.
2. A TLS context is built anew each time and never added to: nothing can be taken out of one.
3. The record says what changed before anybody is sent away for it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import anyio
import anyio.to_thread

from arbiter.changes import Configured, changed
from arbiter.debate.events import Reloaded
from arbiter.observe import NOBODY
from arbiter.profiles import load_profiles
from consilium.certificate import CertificateRefused, identify_arbiter, validity
from consilium.credentials import Credentials
from consilium.errors import TranscriptError, UserError
from consilium.headseal import HeadSigner
from consilium.tls import server_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from arbiter.observe import Observer
    from consilium.profile import CapabilityProfile

log = logging.getLogger("arbiter")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that can be reloaded, checked and ready for use."""

    context: ssl.SSLContext
    signer: HeadSigner
    configured: Configured

    @classmethod
    def read(cls, certs: Path, profiles: Path | None, now: float) -> Self:
        """Read the credentials in ``certs`` and the file of ``profiles``. Raises `UserError`.

        ``now`` is seconds since the epoch: a certificate that does not hold then is refused.
        """
        credentials = Credentials.load(certs)
        _check_own(credentials, now)
        try:
            anchors = credentials.ca.read_bytes()
        except OSError as error:
            raise UserError(f"{credentials.ca} cannot be read: {error.strerror}") from error
        context, signer = server_context(credentials), HeadSigner.load(credentials)
        return cls(context, signer, Configured(credentials.leaf(), anchors, load_profiles(profiles)))


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


class Reloader:
    """Holds the configuration that applies; calling it reads another. One at a time."""

    def __init__(
        self,
        current: Configuration,
        read: Callable[[], Configuration],
        tell: Callable[[Reloaded], Awaitable[None]],
        sign_with: Callable[[HeadSigner], Awaitable[None]],
        observer: Observer = NOBODY,
    ) -> None:
        """``read`` may block, and raises `UserError`. ``sign_with`` changes who signs the record's head."""
        self.current = current
        self._read = read
        self._tell = tell
        self._sign_with = sign_with
        self._observer = observer
        self._lock = anyio.Lock()
        self.adopt: Callable[[Mapping[str, CapabilityProfile]], None] = lambda _: None
        """Told the profiles that apply from now on."""

    async def __call__(self, session: str | None = None, msg_id: str | None = None) -> None:
        """Reload for an operator's message, or for a signal. Raises `UserError`: the old stays."""
        async with self._lock:
            try:
                new = await anyio.to_thread.run_sync(self._read)
            except UserError as error:
                log.error("nothing is reloaded, and what applied still does: %s", error)  # noqa: TRY400
                self._observer.reloaded(taken=False)
                raise
            names = changed(self.current.configured, new.configured)
            # An operator who leaves now must not leave it half done.
            with anyio.CancelScope(shield=True):
                await self._tell(Reloaded(session, msg_id, names))
                old, self.current = self.current, new
                self.adopt(new.configured.profiles)
                self._observer.reloaded(taken=True)
                if new.signer.certificate != old.signer.certificate:
                    await self._sign(new.signer)
            log.warning("reloaded; changed: %s", ", ".join(names) or "nothing")

    async def _sign(self, signer: HeadSigner) -> None:
        try:
            await self._sign_with(signer)
        except TranscriptError as failure:
            log.warning("the transcript's head is not signed anew yet: %s", failure)
