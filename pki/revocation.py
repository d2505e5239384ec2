"""Is a certificate of a chain revoked, as far as revocation lists say? Pure: lists and time are arguments.

As TLS does it: each certificate below the anchor is looked up on a list of the one that signed it, and a list
that is missing, forged, too old or not begun counts against the certificate as much as one that names it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from consilium.certificate import Finding, moment, span
from pki.reading import called

if TYPE_CHECKING:
    from collections.abc import Sequence

STEP = "revocation"


def judge(
    chain: Sequence[x509.Certificate], lists: Sequence[x509.CertificateRevocationList], *, now: float
) -> list[Finding]:
    """One finding for each certificate of ``chain`` but the last, which is trusted; leaf first."""
    return [_judge(certificate, signer, lists, now) for certificate, signer in pairwise(chain)]


def _judge(
    certificate: x509.Certificate,
    signer: x509.Certificate,
    lists: Sequence[x509.CertificateRevocationList],
    now: float,
) -> Finding:
    name, by = called(certificate.subject), called(signer.subject)
    named = [crl for crl in lists if crl.issuer == signer.subject]
    signed = [crl for crl in named if _is_signed_by(crl, signer)]
    if not named:
        return _bad(f"{name}: there is no revocation list of {by} here")
    if not signed:
        return _bad(f"{name}: a revocation list calls itself that of {by}, who did not sign it")
    crl = max(signed, key=lambda each: each.last_update_utc)
    told = f"{_numbered(crl)} of {by}"
    entry = crl.get_revoked_certificate_by_serial_number(certificate.serial_number)
    if entry is not None:
        when = entry.revocation_date_utc.timestamp()
        why = f", reason: {_reason(entry)}" if _reason(entry) else ""
        ago = span(max(0.0, now - when))
        return _bad(f"{name} was revoked {ago} ago ({moment(when)}{why}), says {told}")
    start, end = crl.last_update_utc.timestamp(), _end(crl)
    if now < start:
        return _bad(f"{name}: {told} begins {span(start - now)} from now; is this clock right?")
    if now >= end:
        return _bad(f"{name}: {told} is too old by {span(now - end)} ({moment(end)}), and admits nobody")
    return Finding(STEP, ok=True, sentence=f"{name}: not revoked, says {told}, for another {span(end - now)}")


def _is_signed_by(crl: x509.CertificateRevocationList, signer: x509.Certificate) -> bool:
    key = signer.public_key()
    return isinstance(key, ec.EllipticCurvePublicKey) and crl.is_signature_valid(key)


def _numbered(crl: x509.CertificateRevocationList) -> str:
    try:
        number = crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except (x509.ExtensionNotFound, ValueError):
        return "the list"
    return f"list {number}"


def _reason(entry: x509.RevokedCertificate) -> str:
    try:
        reason = entry.extensions.get_extension_for_class(x509.CRLReason).value.reason
    except (x509.ExtensionNotFound, ValueError):
        return ""
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in reason.value)
    return words.replace(" ", "-")


def _end(crl: x509.CertificateRevocationList) -> float:
    """When a list ends; one that says nothing of it counts as ended, as with us every list says so."""
    end = crl.next_update_utc
    return crl.last_update_utc.timestamp() if end is None else end.timestamp()


def _bad(sentence: str) -> Finding:
    return Finding(STEP, ok=False, sentence=sentence)
