"""The four that sign, root and intermediates: made, read, and put to use on revocation lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from consilium.certificate import UNREADABLE
from consilium.credentials import CERT, KEY
from consilium.errors import UserError
from pki.build import Signer, build_authority, build_crl, build_intermediate
from pki.names import check_trust_domain
from pki.reading import read_certificates, read_private_key
from pki.store import check_root
from pki.terms import ROOT, Issuer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pki.index import Index, Lists

ISSUERS: tuple[Issuer, ...] = get_args(Issuer)


def new_signers(trust_domain: str, *, now: float, days: int) -> dict[str, Signer]:
    """A new root and the intermediates that it signs, by the name of their folder."""
    key = new_key()
    serial = x509.random_serial_number()
    root = Signer(build_authority(key, trust_domain=trust_domain, serial=serial, now=now, days=days), key)
    signers = {ROOT: root}
    for issuer in ISSUERS:
        own = new_key()
        certificate = build_intermediate(
            root,
            own.public_key(),
            issuer=issuer,
            trust_domain=trust_domain,
            serial=x509.random_serial_number(),
            now=now,
            days=days,
        )
        signers[issuer] = Signer(certificate, own)
    return signers


def read_signer(folder: Path) -> Signer:
    """Read a certificate that signs, and its key. Raises `UserError` when they cannot be used together."""
    check_root(folder)
    certificate = read_certificates(folder / CERT)[0]
    key = read_private_key(folder / KEY)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UserError(f"{folder / KEY} is not an elliptic curve key")
    if certificate.public_key() != key.public_key():
        raise UserError(f"{folder / KEY} is not the key of {folder / CERT}")
    return Signer(certificate, key)


def lists_pem(signers: Mapping[str, Signer], index: Index, lists: Lists) -> bytes:
    """The PEM of the revocation list of each signer. ``index`` still has the ``lists`` before these."""
    made = [
        build_crl(
            signer,
            [revoked for issuer in ISSUERS if issuer == name for revoked in index.to_list(issuer)],
            number=lists.number,
            this_update=lists.this_update,
            next_update=lists.next_update,
        )
        for name, signer in signers.items()
    ]
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in made)


def is_numbered(path: Path, number: int) -> bool:
    """Whether the revocation lists at ``path`` are those with ``number``."""
    try:
        first = x509.load_pem_x509_crl(path.read_bytes())
        return first.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number == number
    except (OSError, x509.ExtensionNotFound, *UNREADABLE):
        return False


def trust_domain_of(root: x509.Certificate, path: Path) -> str:
    """The trust domain in a root's URI, ``spiffe://<trust domain>``. Raises `UserError` if it has none."""
    try:
        names = root.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        (uri,) = names.get_values_for_type(x509.UniformResourceIdentifier)
        trust_domain = uri.removeprefix("spiffe://")
        check_trust_domain(trust_domain)
    except (x509.ExtensionNotFound, ValueError, UserError) as cause:
        raise UserError(f"{path} is not the certificate of an authority of ours") from cause
    return trust_domain


def new_key() -> ec.EllipticCurvePrivateKey:
    """A private key of the one kind that is used here."""
    return ec.generate_private_key(ec.SECP256R1())


def pem(certificate: x509.Certificate) -> bytes:
    """A certificate as it stands in a file."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as it stands in a file of mode 0600, without a passphrase."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
