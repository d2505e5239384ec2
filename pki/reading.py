"""PEM files to certificates and keys. Whatever cannot be read is one sentence, and never a quotation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from consilium.armour import blocks
from consilium.certificate import UNREADABLE, CertificateRefused, common_name, load, printable
from consilium.credentials import Credentials
from consilium.errors import UserError
from pki.store import read_key, read_pem

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


def read_certificates(path: Path) -> list[x509.Certificate]:
    """The certificates of a PEM file, in order; at least one. Raises `UserError` when there is none."""
    try:
        return [load(der(found)) for found in x509.load_pem_x509_certificates(read_pem(path))]
    except UNREADABLE as cause:
        raise UserError(f"{path} holds no certificate in PEM form") from cause
    except CertificateRefused as refusal:
        raise UserError(f"{path}: {refusal}") from refusal


def read_lists(path: Path) -> list[x509.CertificateRevocationList]:
    """The revocation lists of a PEM file, in order; at least one. Raises `UserError` when there is none."""
    found = blocks(read_pem(path), "X509 CRL")
    if not found:
        raise UserError(f"{path} holds no revocation list in PEM form")
    try:
        lists = [x509.load_pem_x509_crl(each) for each in found]
        for each in lists:
            _ = each.extensions, list(each)  # parsed on first use; asked for here, they surprise nobody later
    except UNREADABLE:
        raise UserError(f"{path} holds a revocation list that cannot be read") from None
    return lists


def read_private_key(path: Path) -> PrivateKeyTypes:
    """The private key of a PEM file. Raises `UserError` as `pki.store.read_key`, and when it holds none."""
    try:
        return serialization.load_pem_private_key(read_key(path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The cause is left out on purpose: what a parser says of a broken key may quote it.
        raise UserError(f"{path} holds no private key in PEM form") from None


def is_usable(folder: Path) -> bool:
    """Whether a holder's folder holds a certificate, its key and trust anchors, as they should be."""
    try:
        credentials = Credentials.load(folder)
        key = read_private_key(credentials.key)
        return key.public_key() == read_certificates(credentials.cert)[0].public_key()
    except UserError:
        return False


def der(certificate: x509.Certificate) -> bytes:
    """The bytes that a fingerprint is taken of."""
    return certificate.public_bytes(serialization.Encoding.DER)


def called(name: x509.Name) -> str:
    """What to call a certificate by in a sentence; printable, and without authority."""
    return common_name(name) or printable(name.rfc4514_string())
