"""A certificate judged by its profile, never by how it looks (§14.4; X.509-SVID shaped).

1. The chain and the clock belong to TLS; this module asks what kind of certificate it is. It reads no clock.
2. Whatever is not exactly as listed in `_CHECKS` is refused, in one sentence that says what is wrong.
3. Nothing is decided on the CN. What a sentence quotes from a certificate is made printable first.

Importing this module loads `cryptography`; nothing that must start fast imports it at its top.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeVar

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from consilium.errors import ConsiliumError
from consilium.identity import DAY, MAX_LIFETIME_DAYS, Identity, fingerprint, parse_spiffe

if TYPE_CHECKING:
    from collections.abc import Callable

Ext = TypeVar("Ext", bound=x509.ExtensionType)

ARBITER = "arbiter"
"""The profile segment that an Arbiter's certificate has, and no other."""

KNOWN = 1024
"""So many certificates are remembered: whoever reconnects is not read again. About 1 KiB each."""

UNREADABLE = (
    TypeError,  # a text type that does not go with its attribute
    ValueError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""What `cryptography` raises for a certificate, or a list of revoked ones, that it cannot read."""

_USAGE_NAMES = {
    ExtendedKeyUsageOID.CLIENT_AUTH: "clientAuth",
    ExtendedKeyUsageOID.SERVER_AUTH: "serverAuth",
    ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE: "anyExtendedKeyUsage",
}
_MAY_BE_CRITICAL = {
    ExtensionOID.BASIC_CONSTRAINTS,
    ExtensionOID.KEY_USAGE,
    ExtensionOID.EXTENDED_KEY_USAGE,
    ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
}


class CertificateRefused(ConsiliumError):  # noqa: N818 - what happened to it, in the word that we show
    """Raised when a certificate is not of the profile. The message is one sentence for a person."""


class Kind(Enum):
    """What a certificate is for; the value is the one extended key usage that it must have."""

    CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH
    ARBITER = ExtendedKeyUsageOID.SERVER_AUTH


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of a certificate, by name, and what came of it."""

    check: str
    ok: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Validity:
    """Where ``now`` falls in a certificate's life; times are seconds since the epoch."""

    not_before: float
    not_after: float
    state: Literal["valid", "expired", "not yet valid"]
    sentence: str


@dataclass(frozen=True, slots=True)
class Link:
    """What a list of revoked certificates knows a certificate by.

    ``issuer`` is the DER of the issuer's name, ``key`` the identifier of its key: two authorities may have
    the same name, as before and after a rotation.
    """

    issuer: bytes
    key: bytes
    serial: int


@lru_cache(maxsize=KNOWN)
def link(der: bytes) -> Link:
    """The link of a certificate that TLS has verified. Raises `CertificateRefused` when it cannot be read."""
    certificate = load(der)
    known_by = _extension(certificate, x509.AuthorityKeyIdentifier)
    key = None if known_by is None else known_by.value.key_identifier
    return Link(certificate.issuer.public_bytes(), key or b"", certificate.serial_number)


@lru_cache(maxsize=KNOWN)
def identify(der: bytes) -> Identity:
    """Who presents this certificate: a participant or an operator, by profile (§14.4).

    Raises `CertificateRefused` unless it is an EC P-256 leaf of at most 90 days with EKU exactly clientAuth
    and exactly one subject alternative name, the URI ``spiffe://<trust domain>/<profile>/<id>``.
    What a certificate says never changes, so it is read once; whether it holds now is for the caller to ask.
    """
    return _identify(der, Kind.CLIENT)


def identify_arbiter(der: bytes) -> Identity:
    """Which Arbiter presents this certificate: what a wrapper asks after the handshake.

    As `identify`, but EKU exactly serverAuth, profile segment ``arbiter``, and beside the URI one or more
    DNS names or IP addresses, none of them a wildcard. A seat's certificate is refused.
    """
    return _identify(der, Kind.ARBITER)


def examine(der: bytes) -> list[Finding]:
    """Every check of the profile, each answered, for a person to read. Kind as the URI claims it.

    Raises `CertificateRefused` only when ``der`` cannot be read as a certificate at all.
    """
    certificate = load(der)
    return [_finding(name, check, certificate, kind_of(certificate)) for name, check in _CHECKS]


def kind_of(certificate: x509.Certificate) -> Kind:
    """The kind that a certificate's URI claims; CLIENT when it claims nothing that can be read."""
    try:
        uris, _ = _alternative_names(certificate)
        claims = [parse_spiffe(uri)[1] for uri in uris]
    except ValueError:
        return Kind.CLIENT
    return Kind.ARBITER if ARBITER in claims else Kind.CLIENT


def validity(der: bytes, now: float) -> Validity:
    """Whether a certificate holds at ``now``, and how far away the nearer end of its life is.

    There is no allowance for clock skew. Raises `CertificateRefused` when ``der`` cannot be read.
    """
    certificate = load(der)
    start = certificate.not_valid_before_utc.timestamp()
    end = certificate.not_valid_after_utc.timestamp()
    if now < start:
        when = f"not valid for another {span(start - now)} (from {moment(start)}); is this clock right?"
        return Validity(start, end, "not yet valid", when)
    # OpenSSL counts the last second itself as over, and it is OpenSSL that refuses on the wire.
    if now >= end:
        return Validity(start, end, "expired", f"expired {span(now - end)} ago ({moment(end)})")
    return Validity(start, end, "valid", f"valid for another {span(end - now)} (until {moment(end)})")


def load(der: bytes) -> x509.Certificate:
    """Read a certificate and all its extensions. Raises `CertificateRefused` when that is not possible."""
    try:
        certificate = x509.load_der_x509_certificate(der)
        # Both are parsed on first use; asked for here, they cannot surprise any check below.
        _ = certificate.extensions, certificate.public_key()
        _ = certificate.subject, certificate.issuer
    except UNREADABLE as cause:
        raise CertificateRefused("it cannot be read as a certificate of ours") from cause
    return certificate


def common_name(name: x509.Name) -> str:
    """The one common name in ``name``, made printable; empty when there are none or several."""
    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return printable(str(found[0].value)) if len(found) == 1 else ""


def printable(text: str) -> str:
    """``text`` with everything but printable characters escaped: it may be shown on a terminal."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )


def span(seconds: float) -> str:
    """A length of time in its largest unit of which there are at least two: ``3 days``, ``90 minutes``."""
    for unit, size in (("days", DAY), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return "1 second" if 1 <= seconds < 2 else f"{seconds // 1:.0f} seconds"


def moment(when: float) -> str:
    """A time for a person, in UTC. ``when`` is seconds since the epoch."""
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _identify(der: bytes, kind: Kind) -> Identity:
    certificate = load(der)
    for _, check in _CHECKS:
        check(certificate, kind)
    (uri,), _ = _alternative_names(certificate)
    trust_domain, profile, subject = parse_spiffe(uri)
    return Identity(
        fingerprint=fingerprint(der),
        trust_domain=trust_domain,
        profile=profile,
        subject=subject,
        not_after=certificate.not_valid_after_utc.timestamp(),
        lifetime_s=_lifetime(certificate),
        issuer=common_name(certificate.issuer),
    )


def _finding(name: str, check: Check, certificate: x509.Certificate, kind: Kind) -> Finding:
    try:
        return Finding(name, ok=True, sentence=check(certificate, kind))
    except CertificateRefused as refusal:
        return Finding(name, ok=False, sentence=str(refusal))


# --- the checks: each returns what it found in order, or raises CertificateRefused -------------------


def _public_key(certificate: x509.Certificate, _: Kind) -> str:
    key = certificate.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise CertificateRefused("the public key is not an elliptic curve key; it must be EC P-256")
    if not isinstance(key.curve, ec.SECP256R1):
        raise CertificateRefused(f"the public key is on the curve {key.curve.name}; it must be EC P-256")
    return "the public key is EC P-256"


def _key_usage(certificate: x509.Certificate, _: Kind) -> str:
    extension = _extension(certificate, x509.KeyUsage)
    if extension is None or not extension.critical:
        raise CertificateRefused("the key usage is missing or not critical; it must say digitalSignature")
    if not extension.value.digital_signature:
        raise CertificateRefused("the key usage does not include digitalSignature")
    if extension.value.key_cert_sign or extension.value.crl_sign:
        raise CertificateRefused("the key usage lets the holder sign certificates or revocation lists")
    return "the key usage is critical and includes digitalSignature"


def _extended_key_usage(certificate: x509.Certificate, kind: Kind) -> str:
    wanted = _USAGE_NAMES[kind.value]
    extension = _extension(certificate, x509.ExtendedKeyUsage)
    if extension is None:
        raise CertificateRefused(f"the extended key usage is missing; it must be exactly {wanted}")
    found = list(extension.value)
    if found != [kind.value]:
        names = ", ".join(_USAGE_NAMES.get(usage, usage.dotted_string) for usage in found)
        raise CertificateRefused(f"the extended key usage is {names}; it must be exactly {wanted}")
    return f"the extended key usage is exactly {wanted}"


def _not_an_authority(certificate: x509.Certificate, _: Kind) -> str:
    extension = _extension(certificate, x509.BasicConstraints)
    if extension is not None and extension.value.ca:
        raise CertificateRefused("it is a certificate authority's (CA:TRUE), and none of those may connect")
    if extension is None or not extension.critical:
        raise CertificateRefused("the basic constraints are missing or not critical; they must say CA:FALSE")
    return "it is a leaf (CA:FALSE)"


def _names(certificate: x509.Certificate, kind: Kind) -> str:
    uris, others = _alternative_names(certificate)
    if len(uris) != 1:
        raise CertificateRefused(f"it has {len(uris)} URI names; it must have exactly one, spiffe://...")
    try:
        _, profile, _ = parse_spiffe(uris[0])
    except ValueError as cause:
        raise CertificateRefused(f"the URI name {printable(uris[0])[:200]} is {cause}") from cause
    if (profile == ARBITER) is not (kind is Kind.ARBITER):
        raise CertificateRefused(f"the profile in {uris[0]} does not go with {_USAGE_NAMES[kind.value]}")
    if kind is Kind.ARBITER:
        _addresses(others)
    elif others:
        raise CertificateRefused("it has other names beside its URI; it must have exactly one name, the URI")
    return f"it is {uris[0]}"


def _addresses(others: list[x509.GeneralName]) -> None:
    """Refuse the names of an Arbiter unless they are hosts that a client can check, one by one."""
    if not others:
        raise CertificateRefused("it has no DNS name and no IP address, so no client could check the host")
    for name in others:
        if isinstance(name, x509.DNSName) and "*" in name.value:
            raise CertificateRefused("it has a wildcard name; every host must be named in full")
        if not isinstance(name, x509.DNSName | x509.IPAddress):
            raise CertificateRefused("it has a name that is no URI, DNS name or IP address")


def _lifetime_bound(certificate: x509.Certificate, _: Kind) -> str:
    lifetime = _lifetime(certificate)
    if lifetime <= 0:
        raise CertificateRefused("its validity ends before it begins")
    if lifetime > MAX_LIFETIME_DAYS * DAY:
        raise CertificateRefused(
            f"its lifetime is {lifetime / DAY:.1f} days; the longest accepted is {MAX_LIFETIME_DAYS}"
        )
    return f"its lifetime is {span(lifetime)}, of at most {MAX_LIFETIME_DAYS} days"


def _subject(certificate: x509.Certificate, _: Kind) -> str:
    # Nothing is decided on the subject; but people read it, and a NUL in it means that somebody tried.
    for attribute in certificate.subject:
        if not isinstance(attribute.value, str) or not attribute.value.isprintable():
            raise CertificateRefused("its subject holds a character that cannot be printed")
    return "its subject is plain text"


def _critical_extensions(certificate: x509.Certificate, _: Kind) -> str:
    for extension in certificate.extensions:
        if extension.critical and extension.oid not in _MAY_BE_CRITICAL:
            raise CertificateRefused(
                f"it has a critical extension {extension.oid.dotted_string} unknown here"
            )
    return "every critical extension is understood"


if TYPE_CHECKING:
    Check = Callable[[x509.Certificate, Kind], str]

_CHECKS: tuple[tuple[str, Check], ...] = (
    ("public key", _public_key),
    ("key usage", _key_usage),
    ("extended key usage", _extended_key_usage),
    ("leaf", _not_an_authority),
    ("names", _names),
    ("lifetime", _lifetime_bound),
    ("subject", _subject),
    ("extensions", _critical_extensions),
)


def _extension(certificate: x509.Certificate, wanted: type[Ext]) -> x509.Extension[Ext] | None:
    try:
        return certificate.extensions.get_extension_for_class(wanted)
    except x509.ExtensionNotFound:
        return None


def _alternative_names(certificate: x509.Certificate) -> tuple[list[str], list[x509.GeneralName]]:
    """The URI names, and all others."""
    extension = _extension(certificate, x509.SubjectAlternativeName)
    names = [] if extension is None else list(extension.value)
    uris = [name.value for name in names if isinstance(name, x509.UniformResourceIdentifier)]
    return uris, [name for name in names if not isinstance(name, x509.UniformResourceIdentifier)]


def _lifetime(certificate: x509.Certificate) -> float:
    return (certificate.not_valid_after_utc - certificate.not_valid_before_utc).total_seconds()
