"""What a certificate says, for a person or a program. Nothing is verified here; `pki.verify` does that."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from cryptography import x509

from consilium.certificate import Kind, examine, kind_of, printable, validity
from consilium.credentials import CERT
from consilium.identity import fingerprint, parse_spiffe
from pki.reading import called, der, read_certificates

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Shown:
    """A certificate in words. ``suffix`` is for display only (§5.2); ``refused`` says why it would not do."""

    path: str
    subject: str
    issuer: str
    kind: str
    names: tuple[str, ...]
    fingerprint: str
    suffix: str
    serial: str
    not_before: float
    not_after: float
    validity: str
    refused: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """The same in a form that a program reads; times are seconds since the epoch."""
        return asdict(self)

    def as_text(self) -> str:
        """The same in lines that a person reads."""
        lines = {
            "certificate": self.path,
            "subject": self.subject,
            "issuer": self.issuer,
            "kind": self.kind,
            "names": ", ".join(self.names) or "none",
            "fingerprint": self.fingerprint,
            "suffix": f"_{self.suffix} (for display only)",
            "serial": self.serial,
            "validity": self.validity,
        }
        refused = [f"{'refused':13}{why}" for why in self.refused]
        return "\n".join([*(f"{key:13}{value}" for key, value in lines.items()), *refused, ""])


def show(target: Path, *, now: float) -> Shown:
    """Read the certificate of a folder, or the first of a file. Raises `UserError` when there is none."""
    path = target / CERT if target.is_dir() else target
    certificate = read_certificates(path)[0]
    encoded = der(certificate)
    state = validity(encoded, now)
    authority = _is_authority(certificate)
    return Shown(
        path=str(path),
        subject=called(certificate.subject),
        issuer=called(certificate.issuer),
        kind="authority" if authority else _kind(certificate),
        names=_names(certificate),
        fingerprint=fingerprint(encoded).hex(),
        suffix=fingerprint(encoded).hex()[:8].upper(),
        serial=f"{certificate.serial_number:x}",
        not_before=state.not_before,
        not_after=state.not_after,
        validity=state.sentence,
        refused=() if authority else tuple(f.sentence for f in examine(encoded) if not f.ok),
    )


def _kind(certificate: x509.Certificate) -> str:
    """The capability profile that the certificate's URI claims; without one, what it could be."""
    if kind_of(certificate) is Kind.ARBITER:
        return "arbiter"
    for name in _names(certificate):
        with suppress(ValueError):
            return parse_spiffe(name)[1]
    return "participant or operator"


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    """Every alternative name, URIs first as they are, the rest with what they are."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    dns = [f"DNS:{name}" for name in names.get_values_for_type(x509.DNSName)]
    ips = [f"IP:{address}" for address in names.get_values_for_type(x509.IPAddress)]
    return tuple(printable(name) for name in (*uris, *dns, *ips))
