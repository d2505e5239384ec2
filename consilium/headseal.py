"""The signature on a transcript's head: who vouches for how much of the file (§5.6).

1. A signature proves that the holder of the certificate's key made it. Who that is, only an authority says.
2. Only an Arbiter's certificate vouches: a seat's, of the same authority, is refused (§14.4).
3. A transcript outlives the certificate. It is judged at the time of the file's last record, given as an
   argument; whether it was revoked later is not asked.

Importing this module loads `cryptography`.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from consilium.certificate import UNREADABLE, CertificateRefused, identify_arbiter, printable
from consilium.errors import UserError
from consilium.identity import spiffe

if TYPE_CHECKING:
    from datetime import datetime

    from consilium.credentials import Credentials
    from consilium.records import Head


@dataclass(frozen=True, slots=True)
class HeadSigner:
    """Signs heads with one key, in the name of one certificate (PEM: the leaf, then intermediates if any)."""

    certificate: str
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def load(cls, credentials: Credentials) -> Self:
        """Read the Arbiter's own key and certificate. Raises `UserError` when they cannot sign a head."""
        try:
            return cls.of(credentials.key.read_bytes(), credentials.cert.read_bytes())
        except OSError as error:
            raise UserError(f"{error.filename} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise UserError(f"{credentials.key.parent}: {error}") from error

    @classmethod
    def of(cls, key_pem: bytes, certificate_pem: bytes) -> Self:
        """Raises `ValueError` unless the key is an EC key without a password, and the certificate's own."""
        try:
            key = serialization.load_pem_private_key(key_pem, None)
        except (TypeError, UnsupportedAlgorithm) as error:
            raise ValueError(f"the private key cannot be used: {error}") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the private key is not an elliptic curve key")  # noqa: TRY004 - a file's content
        chain = x509.load_pem_x509_certificates(certificate_pem)
        if chain[0].public_key() != key.public_key():
            raise ValueError("the private key is not that of the certificate")
        # Written out again: what else stood in the file is not for everybody who is sent a transcript.
        pem = b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in chain)
        return cls(pem.decode(), key)

    def sign(self, head: Head) -> Head:
        """``head`` with this signer's certificate and signature."""
        named = head.model_copy(update={"certificate": self.certificate, "signature": ""})
        signature = self.key.sign(named.signed_bytes(), ec.ECDSA(hashes.SHA256()))
        return named.model_copy(update={"signature": base64.b64encode(signature).decode()})


class Verdict(StrEnum):
    """What a check of a signature, or of the certificate behind it, came to."""

    GOOD = "good"
    BAD = "bad"
    NOT_CHECKED = "not_checked"


@dataclass(frozen=True, slots=True)
class Seal:
    """What a head's signature proves.

    ``signature``: it was made by the key of the certificate in the head. ``issuer``: that certificate is an
    Arbiter's, issued by the authority that was given. ``signer``: the name in it, if it is an Arbiter's.
    ``sentence`` says all of it to a person, with what is not proved; its subject, "it", is the head.
    """

    signature: Verdict
    issuer: Verdict
    signer: str | None
    sentence: str


def check(head: Head, *, authority: bytes | None = None, at: datetime | None = None) -> Seal:
    """Check the signature of ``head`` with the certificate inside it, and that with ``authority`` (PEM).

    ``at`` is when the certificate must have been valid; without it the authority is not asked. Raises
    `UserError` when ``authority`` holds no certificate; never for anything that ``head`` holds.
    """
    anchors = None if authority is None else _anchors(authority)
    try:
        leaf, others = _verify(head)
    except ValueError as error:
        return Seal(Verdict.BAD, Verdict.NOT_CHECKED, None, printable(str(error)))
    try:
        who = identify_arbiter(leaf.public_bytes(serialization.Encoding.DER))
    except CertificateRefused as refusal:
        sentence = f"it is signed with a certificate that is not an Arbiter's: {refusal}"
        return Seal(Verdict.GOOD, Verdict.BAD, None, sentence)
    name = spiffe(who.trust_domain, who.profile, who.subject)
    signed = f"it is signed by {name} (certificate {who.fingerprint.hex()})"
    if anchors is None or at is None:
        sentence = f"{signed}; this does not prove who holds that certificate: anybody can make one"
        return Seal(Verdict.GOOD, Verdict.NOT_CHECKED, name, sentence)
    try:
        _verify_issuer(leaf, others, anchors, at)
    except ValueError as error:
        sentence = f"{signed}, but the authority that was given did not issue that: {printable(str(error))}"
        return Seal(Verdict.GOOD, Verdict.BAD, name, sentence)
    sentence = f"{signed}, whom the authority that was given vouches for; revocation was not asked"
    return Seal(Verdict.GOOD, Verdict.GOOD, name, sentence)


def _anchors(authority: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(authority)
    except UNREADABLE:
        raise UserError(
            "the authority's file holds no certificate in PEM form", hint="give the ca.pem of the council"
        ) from None


def _verify(head: Head) -> tuple[x509.Certificate, list[x509.Certificate]]:
    """Return the certificate that signed ``head`` and those that came with it; `ValueError` says why not."""
    if not head.signature:
        raise ValueError("it is not signed")
    try:
        leaf, *others = x509.load_pem_x509_certificates(head.certificate.encode())
        key = leaf.public_key()
    except UNREADABLE:
        raise ValueError("it is signed, but holds no certificate that can be read") from None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ValueError("the certificate in it is not one of an elliptic curve key")  # noqa: TRY004
    try:
        signature = base64.b64decode(head.signature, validate=True)
        key.verify(signature, head.signed_bytes(), ec.ECDSA(hashes.SHA256()))
    except (binascii.Error, InvalidSignature):
        raise ValueError("its signature is not that of the certificate in it: it was edited") from None
    return leaf, others


def _verify_issuer(
    leaf: x509.Certificate, others: list[x509.Certificate], anchors: list[x509.Certificate], at: datetime
) -> None:
    """Raise `ValueError` unless one of ``anchors`` issued ``leaf``, through ``others``, valid at ``at``."""
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    policy = PolicyBuilder().store(Store(anchors)).time(at)
    problem = "it has no name that could be checked"
    for name in names:
        # The verifier asks for the host that was dialled. Nobody dialled: any of its own names will do.
        if isinstance(name, x509.DNSName | x509.IPAddress):
            try:
                policy.build_server_verifier(name).verify(leaf, others)
            except (VerificationError, ValueError) as error:
                problem = str(error)
            else:
                return
    raise ValueError(problem)
