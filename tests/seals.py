"""An authority, an Arbiter's key and certificate, and a seat's, for tests of signatures."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from consilium.headseal import HeadSigner
from pki.build import Leaf, Signer, build_authority, build_leaf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

ISSUED = 1_789_990_000.0
"""A little before the transcripts of `transcripts` begin; leaves hold for 30 days."""

NAME = "spiffe://council.local/arbiter/main"


@dataclass(frozen=True)
class Holder:
    key: bytes
    certificate: bytes
    authority: bytes

    @property
    def signer(self) -> HeadSigner:
        return HeadSigner.of(self.key, self.certificate)


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: PrivateKeyTypes) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def authority() -> Signer:
    key = ec.generate_private_key(ec.SECP256R1())
    return Signer(
        build_authority(key, trust_domain="council.local", serial=1, now=ISSUED, days=365),
        key,
    )


def holder(issuer: Signer, leaf: Leaf) -> Holder:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = build_leaf(issuer, key.public_key(), leaf, serial=2, now=ISSUED, days=30)
    return Holder(key_pem(key), pem(certificate), pem(issuer.certificate))


def renewed(old: Holder) -> Holder:
    """The same key with another certificate, of the council's authority."""
    key = serialization.load_pem_private_key(old.key, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    certificate = build_leaf(council(), key.public_key(), arbiter_leaf(), serial=3, now=ISSUED, days=60)
    return Holder(old.key, pem(certificate), old.authority)


def arbiter_leaf(hosts: Sequence[x509.GeneralName] = (x509.DNSName("arbiter"),)) -> Leaf:
    return Leaf.of_arbiter("arbiter", NAME, hosts)


@functools.cache
def council() -> Signer:
    return authority()


@functools.cache
def arbiter() -> Holder:
    return holder(council(), arbiter_leaf())


@functools.cache
def seat() -> Holder:
    return holder(council(), Leaf.of_client("sceptic", "spiffe://council.local/participant/sceptic"))
