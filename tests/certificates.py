"""Certificates for tests, above all bad ones, each bad in exactly one way.

    root = forge_root()
    good = issue_odd(root)
    bad = issue_odd(root, usages=(SERVER_AUTH,))
    credentials = bad.write(tmp_path / "seat")

`ODD` lists what is wrong with a seat's certificate by kind, and what the refusal says. Keys are throw-away;
those of an odd kind are shared within a run: making an RSA key takes longer than any test that needs one.
"""

from __future__ import annotations

import datetime as dt
import functools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from consilium.credentials import CA, CERT, KEY, Credentials
from pki.build import Signer, build_authority

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes

CLIENT_AUTH = ExtendedKeyUsageOID.CLIENT_AUTH
SERVER_AUTH = ExtendedKeyUsageOID.SERVER_AUTH
ANY_USAGE = ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE

SEAT = "spiffe://council.local/participant/seat"
DAY = 86400


@dataclass(frozen=True, slots=True)
class Forged:
    """A certificate, its key, and the PEM of what its holder trusts."""

    certificate: x509.Certificate
    key: CertificateIssuerPrivateKeyTypes
    anchors: bytes

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def write(self, folder: Path, *, intermediates: bytes = b"", anchors: bytes | None = None) -> Credentials:
        """Write the three files of a holder's folder."""
        folder.mkdir(parents=True)
        (folder / CERT).write_bytes(self.pem + intermediates)
        (folder / KEY).touch(mode=0o600)
        (folder / KEY).write_bytes(self.key_pem)
        (folder / CA).write_bytes(self.anchors if anchors is None else anchors)
        return Credentials.load(folder)


def key_of(kind: str) -> CertificateIssuerPrivateKeyTypes:
    """A new P-256 key, or this run's one key of another kind: P-384, secp256k1, RSA, Ed25519."""
    return ec.generate_private_key(ec.SECP256R1()) if kind == "P-256" else _odd_key(kind)


@functools.cache
def _odd_key(kind: str) -> CertificateIssuerPrivateKeyTypes:
    match kind:
        case "P-384":
            return ec.generate_private_key(ec.SECP384R1())
        case "secp256k1":
            return ec.generate_private_key(ec.SECP256K1())
        case "RSA":
            return rsa.generate_private_key(public_exponent=65537, key_size=2048)
        case "Ed25519":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            raise ValueError(kind)


def clock() -> float:
    """The real time: what a handshake goes by."""
    return time.time()  # noqa: TID251 - OpenSSL reads the same clock


def forge_root(trust_domain: str = "council.local", *, now: float | None = None, days: int = 365) -> Signer:
    """An authority in memory. Two calls give two authorities of the same name."""
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    when = clock() if now is None else now
    return Signer(build_authority(key, trust_domain=trust_domain, serial=serial, now=when, days=days), key)


def uris(*values: str) -> list[x509.GeneralName]:
    """URI names."""
    return [x509.UniformResourceIdentifier(value) for value in values]


def key_usage(*allowed: str) -> x509.KeyUsage:
    """A key usage with exactly ``allowed`` set."""
    flags = dict.fromkeys(
        (
            "digital_signature",
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "key_cert_sign",
            "crl_sign",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(**flags | dict.fromkeys(allowed, True))


def issue_odd(
    signer: Signer,
    *,
    cn: str = "seat",
    subject: x509.Name | None = None,
    key: str | CertificateIssuerPrivateKeyTypes = "P-256",
    names: Sequence[x509.GeneralName] | None = None,
    usages: Sequence[x509.ObjectIdentifier] | None = (CLIENT_AUTH,),
    usage: x509.KeyUsage | None = None,
    usage_critical: bool = True,
    no_usage: bool = False,
    constraints: x509.BasicConstraints | None = None,
    constraints_critical: bool = True,
    no_constraints: bool = False,
    start: float = -300,
    seconds: float = 30 * DAY,
    extra: Iterable[tuple[x509.ExtensionType, bool]] = (),
    now: float | None = None,
) -> Forged:
    """A seat's certificate signed by ``signer``; good unless an argument makes it odd.

    ``start`` is relative to ``now``, ``seconds`` is the lifetime, ``extra`` are extensions with whether they
    are critical. ``names=[]`` and ``usages=None`` leave these extensions out.
    """
    holder = key_of(key) if isinstance(key, str) else key
    begin = dt.datetime.fromtimestamp(int((clock() if now is None else now) + start), dt.UTC)
    issuer_key = signer.key.public_key()
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject or x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, cn)]))
        .issuer_name(signer.certificate.subject)
        .public_key(holder.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + dt.timedelta(seconds=seconds))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(holder.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )
    found: list[tuple[x509.ExtensionType, bool]] = list(extra)
    if not no_constraints:
        leaf = x509.BasicConstraints(ca=False, path_length=None)
        found.append((constraints or leaf, constraints_critical))
    if not no_usage:
        found.append((usage or key_usage("digital_signature"), usage_critical))
    if usages is not None:
        found.append((x509.ExtendedKeyUsage(usages), False))
    alternative = uris(SEAT) if names is None else names
    if alternative:
        found.append((x509.SubjectAlternativeName(alternative), False))
    for extension, critical in found:
        builder = builder.add_extension(extension, critical=critical)
    anchor = signer.certificate.public_bytes(serialization.Encoding.PEM)
    return Forged(builder.sign(signer.key, hashes.SHA256()), holder, anchor)


