"""Lists of revoked certificates (X.509 CRLs): what they say, and when they may replace others. Pure.

1. A file of lists is judged as a whole: one that is forged, out of date or older than what applies spoils it.
2. A list is known by its issuer's name and key: two authorities may have one name, around a rotation.
3. The list of an authority that nobody here has met yet cannot be proven by its signature. TLS proves it,
   with the first chain that holds that authority, and refuses everybody below it if it was forged.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtensionOID

from consilium.armour import blocks
from consilium.certificate import UNREADABLE, common_name, span
from consilium.errors import ConsiliumError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from consilium.certificate import Link

MAX_BYTES = 16 * 1024 * 1024
"""Longest file of lists: some 300,000 revoked certificates."""

_LISTED = "the list of revoked certificates"
_UNDERSTOOD = {ExtensionOID.AUTHORITY_KEY_IDENTIFIER, ExtensionOID.CRL_NUMBER}

Known = tuple[bytes, bytes]
"""An authority: the DER of its name, and the identifier of its key."""


class RevocationRefused(ConsiliumError):  # noqa: N818 - what happened to it, in the word that we show
    """Raised when lists cannot be used. The message is a sentence that goes on after their path."""


class Standing(StrEnum):
    """How much a set of lists is still worth."""

    NONE = "none"
    CURRENT = "current"
    AGEING = "ageing"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class RevocationList:
    """One list. Times are seconds since the epoch; ``digest`` is the SHA-256 of its DER."""

    by: Known
    issuer: str
    number: int
    this_update: float
    next_update: float
    serials: frozenset[int]
    digest: bytes
    crl: x509.CertificateRevocationList = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Revocations:
    """All lists that apply; with none, nobody is revoked."""

    lists: tuple[RevocationList, ...] = ()

    @classmethod
    def parse(cls, text: bytes) -> Revocations:
        """Read the lists of a PEM file, in which other things may stand too. Raises `RevocationRefused`."""
        if len(text) > MAX_BYTES:
            raise RevocationRefused(f"is longer than {MAX_BYTES} bytes")
        found = tuple(_read(pem) for pem in blocks(text, "X509 CRL"))
        if not found:
            raise RevocationRefused("holds no list of revoked certificates in PEM form")
        twice = {each.by for each in found if sum(other.by == each.by for other in found) > 1}
        for each in found:
            if each.by in twice:
                raise RevocationRefused(f"holds two lists of {each.issuer}")
        return cls(found)

    @property
    def pem(self) -> bytes:
        """The lists, and nothing else, for TLS."""
        return b"".join(each.crl.public_bytes(serialization.Encoding.PEM) for each in self.lists)

    @property
    def next_update(self) -> float | None:
        """When the first of the lists ends, in seconds since the epoch. From then on TLS lets nobody in."""
        return min((each.next_update for each in self.lists), default=None)

    @property
    def half_life(self) -> float | None:
        """When the first of the lists has half of its life behind it."""
        halves = ((each.this_update + each.next_update) / 2 for each in self.lists)
        return min(halves, default=None)

    @property
    def revoked(self) -> int:
        """How many certificates are revoked."""
        return sum(len(each.serials) for each in self.lists)

    def revokes(self, links: Iterable[Link]) -> bool:
        """Whether one of a chain's certificates is revoked."""
        by_issuer = {each.by: each.serials for each in self.lists}
        return any(link.serial in by_issuer.get((link.issuer, link.key), ()) for link in links)

    def standing(self, now: float) -> Standing:
        """How much the lists are worth at ``now``."""
        if self.next_update is None or self.half_life is None:
            return Standing.NONE
        if now >= self.next_update:
            return Standing.EXPIRED
        return Standing.AGEING if now >= self.half_life else Standing.CURRENT

    def sentence(self, now: float) -> str | None:
        """What an operator must know about the lists at ``now``; None when all is well."""
        match self.standing(now):
            case Standing.NONE:
                return "there is no list of revoked certificates: nobody can be shut out by revoking them"
            case Standing.EXPIRED:
                ago = span(now - (self.next_update or now))
                return f"{_LISTED} expired {ago} ago: nobody new is let in until there is another"
            case Standing.AGEING:
                left = span((self.next_update or now) - now)
                return (
                    f"{_LISTED} is past half of its life: it expires in {left}, and then nobody new is let in"
                )
            case _:
                return None

    def uncovered(self, anchors: Iterable[x509.Certificate]) -> list[str]:
        """The names of the trust anchors that have no list here: nobody below them can come in."""
        covered = {each.by for each in self.lists}
        return [common_name(anchor.subject) for anchor in anchors if known(anchor) not in covered]


