"""Single-use data tokens (§5.5, decision 6), bound to a session and a certificate.

1. Only a token's SHA-256 is kept, for 30 s on the caller's monotonic clock.
2. The right certificate strikes it on first use; a wrong one does not consume it for the right one.
3. Every refusal reads the same: unknown, expired, another's, another session's.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from consilium.errors import ErrorCode, PeerError

LIFETIME = 30.0
"""Seconds from REG_OK to DATA_HELLO."""


@dataclass(frozen=True, slots=True)
class _Issued:
    session: str
    fingerprint: bytes
    expires: float


class TokenLedger:
    """The tokens that are out. At most one a session."""

    def __init__(self) -> None:
        self._issued: dict[bytes, _Issued] = {}

    def __len__(self) -> int:
        return len(self._issued)

    def issue(self, token: str, session: str, fingerprint: bytes, now: float) -> None:
        """Remember ``token`` for ``session`` and the certificate with this fingerprint."""
        self.void(session)
        self._forget_expired(now)
        self._issued[_key(token)] = _Issued(session, fingerprint, now + LIFETIME)

    def strike(self, token: str, session: str, fingerprint: bytes, now: float) -> None:
        """Use ``token`` up. Raises `PeerError` (TOKEN_REFUSED)."""
        self._forget_expired(now)
        key = _key(token)
        issued = self._issued.get(key)
        if (
            issued is None
            or not hmac.compare_digest(issued.fingerprint, fingerprint)
            or not hmac.compare_digest(issued.session.encode(), session.encode())
        ):
            raise PeerError(ErrorCode.TOKEN_REFUSED, "this data token is not valid here")
        del self._issued[key]

    def void(self, session: str) -> None:
        """Make a session's token worthless: it left, was lost, or was refused."""
        for key in [key for key, issued in self._issued.items() if issued.session == session]:
            del self._issued[key]

    def _forget_expired(self, now: float) -> None:
        for key in [key for key, issued in self._issued.items() if issued.expires <= now]:
            del self._issued[key]


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
