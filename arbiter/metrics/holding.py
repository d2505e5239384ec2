"""What an Arbiter goes by, and how long it holds: its certificate, its authorities' and their CRLs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from cryptography import x509

from consilium.certificate import common_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arbiter.changes import Configured

OWN = "arbiter"
"""The name of the Arbiter's own certificate; an authority goes by its common name."""


@dataclass(frozen=True, slots=True)
class Holds:
    """Something that holds for a time, in seconds since the epoch; of a CRL, thisUpdate and nextUpdate."""

    name: str
    since: float
    until: float


def certificates(configured: Configured) -> Sequence[Holds]:
    """The Arbiter's own certificate and its trust anchors. Of two with one name, the one that ends first."""
    return _certificates(configured.certificate, configured.anchors)


def crls(configured: Configured) -> Sequence[Holds]:
    """The CRLs that newcomers are held against, by issuer."""
    lists = configured.revocations.lists
    held = [Holds(each.issuer, each.this_update, each.next_update) for each in lists]
    held.sort(key=lambda each: each.until, reverse=True)
    return tuple({each.name: each for each in held}.values())


@lru_cache(maxsize=2)
def _certificates(own: bytes, anchors: bytes) -> Sequence[Holds]:
    held = [_holds(OWN, x509.load_der_x509_certificate(own))]
    held += [
        _holds(common_name(each.subject) or "unnamed", each)
        for each in x509.load_pem_x509_certificates(anchors)
    ]
    held.sort(key=lambda each: each.until, reverse=True)
    return tuple({each.name: each for each in held}.values())


def _holds(name: str, certificate: x509.Certificate) -> Holds:
    since, until = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return Holds(name, since.timestamp(), until.timestamp())