ODD: dict[str, tuple[dict[str, Any], str]] = {
    "RSA key": ({"key": "RSA"}, "not an elliptic curve key"),
    "Ed25519 key": ({"key": "Ed25519"}, "not an elliptic curve key"),
    "P-384 key": ({"key": "P-384"}, "curve secp384r1"),
    "secp256k1 key": ({"key": "secp256k1"}, "curve secp256k1"),
    "no key usage": ({"no_usage": True}, "key usage is missing or not critical"),
    "key usage not critical": ({"usage_critical": False}, "key usage is missing or not critical"),
    "no digitalSignature": ({"usage": key_usage("key_agreement")}, "does not include digitalSignature"),
    "may sign certificates": (
        {"usage": key_usage("digital_signature", "key_cert_sign")},
        "lets the holder sign certificates",
    ),
    "may sign CRLs": ({"usage": key_usage("digital_signature", "crl_sign")}, "lets the holder sign"),
    "no EKU": ({"usages": None}, "extended key usage is missing; it must be exactly clientAuth"),
    "serverAuth": ({"usages": (SERVER_AUTH,)}, "is serverAuth; it must be exactly clientAuth"),
    "client and server": ({"usages": (CLIENT_AUTH, SERVER_AUTH)}, "is clientAuth, serverAuth; it must be"),
    "clientAuth twice": ({"usages": (CLIENT_AUTH, CLIENT_AUTH)}, "is clientAuth, clientAuth; it must be"),
    "anyExtendedKeyUsage": ({"usages": (ANY_USAGE,)}, "is anyExtendedKeyUsage; it must be"),
    "any and clientAuth": ({"usages": (CLIENT_AUTH, ANY_USAGE)}, "is clientAuth, anyExtendedKeyUsage;"),
    "code signing": ({"usages": (ExtendedKeyUsageOID.CODE_SIGNING,)}, "is 1.3.6.1.5.5.7.3.3; it must be"),
    "CA:TRUE": ({"constraints": x509.BasicConstraints(ca=True, path_length=0)}, "CA:TRUE"),
    "no basic constraints": ({"no_constraints": True}, "basic constraints are missing or not critical"),
    "constraints not critical": (
        {"constraints_critical": False},
        "basic constraints are missing or not critical",
    ),
    "no SAN": ({"names": []}, "it has 0 URI names"),
    "DNS SAN only": ({"names": [x509.DNSName("seat.council.local")]}, "it has 0 URI names"),
    "DNS beside URI": (
        {"names": [*uris(SEAT), x509.DNSName("seat.council.local")]},
        "other names beside its URI",
    ),
    "email beside URI": (
        {"names": [*uris(SEAT), x509.RFC822Name("seat@council.local")]},
        "other names beside its URI",
    ),
    "two URIs": ({"names": uris(SEAT, SEAT.replace("participant", "operator"))}, "it has 2 URI names"),
    "wildcard id": (
        {"names": uris("spiffe://council.local/participant/*")},
        "participant/* is not of the form",
    ),
    "wildcard domain": ({"names": uris("spiffe://*/participant/seat")}, "not of the form"),
    "other scheme": ({"names": uris("https://council.local/participant/seat")}, "not of the form"),
    "upper case scheme": ({"names": uris("SPIFFE://council.local/participant/seat")}, "not of the form"),
    "longer path": ({"names": uris(SEAT + "/more")}, "not of the form"),
    "shorter path": ({"names": uris("spiffe://council.local/participant")}, "not of the form"),
    "query": ({"names": uris(SEAT + "?x=1")}, "not of the form"),
    "port": ({"names": uris("spiffe://council.local:1/participant/seat")}, "not of the form"),
    "dots": ({"names": uris("spiffe://council.local/participant/..")}, "not of the form"),
    "NUL in the URI": ({"names": uris(SEAT + "\0")}, "seat\\x00 is not of the form"),
    "newline after the URI": ({"names": uris(SEAT + "\n")}, "seat\\n is not of the form"),
    "arbiter's identity": (
        {"names": uris("spiffe://council.local/arbiter/seat")},
        "does not go with clientAuth",
    ),
    "over 90 days": ({"seconds": 90 * DAY + 1}, "the longest accepted is 90"),
    "ten years": ({"seconds": 3650 * DAY}, "its lifetime is 3650.0 days"),
    "no time at all": ({"seconds": 0}, "ends before it begins"),
    "NUL in the CN": ({"cn": "admin\0.council.local"}, "a character that cannot be printed"),
    "escape in the CN": ({"cn": "\x1b[2Jseat"}, "a character that cannot be printed"),
    "bidi in the CN": ({"cn": "seat\u202e"}, "a character that cannot be printed"),
    "unknown critical extension": (
        {"extra": [(x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\5\0"), True)]},
        "critical extension 1.2.3.4 unknown here",
    ),
    "critical name constraints": (
        {"extra": [(x509.NameConstraints([x509.DNSName("council.local")], None), True)]},
        "critical extension 2.5.29.30 unknown here",
    ),
}
"""What is odd (arguments of `issue_odd`) and what `identify` then says, by kind."""
