"""One certificate that is to be issued, before there is a key. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives import serialization

from consilium.errors import UserError
from consilium.identity import fingerprint, spiffe
from pki.build import Leaf
from pki.index import Record
from pki.names import hosts

if TYPE_CHECKING:
    from cryptography import x509

    from pki.terms import Issuer


@dataclass(frozen=True, slots=True)
class Wanted:
    """Who it is for, what it is for, who signs it. ``dns`` and ``ips`` are an Arbiter's hosts."""

    name: str
    profile: str
    issuer: Issuer
    dns: tuple[str, ...]
    ips: tuple[str, ...]
    days: int

    def leaf(self, trust_domain: str) -> Leaf:
        """What is to stand in it. Raises `UserError` for hosts that cannot be."""
        uri = spiffe(trust_domain, self.profile, self.name)
        if self.issuer == "servers":
            return Leaf.of_arbiter(self.name, uri, hosts(self.dns, self.ips))
        if self.dns or self.ips:
            raise UserError("only an arbiter's certificate names hosts", hint="leave out --dns and --ip")
        return Leaf.of_client(self.name, uri)

    def record(self, leaf: Leaf, certificate: x509.Certificate) -> Record:
        """What the index says of it, once it is signed."""
        encoded = certificate.public_bytes(serialization.Encoding.DER)
        return Record(
            name=self.name,
            profile=self.profile,
            issuer=self.issuer,
            uri=leaf.uri,
            dns=self.dns,
            ips=self.ips,
            days=self.days,
            serial=f"{certificate.serial_number:x}",
            fingerprint=fingerprint(encoded).hex(),
            not_before=int(certificate.not_valid_before_utc.timestamp()),
            not_after=int(certificate.not_valid_after_utc.timestamp()),
        )
