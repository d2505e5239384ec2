"""Certificates from their parts (§14.4). Pure: the key, the serial number and the time are arguments.

1. An authority: CA:TRUE critical with a path length, keyCertSign and cRLSign, and a URI without a path,
   ``spiffe://<trust domain>``, so that what it stands for can be read from it. The root signs intermediates;
   an intermediate signs leaves, and its extended key usage says of which kind.
2. A leaf: CA:FALSE critical, digitalSignature critical, exactly one extended key usage, exactly one URI.
   `consilium.certificate` refuses anything else, and the two are tested against each other.
3. A revocation list: signed by who signed the certificates on it, with a number that grows.
4. SKI and AKI everywhere: strict verification (the default from Python 3.13 on) asks for them.
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
    from collections.abc import Iterable, Sequence

    from cryptography.hazmat.primitives.asymmetric import ec

    from pki.terms import Issuer, Reason

MOST_IN_A_NAME = 64
"""The longest common name that X.520 allows."""

BACKDATE_S = 5 * 60
"""How long before ``now`` a certificate begins to hold, in seconds.

The clocks of two machines differ by a little, and a certificate is used at once after it is issued. The
verifying side makes no allowance, so the issuing side does. It is taken out of the lifetime, not added.
"""


_USAGES: dict[Issuer, x509.ObjectIdentifier] = {
    "participants": ExtendedKeyUsageOID.CLIENT_AUTH,
    "operators": ExtendedKeyUsageOID.CLIENT_AUTH,
    "servers": ExtendedKeyUsageOID.SERVER_AUTH,
}
_REASONS: dict[Reason, x509.ReasonFlags] = {
    "key-compromise": x509.ReasonFlags.key_compromise,
    "affiliation-changed": x509.ReasonFlags.affiliation_changed,
    "superseded": x509.ReasonFlags.superseded,
    "cessation-of-operation": x509.ReasonFlags.cessation_of_operation,
    "privilege-withdrawn": x509.ReasonFlags.privilege_withdrawn,
}


@dataclass(frozen=True, slots=True)
class Signer:
    """A certificate that signs others, and its key: the root or an intermediate."""

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


@dataclass(frozen=True, slots=True)
class Revoked:
    """One line of a revocation list: ``when`` in whole seconds since the epoch."""

    serial: int
    when: int
    reason: Reason


def build_authority(
    key: ec.EllipticCurvePrivateKey, *, trust_domain: str, serial: int, now: float, days: int
) -> x509.Certificate:
    """A self-signed root for ``trust_domain``, below which there is room for intermediates."""
    name = _name(f"Consilium CA {trust_domain}"[:MOST_IN_A_NAME])
    builder = (
        _begin(serial, _period(now, days), subject=name, issuer=name, public_key=key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
        .add_extension(_alternative_names(f"spiffe://{trust_domain}"), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    return builder.sign(key, hashes.SHA256())


def build_intermediate(
    root: Signer,
    public_key: ec.EllipticCurvePublicKey,
    *,
    issuer: Issuer,
    trust_domain: str,
    serial: int,
    now: float,
    days: int,
) -> x509.Certificate:
    """What signs the leaves of one kind, and no other kind and no further authority."""
    name = _name(intermediate_name(issuer, trust_domain))
    period = _within(_period(now, days), root.certificate)
    subject = root.certificate.subject
    builder = (
        _begin(serial, period, subject=name, issuer=subject, public_key=public_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([_USAGES[issuer]]), critical=False)
        .add_extension(_alternative_names(f"spiffe://{trust_domain}"), critical=False)
        .add_extension(_pointer_to(root.certificate), critical=False)
    )
    return builder.sign(root.key, hashes.SHA256())


def intermediate_name(issuer: Issuer, trust_domain: str) -> str:
    """The common name of an intermediate: what a capability profile's ``issuer`` asks for."""
    return f"Consilium {issuer} ({trust_domain})"[:MOST_IN_A_NAME]


def build_leaf(
    signer: Signer, public_key: ec.EllipticCurvePublicKey, leaf: Leaf, *, serial: int, now: float, days: int
) -> x509.Certificate:
    """A holder's certificate, signed. It does not outlive the one that signs it."""
    period = _within(_period(now, days), signer.certificate)
    issuer = signer.certificate.subject
    builder = (
        _begin(serial, period, subject=_name(leaf.name), issuer=issuer, public_key=public_key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([leaf.usage]), critical=False)
        .add_extension(_alternative_names(leaf.uri, leaf.hosts), critical=False)
        .add_extension(_pointer_to(signer.certificate), critical=False)
    )
    return builder.sign(signer.key, hashes.SHA256())


def build_crl(
    signer: Signer, revoked: Iterable[Revoked], *, number: int, this_update: int, next_update: int
) -> x509.CertificateRevocationList:
    """Which certificates of ``signer`` hold no more (RFC 5280 §5). Times are seconds since the epoch."""
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(signer.certificate.subject)
        .last_update(_moment(this_update))
        .next_update(_moment(next_update))
        .add_extension(x509.CRLNumber(number), critical=False)
        .add_extension(_pointer_to(signer.certificate), critical=False)
    )
    for each in revoked:
        builder = builder.add_revoked_certificate(_entry(each))
    return builder.sign(signer.key, hashes.SHA256())


def _entry(revoked: Revoked) -> x509.RevokedCertificate:
    entry = (
        x509.RevokedCertificateBuilder().serial_number(revoked.serial).revocation_date(_moment(revoked.when))
    )
    if revoked.reason != "unspecified":  # RFC 5280 §5.3.1: then it is left out
        entry = entry.add_extension(x509.CRLReason(_REASONS[revoked.reason]), critical=False)
    return entry.build()


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
    return _moment(start), _moment(start + days * DAY)


def _within(period: tuple[datetime, datetime], signer: x509.Certificate) -> tuple[datetime, datetime]:
    """Cut short what would outlive the one that signs it."""
    return period[0], min(period[1], signer.not_valid_after_utc)


def _moment(when: int) -> datetime:
    return datetime.fromtimestamp(when, UTC)


def _pointer_to(signer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    ski = signer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ski)


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
