"""The folder in which one holder's certificate lives: ``cert.pem``, ``key.pem``, ``ca.pem``.

``cert.pem`` is the leaf, followed by intermediates if there are any; ``ca.pem`` holds the trust anchors.
Standard library only: a wrapper reads its folder without loading `cryptography`.
"""

from __future__ import annotations

import ssl
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from consilium.armour import blocks
from consilium.errors import UserError
from consilium.identity import fingerprint

if TYPE_CHECKING:
    from pathlib import Path

CERT, KEY, CA = "cert.pem", "key.pem", "ca.pem"
CRL = "crl.pem"
"""Beside an Arbiter's three: the revocation lists of the authority, one for each that signs."""

_PRIVATE = 0o077


@dataclass(frozen=True, slots=True)
class Credentials:
    """The paths of one holder's certificate chain, private key and trust anchors."""

    cert: Path
    key: Path
    ca: Path

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Find the three files of ``folder``.

        Raises `UserError` when one is missing or cannot be read, or when anybody but its owner could read or
        change the key. A symbolic link counts as what it points to: that is how orchestrators mount secrets.
        """
        found = cls(cert=folder / CERT, key=folder / KEY, ca=folder / CA)
        for path in (found.cert, found.key, found.ca):
            _readable(path)
        mode = stat.S_IMODE(found.key.stat().st_mode)
        if mode & _PRIVATE:
            raise UserError(
                f"{found.key} is open to other users (mode {mode:04o})", hint=f"chmod 600 {found.key}"
            )
        return found

    def leaf(self) -> bytes:
        """The DER of the holder's own certificate. Raises `UserError` when ``cert.pem`` does not hold one."""
        try:
            (first, *_) = blocks(self.cert.read_bytes(), "CERTIFICATE") or [b""]
            der = ssl.PEM_cert_to_DER_cert(first.decode("ascii")) if first else b""
        except OSError as cause:
            raise UserError(f"{self.cert} cannot be read: {cause.strerror}") from cause
        except ValueError:
            der = b""
        if not der:
            raise UserError(f"{self.cert} holds no certificate in PEM form", hint=_way_out(self.cert.parent))
        return der

    def fingerprint(self) -> bytes:
        """The SHA-256 of the leaf's DER: what the Arbiter knows this holder by (§5.2)."""
        return fingerprint(self.leaf())


def _readable(path: Path) -> None:
    try:
        if not path.is_file():
            raise UserError(f"{path} is missing", hint=_way_out(path.parent))
        path.open("rb").close()
    except OSError as cause:
        raise UserError(f"{path} cannot be read: {cause.strerror}") from cause


def _way_out(folder: Path) -> str:
    place = folder.absolute()
    return f"consilium pki issue {place.parent} {place.name} --profile participant"
