"""One holder's certificate, chain, key and trust anchors in one file, for whoever carries it elsewhere.

`consilium.bundle` reads what this writes, and so do browsers and OpenSSL. The authority's own key is in none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from consilium.credentials import Credentials
from consilium.errors import UserError
from pki.reading import read_certificates, read_private_key
from pki.terms import CA_FOLDER

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.serialization import KeySerializationEncryption
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12PrivateKeyTypes

Format = Literal["p12", "pem"]


def bundle(root: Path, name: str, *, form: Format, passphrase: bytes) -> bytes:
    """Put the folder of ``name`` in ``root`` into one file's content; an empty ``passphrase`` is none.

    A passphrase encrypts with PBES2 (PBKDF2, AES-256): in PKCS#12 everything, in PEM the key. Raises
    `UserError` when the folder is not that of a holder, or its files do not belong together.
    """
    if name == CA_FOLDER:
        raise UserError(
            f"{root / name} is the authority itself, and its key stays where it is",
            hint="a holder's ca.pem has what others need to trust it",
        )
    credentials = Credentials.load(root / name)
    leaf, *chain = read_certificates(credentials.cert)
    anchors = read_certificates(credentials.ca)
    key = cast("PKCS12PrivateKeyTypes", read_private_key(credentials.key))
    if key.public_key() != leaf.public_key():
        raise UserError(f"{credentials.key} is not the key of {credentials.cert}")
    encryption = _encryption(passphrase)
    if form == "p12":
        return serialize_key_and_certificates(name.encode(), key, leaf, [*chain, *anchors], encryption)
    sealed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    return b"".join([sealed, *(each.public_bytes(Encoding.PEM) for each in (leaf, *chain, *anchors))])


def _encryption(passphrase: bytes) -> KeySerializationEncryption:
    return BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
