"""An authority with intermediates, and the lists of what they revoked, laid out as for an Arbiter.

    pki = Pki.create(tmp_path / "certs")
    ada = pki.issue("ada")
    pki.revoke(ada)
    pki.publish()          # crl.pem of the Arbiter's folder

`list_of` builds one list, or one that is odd.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from certificates import DAY, SERVER_AUTH, clock, issue_odd, key_usage, uris
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from edge_kit import HOSTS

from consilium.credentials import Credentials
from consilium.identity import spiffe
from pki.build import Signer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

DOMAIN = "council.local"
LIFE = 7 * DAY


def list_of(
    signer: Signer,
    serials: Iterable[int] = (),
    *,
    number: int | None = 1,
    start: float = -60,
    seconds: float = LIFE,
    key: ec.EllipticCurvePrivateKey | None = None,
    no_key_id: bool = False,
    extra: Sequence[tuple[x509.ExtensionType, bool]] = (),
) -> bytes:
    """The PEM of a list by ``signer``; signed with ``key``, if that is given: forged."""
    begin = dt.datetime.fromtimestamp(int(clock() + start), dt.UTC)
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(signer.certificate.subject)
        .last_update(begin)
        .next_update(begin + dt.timedelta(seconds=seconds))
    )
    if not no_key_id:
        public = signer.key.public_key()
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False
        )
    if number is not None:
        builder = builder.add_extension(x509.CRLNumber(number), critical=False)
    for extension, critical in extra:
        builder = builder.add_extension(extension, critical=critical)
    for serial in serials:
        gone = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(begin).build()
        builder = builder.add_revoked_certificate(gone)
    return builder.sign(key or signer.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def wide_root(name: str = f"Test root {DOMAIN}") -> Signer:
    """A root that may sign authorities. Two calls give two of one name."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return Signer(_authority(subject, key, subject, key, None), key)


def intermediate(root: Signer, name: str) -> Signer:
    """An authority below ``root`` that signs leaves only."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return Signer(_authority(subject, key, root.certificate.subject, root.key, 0), key)


def _authority(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    path_length: int | None,
) -> x509.Certificate:
    begin = dt.datetime.fromtimestamp(int(clock()) - 300, dt.UTC)
    public, above = key.public_key(), issuer_key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + dt.timedelta(days=365))
        .add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
        .add_extension(key_usage("key_cert_sign", "crl_sign"), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(above), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )


def pem_of(signer: Signer) -> bytes:
    return signer.certificate.public_bytes(serialization.Encoding.PEM)


def serial_of(credentials: Credentials) -> int:
    return x509.load_der_x509_certificate(credentials.leaf()).serial_number


@dataclass
class Pki:
    """A root, three intermediates, and what each of them has revoked."""

    folder: Path
    root: Signer
    signers: dict[str, Signer]
    number: int = 0
    revoked: dict[str, list[int]] = field(default_factory=dict)
    anchors: bytes = b""

    @classmethod
    def create(cls, folder: Path, root: Signer | None = None) -> Self:
        """With an Arbiter's folder, and no lists yet."""
        root = root or wide_root()
        kinds = ("participants", "operators", "servers")
        made = cls(folder, root, {kind: intermediate(root, f"Test {kind}") for kind in kinds})
        made.anchors = pem_of(root)
        made.issue("arbiter", "arbiter")
        return made

    def issue(
        self, name: str, profile: str = "participant", *, replace: bool = False, **odd: Any
    ) -> Credentials:
        """A holder's folder; ``odd`` as for `issue_odd`, ``by`` may name another intermediate."""
        anchors = odd.pop("anchors_of", self.anchors)
        kind = odd.pop("by", {"participant": "participants", "arbiter": "servers"}.get(profile, "operators"))
        names = uris(spiffe(DOMAIN, profile, name))
        if profile == "arbiter":
            odd = {"usages": (SERVER_AUTH,)} | odd
            names = [*names, *HOSTS]
        signer = self.signers[kind]
        forged = issue_odd(signer, cn=name, **({"names": names} | odd))
        place = self.folder / name
        if replace:
            place = self.folder / f"{name}.new"
        made = forged.write(place, intermediates=pem_of(signer), anchors=anchors)
        if not replace:
            return made
        for file in (made.key, made.cert, made.ca):
            file.replace(self.folder / name / file.name)
        place.rmdir()
        return Credentials.load(self.folder / name)

    @property
    def own(self) -> Credentials:
        """The Arbiter's credentials."""
        return Credentials.load(self.folder / "arbiter")

    def revoke(self, holder: Credentials, kind: str = "participants") -> None:
        self.revoked.setdefault(kind, []).append(serial_of(holder))

    def revoke_authority(self, kind: str) -> None:
        self.revoked.setdefault("root", []).append(self.signers[kind].certificate.serial_number)

    def lists(self, **how: Any) -> bytes:
        """The lists of today, each with the next number."""
        self.number += 1
        everybody = {"root": self.root, **self.signers}
        how = {"number": self.number} | how
        return b"".join(
            list_of(signer, self.revoked.get(kind, ()), **how) for kind, signer in everybody.items()
        )

    @property
    def file(self) -> Path:
        """Where the Arbiter finds the lists."""
        return self.folder / "arbiter" / "crl.pem"

    def publish(self, text: bytes | None = None, **how: Any) -> None:
        """Put lists there, whole at once."""
        new = self.file.with_suffix(".new")
        new.write_bytes(self.lists(**how) if text is None else text)
        new.replace(self.file)


def stranger(name: str) -> Signer:
    """An authority of the same name as ``name``, and of another key."""
    return intermediate(wide_root(), name)
