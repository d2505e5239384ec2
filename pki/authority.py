"""The authority of a council: one folder, one key, and the certificates that it signs (§14.4).

    DIR/ca/{cert.pem,key.pem}              the authority
    DIR/<name>/{cert.pem,key.pem,ca.pem}   one holder, ready to be copied to where it is used

The trust domain is read from the authority's own certificate; there is no other state. What signs (`Signer`)
is kept apart from what is trusted (``ca.pem``), so that an intermediate can take the signing over without a
change for those who verify.
"""

from __future__ import annotations

import ipaddress
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, assert_never

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from consilium.certificate import validity
from consilium.credentials import CA, CERT, KEY, Credentials
from consilium.errors import UserError
from consilium.identity import MAX_LIFETIME_DAYS, spiffe
from pki.build import Leaf, Signer, build_authority, build_leaf
from pki.reading import der, read_certificates, read_private_key
from pki.store import check_root, make_root, write_folder
from pki.terms import CA_DAYS, CA_FOLDER, LEAF_DAYS, MAX_CA_DAYS, TRUST_DOMAIN, Profile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_NAME = re.compile(r"[a-z0-9_][a-z0-9_-]{0,63}")
_HOST = re.compile(r"(?=.{1,253}\Z)(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority that can issue. Make one with `create` or `open`; ``clock`` gives the time in seconds."""

    folder: Path
    trust_domain: str
    signer: Signer
    clock: Callable[[], float]

    @classmethod
    def create(
        cls,
        folder: Path,
        *,
        trust_domain: str = TRUST_DOMAIN,
        days: int = CA_DAYS,
        clock: Callable[[], float] = time.time,  # noqa: TID251 - this is the shell: the clock enters here
    ) -> Self:
        """Make a new authority in ``folder``, which may exist but must not hold one yet.

        Raises `UserError` for a trust domain or a number of days that cannot be, or a folder that cannot be
        used. An authority's key is never overwritten.
        """
        _check_trust_domain(trust_domain)
        _check_days(days, MAX_CA_DAYS)
        make_root(folder)
        key = ec.generate_private_key(ec.SECP256R1())
        serial = x509.random_serial_number()
        root = build_authority(key, trust_domain=trust_domain, serial=serial, now=clock(), days=days)
        files = {CERT: _pem(root), KEY: _key_pem(key)}
        write_folder(folder / CA_FOLDER, files, way_out="give another folder for another authority")
        return cls(folder, trust_domain, Signer(root, key), clock)

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        clock: Callable[[], float] = time.time,  # noqa: TID251 - as above
    ) -> Self:
        """Read the authority of ``folder``. Raises `UserError` when there is none that can be used."""
        place = folder / CA_FOLDER
        if not place.is_dir():
            raise UserError(f"there is no authority in {folder}", hint=f"consilium pki init {folder}")
        check_root(folder)
        root = read_certificates(place / CERT)[0]
        key = _signing_key(place / KEY)
        if root.public_key() != key.public_key():
            raise UserError(f"{place / KEY} is not the key of {place / CERT}")
        return cls(folder, _trust_domain(root, place / CERT), Signer(root, key), clock)

    @property
    def anchors(self) -> bytes:
        """The PEM of what a holder shall trust: the content of ``ca.pem``."""
        return _pem(self.signer.certificate)

    def issue(
        self,
        name: str,
        *,
        profile: Profile,
        dns: Sequence[str] = (),
        ips: Sequence[str] = (),
        days: int = LEAF_DAYS,
        replace: bool = False,
    ) -> Credentials:
        """Make a key and a certificate for ``name`` and write them to its folder.

        ``dns`` and ``ips`` are the hosts of an Arbiter, and only of an Arbiter. The certificate ends with the
        authority's own, if that is earlier. Raises `UserError` when something asked for cannot be granted, or
        when the folder exists and ``replace`` was not asked for.
        """
        leaf = self._leaf(name, profile, dns, ips)
        _check_days(days, MAX_LIFETIME_DAYS)
        now = self.clock()
        self._check_valid(now)
        key = ec.generate_private_key(ec.SECP256R1())
        serial = x509.random_serial_number()
        certificate = build_leaf(self.signer, key.public_key(), leaf, serial=serial, now=now, days=days)
        files = {CERT: _pem(certificate), KEY: _key_pem(key), CA: self.anchors}
        way_out = "--replace puts a new key and certificate in its place"
        write_folder(self.folder / name, files, replace=replace, way_out=way_out)
        return Credentials.load(self.folder / name)

    def _leaf(self, name: str, profile: Profile, dns: Sequence[str], ips: Sequence[str]) -> Leaf:
        if _NAME.fullmatch(name) is None or name == CA_FOLDER:
            raise UserError(
                f"{name!r} cannot be the name of a holder",
                hint=f"1 to 64 of a-z, 0-9, _ and -, not beginning with -, and not {CA_FOLDER!r}",
            )
        uri = spiffe(self.trust_domain, profile, name)
        match profile:
            case "participant" | "operator":
                if dns or ips:
                    raise UserError(
                        "only an arbiter's certificate names hosts", hint="leave out --dns and --ip"
                    )
                return Leaf.of_client(name, uri)
            case "arbiter":
                return Leaf.of_arbiter(name, uri, _hosts(dns, ips))
            case _:
                assert_never(profile)

    def _check_valid(self, now: float) -> None:
        state = validity(der(self.signer.certificate), now)
        if state.state != "valid":
            raise UserError(
                f"the authority in {self.folder} cannot issue: it is {state.sentence}",
                hint="check this machine's clock, or make a new authority in another folder",
            )


def _hosts(dns: Sequence[str], ips: Sequence[str]) -> list[x509.GeneralName]:
    if not dns and not ips:
        raise UserError(
            "an arbiter's certificate must name the hosts it is reached under",
            hint="for example: --dns localhost --ip 127.0.0.1",
        )
    for name in dns:
        # What ends in digits is an address to every client, and would be looked for among the addresses.
        if _HOST.fullmatch(name) is None or name.rpartition(".")[2].isdigit():
            raise UserError(
                f"{name!r} is not a host name", hint="lower case, in full, without wildcards; addresses: --ip"
            )
    try:
        addresses = [ipaddress.ip_address(ip) for ip in ips]
    except ValueError as cause:
        raise UserError(f"{cause}") from cause
    return [*(x509.DNSName(name) for name in dns), *(x509.IPAddress(address) for address in addresses)]


def _check_trust_domain(trust_domain: str) -> None:
    if _HOST.fullmatch(trust_domain) is None:
        raise UserError(
            f"{trust_domain!r} cannot be a trust domain", hint=f"like a host name, for example {TRUST_DOMAIN}"
        )


def _check_days(days: int, most: int) -> None:
    if not 1 <= days <= most:
        raise UserError(f"a lifetime of {days} days cannot be given", hint=f"from 1 to {most} days")


def _trust_domain(root: x509.Certificate, path: Path) -> str:
    """The trust domain in an authority's URI, ``spiffe://<trust domain>``."""
    try:
        names = root.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        (uri,) = names.get_values_for_type(x509.UniformResourceIdentifier)
        trust_domain = uri.removeprefix("spiffe://")
        _check_trust_domain(trust_domain)
    except (x509.ExtensionNotFound, ValueError, UserError) as cause:
        raise UserError(f"{path} is not the certificate of an authority of ours") from cause
    return trust_domain


def _signing_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = read_private_key(path)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UserError(f"{path} is not an elliptic curve key")
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
