"""Who a certificate is (§5.2, §14.4): the fingerprint is the key, the rest is for people.

A certificate carries exactly one URI SAN, ``spiffe://<trust domain>/<profile>/<id>``. The profile segment
names a capability profile in the Arbiter's own configuration. CN and the display suffix authorise nothing.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_SPIFFE = re.compile(r"spiffe://([a-z0-9.-]{1,255})/([a-z0-9_-]{1,64})/([a-z0-9_-]{1,64})")

DAY = 86400
"""Seconds."""

MAX_LIFETIME_DAYS = 90
"""The longest life that any certificate of a council may have; a capability profile may say less."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A verified certificate, reduced to what may be decided on.

    ``fingerprint`` is the SHA-256 of the DER (32 bytes). ``not_after`` is seconds since the epoch,
    ``lifetime_s`` the seconds from the first to the last instant at which the certificate holds. ``issuer``
    is the common name of the authority that signed it, empty if that has not exactly one.
    """

    fingerprint: bytes
    trust_domain: str
    profile: str
    subject: str
    not_after: float
    lifetime_s: float
    issuer: str = ""

    @property
    def lifetime_days(self) -> float:
        """The certificate's whole life in days, for comparison with ``max_lifetime_days`` of a profile."""
        return self.lifetime_s / DAY

    @property
    def suffix(self) -> str:
        """Eight digits of the fingerprint, for display only (§5.2)."""
        return self.fingerprint.hex()[:8].upper()

    def display_name(self, name: str) -> str:
        """``name`` with the display suffix: the participant id (§5.2)."""
        return f"{name}_{self.suffix}"


def fingerprint(der: bytes) -> bytes:
    """SHA-256 of a certificate's DER, all 32 bytes."""
    return hashlib.sha256(der).digest()


def parse_spiffe(uri: str) -> tuple[str, str, str]:
    """Split a SPIFFE id into trust domain, profile and id. Raises `ValueError` on anything else."""
    match = _SPIFFE.fullmatch(uri)
    if match is None:
        raise ValueError("not of the form spiffe://<trust domain>/<profile>/<id>")
    return match[1], match[2], match[3]


def spiffe(trust_domain: str, profile: str, subject: str) -> str:
    """Build the URI SAN of a certificate; the inverse of `parse_spiffe`, with the same refusals."""
    uri = f"spiffe://{trust_domain}/{profile}/{subject}"
    parse_spiffe(uri)
    return uri