def judge(
    new: Revocations,
    old: Revocations,
    *,
    anchors: Sequence[x509.Certificate],
    authorities: Iterable[x509.Certificate],
    same_anchors: bool,
    now: float,
) -> None:
    """Say whether ``new`` may take the place of ``old``. Raises `RevocationRefused`.

    ``anchors`` and ``authorities`` are the certificates that are known to sign. With other anchors than
    before (``same_anchors`` false), lists of authorities that are gone need not be there any more. ``now`` is
    seconds since the epoch.
    """
    signers: dict[Known, list[x509.Certificate]] = {}
    for authority in (*anchors, *authorities):
        signers.setdefault(known(authority), []).append(authority)
    for each in new.lists:
        _check_signature(each, signers)
        _check_time(each, now)
    if len(new.uncovered(anchors)) == len(anchors):
        raise RevocationRefused("holds no list of an authority in ca.pem: with it, nobody could connect")
    before = {each.by: each for each in old.lists}
    for each in new.lists:
        if each.by in before:
            _check_not_older(each, before.pop(each.by))
    if before and same_anchors:
        gone = next(iter(before.values()))
        raise RevocationRefused(
            f"holds no list of {gone.issuer} any more, and would take back what that revokes"
        )


def known(authority: x509.Certificate) -> Known:
    """What lists know an authority by."""
    try:
        extension = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    except x509.ExtensionNotFound:
        return authority.subject.public_bytes(), b""
    return authority.subject.public_bytes(), extension.value.digest


def _read(pem: bytes) -> RevocationList:
    try:
        crl = x509.load_pem_x509_crl(pem)
        extensions = {extension.oid: extension for extension in crl.extensions}
        serials = frozenset(revoked.serial_number for revoked in crl)
        issuer = crl.issuer
    except UNREADABLE as cause:
        raise RevocationRefused("holds a list of revoked certificates that cannot be read") from cause
    name = common_name(issuer) or "an authority without a name"
    key, number = _identifiers(extensions)
    if key is None or number is None or crl.next_update_utc is None:
        raise RevocationRefused(
            f"holds a list of {name} that lacks its key's identifier, its number or its end"
        )
    return RevocationList(
        by=(issuer.public_bytes(), key),
        issuer=name,
        number=number,
        this_update=crl.last_update_utc.timestamp(),
        next_update=crl.next_update_utc.timestamp(),
        serials=serials,
        digest=hashlib.sha256(crl.public_bytes(serialization.Encoding.DER)).digest(),
        crl=crl,
    )


def _identifiers(
    extensions: Mapping[x509.ObjectIdentifier, x509.Extension[x509.ExtensionType]],
) -> tuple[bytes | None, int | None]:
    """The identifier of the key that signed a list, and the list's number."""
    for oid, extension in extensions.items():
        if extension.critical and oid not in _UNDERSTOOD:
            raise RevocationRefused(
                f"holds a list with a critical extension {oid.dotted_string}: only whole lists are understood"
            )
    key = number = None
    for extension in extensions.values():
        if isinstance(extension.value, x509.AuthorityKeyIdentifier):
            key = extension.value.key_identifier
        elif isinstance(extension.value, x509.CRLNumber):
            number = extension.value.crl_number
    return key, number


def _check_signature(found: RevocationList, signers: Mapping[Known, Sequence[x509.Certificate]]) -> None:
    mine = signers.get(found.by)
    if mine and not any(_signed(found.crl, authority) for authority in mine):
        raise RevocationRefused(f"holds a list of {found.issuer} that {found.issuer} has not signed")


def _signed(crl: x509.CertificateRevocationList, authority: x509.Certificate) -> bool:
    try:
        return crl.is_signature_valid(authority.public_key())  # type: ignore[arg-type]  # others raise
    except (TypeError, ValueError, UnsupportedAlgorithm):
        return False


def _check_time(found: RevocationList, now: float) -> None:
    if now < found.this_update:
        early = span(found.this_update - now)
        raise RevocationRefused(
            f"holds a list of {found.issuer} that begins in {early}; is this clock right?"
        )
    if now >= found.next_update:
        late = span(now - found.next_update)
        raise RevocationRefused(f"holds a list of {found.issuer} that expired {late} ago")


def _check_not_older(new: RevocationList, old: RevocationList) -> None:
    if new.number < old.number:
        numbers = f"number {new.number}) than the one that applies (number {old.number}"
        raise RevocationRefused(f"holds a list of {new.issuer} that is older ({numbers})")
    if new.this_update < old.this_update:
        earlier = span(old.this_update - new.this_update)
        raise RevocationRefused(
            f"holds a list of {new.issuer} that is {earlier} older than the one that applies"
        )
    if new.number == old.number and new.digest != old.digest:
        raise RevocationRefused(f"holds another list of {new.issuer} under the same number {new.number}")
