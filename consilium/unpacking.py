"""The content of a bundle to the three PEMs that TLS takes. In memory only: no file is read or written.

Which certificate is which shows in the certificates: the leaf is the key's, what signed itself is a trust
anchor, and the chain leads from the leaf upwards.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from consilium.certificate import UNREADABLE, CertificateRefused, load
from consilium.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cryptography.hazmat.primitives.asymmetric.types import (
        CertificatePublicKeyTypes,
        PrivateKeyTypes,
        PublicKeyTypes,
    )

    Passphrase = Callable[[], bytes] | None
    Certificates = list[x509.Certificate]

_PEM = b"-----BEGIN "
_KEY = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL)

_WAY_OUT = "`consilium pki bundle` writes one that is whole"


class Parts(NamedTuple):
    """The PEM of a leaf with its chain, of its key, and of the trust anchors."""

    cert: bytes
    key: bytes
    ca: bytes


def unpack(data: bytes, passphrase: Passphrase, *, name: str) -> Parts:
    """Take a bundle apart. ``passphrase`` is called if the key is encrypted; ``name`` is told in a refusal.

    Raises `UserError` when ``data`` is no bundle, or not a whole one, or is not opened by the passphrase.
    """
    read = _from_pem if _PEM in data else _from_pkcs12
    key, found = read(data, passphrase, name)
    certificates = _readable(found, name)
    public = _spki(key.public_key())
    leaf = next((each for each in certificates if _spki(each.public_key()) == public), None)
    if leaf is None:
        raise UserError(f"{name} does not hold the certificate of its key", hint=_WAY_OUT)
    anchors = [each for each in certificates if each.issuer == each.subject]
    if not anchors:
        raise UserError(f"{name} holds no certificate of an authority, so whom to trust", hint=_WAY_OUT)
    return Parts(
        cert=_pem(_chain(leaf, certificates)),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        ca=_pem(anchors),
    )


def _from_pem(data: bytes, passphrase: Passphrase, name: str) -> tuple[PrivateKeyTypes, Certificates]:
    found = _KEY.search(data)
    if found is None:
        raise UserError(f"{name} holds no private key", hint=_WAY_OUT)
    try:
        certificates = x509.load_pem_x509_certificates(data)
    except UNREADABLE:
        raise UserError(f"{name} holds no certificate that can be read", hint=_WAY_OUT) from None
    try:
        return load_pem_private_key(found[0], password=None), certificates
    except TypeError:  # it is encrypted
        secret = _asked(passphrase, name)
    except (ValueError, UnsupportedAlgorithm):
        # What a parser says of a broken key may quote it: here and below, the cause is left out.
        raise UserError(f"{name} holds a private key that cannot be read", hint=_WAY_OUT) from None
    try:
        return load_pem_private_key(found[0], password=secret), certificates
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise _not_opened(name) from None


def _from_pkcs12(data: bytes, passphrase: Passphrase, name: str) -> tuple[PrivateKeyTypes, Certificates]:
    if not data.startswith(b"\x30"):  # every PKCS#12 file is one DER sequence
        raise UserError(f"{name} is neither a PKCS#12 nor a PEM file", hint=_WAY_OUT)
    # There are two ways to write one without a passphrase; only when neither opens it is somebody asked.
    opened = _opened(data, None) or _opened(data, b"") or _opened(data, _asked(passphrase, name))
    if opened is None:
        raise _not_opened(name)
    key, certificates = opened
    if key is None:
        raise UserError(f"{name} holds no private key", hint=_WAY_OUT)
    return key, certificates


def _opened(
    data: bytes, secret: bytes | None
) -> tuple[PrivateKeyTypes | None, list[x509.Certificate]] | None:
    try:
        found = load_pkcs12(data, secret)
    except UNREADABLE:
        return None
    own = [] if found.cert is None else [found.cert.certificate]
    return found.key, [*own, *(each.certificate for each in found.additional_certs)]


def _asked(passphrase: Passphrase, name: str) -> bytes:
    if passphrase is None:
        raise UserError(f"{name} is protected by a passphrase, and none was given")
    return passphrase()


def _not_opened(name: str) -> UserError:
    return UserError(f"{name} cannot be opened", hint="the passphrase is wrong, or the file is damaged")


def _chain(leaf: x509.Certificate, certificates: Sequence[x509.Certificate]) -> list[x509.Certificate]:
    """The leaf and what leads from it to an anchor, in the order in which TLS sends them."""
    chain = [leaf]
    left = [each for each in certificates if each.issuer != each.subject and each != leaf]
    while above := [each for each in left if each.subject == chain[-1].issuer]:
        chain.append(above[0])
        left.remove(above[0])
    return chain


def _readable(certificates: Sequence[x509.Certificate], name: str) -> list[x509.Certificate]:
    """The same, each of them parsed to its end: nothing can surprise whoever asks them."""
    try:
        return [load(each.public_bytes(Encoding.DER)) for each in certificates]
    except CertificateRefused as refusal:
        raise UserError(f"{name} holds a certificate of another kind: {refusal}") from refusal


def _spki(key: PublicKeyTypes | CertificatePublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _pem(certificates: Sequence[x509.Certificate]) -> bytes:
    return b"".join(each.public_bytes(Encoding.PEM) for each in certificates)
