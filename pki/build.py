"""Certificates from their parts (§14.4). Pure: the key, the serial number and the time are arguments.

1. The authority: CA:TRUE critical with a path length, keyCertSign and cRLSign, and a URI without a path,
   ``spiffe://<trust domain>``, so that what it stands for can be read from it.
2. A leaf: CA:FALSE critical, digitalSignature critical, exactly one extended key usage, exactly one URI.
   `consilium.certificate` refuses anything else, and the two are tested against each other.
3. SKI and AKI everywhere: strict verification (the default from Python 3.13 on) asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from consilium.identity import DAY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric import ec

BACKDATE_S = 5 * 60
"""How long before ``now`` a certificate begins to hold, in seconds.

The clocks of two machines differ by a little, and a certificate is used at once after it is issued. The
verifying side makes no allowance, so the issuing side does. It is taken out of the lifetime, not added.
"""


@dataclass(frozen=True, slots=True)
class Signer:
    """A certificate that signs others, and its key. Today the root; it might as well be an intermediate."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class Leaf:
    """What is to stand in a holder's certificate. ``hosts`` are an Arbiter's DNS names and IP addresses."""

    name: str
    uri: str
    usage: x509.ObjectIdentifier
    hosts: Sequence[x509.GeneralName] = ()

    @classmethod
    def of_client(cls, name: str, uri: str) -> Leaf:
        """A participant's or an operator's: it connects, and it serves nobody."""
        return cls(name, uri, ExtendedKeyUsageOID.CLIENT_AUTH)

    @classmethod
    def of_arbiter(cls, name: str, uri: str, hosts: Sequence[x509.GeneralName]) -> Leaf:
        """The Arbiter's: it serves under ``hosts``, and it can take nobody's seat."""
        return cls(name, uri, ExtendedKeyUsageOID.SERVER_AUTH, hosts)


def build_authority(
    key: ec.EllipticCurvePrivateKey, *, trust_domain: str, serial: int, now: float, days: int
) -> x509.Certificate:
    """A self-signed authority for ``trust_domain``, which signs leaves and no further authority."""
    name = _name(f"Consilium CA {trust_domain}"[:64])
    builder = (
        _begin(serial, _period(now, days), subject=name, issuer=name, public_key=key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
        .add_extension(_alternative_names(f"spiffe://{trust_domain}"), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    return builder.sign(key, hashes.SHA256())


def build_leaf(
    signer: Signer, public_key: ec.EllipticCurvePublicKey, leaf: Leaf, *, serial: int, now: float, days: int
) -> x509.Certificate:
    """A holder's certificate, signed. It does not outlive the one that signs it."""
    start, end = _period(now, days)
    period = start, min(end, signer.certificate.not_valid_after_utc)
    issuer = signer.certificate.subject
    ski = signer.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        _begin(serial, period, subject=_name(leaf.name), issuer=issuer, public_key=public_key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([leaf.usage]), critical=False)
        .add_extension(_alternative_names(leaf.uri, leaf.hosts), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ski), critical=False)
    )
    return builder.sign(signer.key, hashes.SHA256())


def _begin(
    serial: int,
    period: tuple[datetime, datetime],
    *,
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(serial)
        .not_valid_before(period[0])
        .not_valid_after(period[1])
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _period(now: float, days: int) -> tuple[datetime, datetime]:
    start = int(now) - BACKDATE_S
    return datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(start + days * DAY, UTC)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative_names(uri: str, hosts: Sequence[x509.GeneralName] = ()) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri), *hosts])


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )
