"""Lists of revoked certificates: what is read, what may replace what, and how long it is worth something."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from certificates import DAY, clock, issue_odd
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from revocations import LIFE, intermediate, list_of, pem_of, stranger, wide_root

from arbiter import revocation
from arbiter.revocation import RevocationRefused, Revocations, Standing, judge
from consilium.certificate import link

ROOT = wide_root()
SEATS = intermediate(ROOT, "Seats")
OTHER = stranger("Seats")
ANCHORS = [ROOT.certificate]
KEY = ec.generate_private_key(ec.SECP256R1())
PARTIAL = x509.IssuingDistributionPoint(
    full_name=None,
    relative_name=None,
    only_contains_user_certs=True,
    only_contains_ca_certs=False,
    only_some_reasons=None,
    indirect_crl=False,
    only_contains_attribute_certs=False,
)


def parse(*lists: bytes) -> Revocations:
    return Revocations.parse(b"".join(lists))


def check(new: Revocations, old: Revocations | None = None, **how: Any) -> None:
    how = (
        dict[str, Any]()
        | {"anchors": ANCHORS, "authorities": [SEATS.certificate], "same_anchors": True, "now": clock()}
        | how
    )
    judge(new, old or Revocations(), **how)


def with_byte(pem: bytes, before: bytes, byte: int) -> bytes:
    """The list with another byte after ``before``."""
    first, line, rest = pem.partition(b"-----\n")
    body, last, more = rest.partition(b"-----END")
    der = bytearray(base64.b64decode(body))
    der[der.index(before) + len(before)] = byte
    return first + line + base64.encodebytes(bytes(der)) + last + more


UNREADABLE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "holds no list of revoked certificates in PEM form"),
    "not PEM": (b"\x30\x82\x01\x00", "holds no list"),
    "a certificate": (pem_of(ROOT), "holds no list"),
    "half a list": (list_of(ROOT)[:200], "holds no list"),
    "a list of noise": (
        b"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n",
        "holds a list of revoked certificates that cannot be read",
    ),
    "a good list and noise": (
        list_of(ROOT) + b"-----BEGIN X509 CRL-----\n!!!!\n-----END X509 CRL-----\n",
        "that cannot be read",
    ),
    "of a version that nobody knows": (with_byte(list_of(ROOT), b"\x02\x01", 7), "that cannot be read"),
    "a name of a type that is none": (with_byte(list_of(ROOT), b"\x55\x04\x03", 3), "that cannot be read"),
    "no number": (list_of(ROOT, number=None), "lacks its key's identifier, its number or its end"),
    "no identifier of a key": (
        list_of(ROOT, no_key_id=True),
        "of Test root council.local that lacks its key's",
    ),
    "a part of a list": (
        list_of(ROOT, extra=[(PARTIAL, True)]),
        "critical extension 2.5.29.28: only whole lists",
    ),
    "a delta": (
        list_of(ROOT, extra=[(x509.DeltaCRLIndicator(1), True)]),
        "critical extension 2.5.29.27: only whole lists",
    ),
    "two of one authority": (
        list_of(ROOT) + list_of(ROOT, number=2),
        "holds two lists of Test root council.local",
    ),
}


@pytest.mark.parametrize(("text", "told"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_refused(text: bytes, told: str) -> None:
    with pytest.raises(RevocationRefused, match=told):
        Revocations.parse(text)


def test_a_file_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocation, "MAX_BYTES", 10)
    with pytest.raises(RevocationRefused, match="is longer than 10 bytes"):
        parse(list_of(ROOT))


def test_what_stands_beside_the_lists_does_not_count() -> None:
    root, seats = list_of(ROOT), list_of(SEATS, [7])
    read = parse(b"some words\n", pem_of(ROOT), root, pem_of(SEATS), seats)
    assert read == parse(root, seats)
    assert read.revoked == 1
    assert b"BEGIN CERTIFICATE" not in read.pem
    assert Revocations.parse(read.pem) == read


BAD: dict[str, tuple[tuple[bytes, ...], str]] = {
    "forged by another key": (
        (list_of(ROOT), list_of(SEATS, [7], key=KEY)),
        "holds a list of Seats that Seats has not signed",
    ),
    "the root's forged": ((list_of(ROOT, key=KEY),), "that Test root council.local has not signed"),
    "expired": (
        (list_of(ROOT, start=-DAY, seconds=3600),),
        "of Test root council.local that expired 23 hours ago",
    ),
    "one of two expired": ((list_of(ROOT), list_of(SEATS, start=-9, seconds=5)), "of Seats that expired"),
    "not begun": ((list_of(ROOT, start=300),), "that begins in .*; is this clock right?"),
    "another authority's": ((list_of(wide_root("Elsewhere")),), "holds no list of an authority in ca.pem"),
    "another authority's of the same name": (
        (list_of(wide_root()),),
        "holds no list of an authority in ca.pem",
    ),
    "the root's is missing": ((list_of(SEATS),), "holds no list of an authority in ca.pem"),
}


@pytest.mark.parametrize(("lists", "told"), BAD.values(), ids=BAD)
def test_lists_that_cannot_be_true_are_refused(lists: tuple[bytes, ...], told: str) -> None:
    with pytest.raises(RevocationRefused, match=told):
        check(parse(*lists))


APPLIES = (list_of(ROOT, [1], number=5), list_of(SEATS, [7], number=5, start=-600))
AFTER: dict[str, tuple[tuple[bytes, ...], str | None]] = {
    # what comes, and what is said of it; None: it is taken
    "the same": (APPLIES, None),
    "newer ones": ((list_of(ROOT, number=6), list_of(SEATS, [7, 8], number=9, start=-30)), None),
    "one of them newer": ((APPLIES[0], list_of(SEATS, [7, 8], number=6)), None),
    "a further authority's": ((*APPLIES, list_of(OTHER)), None),
    "an older number": (
        (list_of(ROOT, number=6), list_of(SEATS, number=4)),
        r"Seats that is older \(number 4\) than",
    ),
    "an older date": (
        (list_of(ROOT, number=6), list_of(SEATS, number=6, start=-9000)),
        "Seats that is 2 hours older than the one that applies",
    ),
    "another under the same number": (
        (APPLIES[0], list_of(SEATS, number=5)),
        "another list of Seats under the same number 5",
    ),
    "one of them is missing": ((list_of(ROOT, number=6),), "no list of Seats any more, and would take back"),
}


@pytest.mark.parametrize(("lists", "told"), AFTER.values(), ids=AFTER)
def test_what_takes_the_place_of_what_applies_is_never_older(
    lists: tuple[bytes, ...], told: str | None
) -> None:
    if told is None:
        check(parse(*lists), parse(*APPLIES))
    else:
        with pytest.raises(RevocationRefused, match=told):
            check(parse(*lists), parse(*APPLIES))


def test_a_rotation_may_leave_the_lists_of_the_old_authority_behind() -> None:
    new = wide_root()
    check(parse(list_of(new)), parse(*APPLIES), anchors=[new.certificate], authorities=[], same_anchors=False)
    both = parse(list_of(new), *APPLIES)
    check(both, parse(*APPLIES), anchors=[ROOT.certificate, new.certificate], same_anchors=False)
    assert both.uncovered([ROOT.certificate, new.certificate]) == []
    assert both.uncovered([wide_root("Elsewhere").certificate]) == ["Elsewhere"]


def test_an_authority_of_the_same_name_and_another_key_proves_nothing() -> None:
    new = intermediate(ROOT, "Seats")
    check(parse(list_of(ROOT), list_of(new)), authorities=[SEATS.certificate])
    with pytest.raises(RevocationRefused, match="has not signed"):
        check(parse(list_of(ROOT), list_of(SEATS, key=KEY)), authorities=[new.certificate, SEATS.certificate])


@pytest.mark.parametrize("key", ["RSA", X25519PrivateKey.generate()], ids=["RSA", "X25519"])
def test_an_authority_whose_key_cannot_have_signed_a_list_has_not(key: Any) -> None:
    (found,) = parse(list_of(ROOT)).lists
    odd = issue_odd(ROOT, key=key).certificate
    with pytest.raises(RevocationRefused, match="has not signed"):
        revocation._check_signature(found, {found.by: [odd]})


def test_what_a_list_says_besides_is_passed_over() -> None:
    told = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\5\0")
    found = parse(list_of(ROOT, [7], extra=[(told, False)]))
    assert found.revoked == 1


def test_an_authority_without_an_identifier_has_none() -> None:
    bare = (
        x509.CertificateBuilder()
        .subject_name(ROOT.certificate.subject)
        .issuer_name(ROOT.certificate.subject)
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(ROOT.certificate.not_valid_before_utc)
        .not_valid_after(ROOT.certificate.not_valid_after_utc)
        .sign(KEY, hashes.SHA256())
    )
    assert revocation.known(bare) == (ROOT.certificate.subject.public_bytes(), b"")


def test_a_certificate_is_revoked_by_its_own_issuer_only() -> None:
    seat, twin = issue_odd(SEATS), issue_odd(OTHER)
    serial = seat.certificate.serial_number
    revoked = parse(list_of(ROOT), list_of(SEATS, [serial]))
    assert revoked.revokes([link(seat.der)])
    assert not revoked.revokes([link(twin.der)])
    assert not parse(list_of(ROOT, [serial]), list_of(OTHER, [serial])).revokes([link(seat.der)])
    assert not Revocations().revokes([link(seat.der)])
    above = parse(list_of(ROOT, [SEATS.certificate.serial_number]))
    assert above.revokes([link(seat.der), link(x509_der(SEATS.certificate))])


def x509_der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)


AGES: list[tuple[float, Standing, str | None]] = [
    (0, Standing.CURRENT, None),
    (LIFE / 2 - 61, Standing.CURRENT, None),
    (LIFE / 2, Standing.AGEING, "is past half of its life: it expires in 3 days, and then nobody new is"),
    (LIFE - 120, Standing.AGEING, "is past half of its life"),
    (LIFE, Standing.EXPIRED, "expired .* ago: nobody new is let in until there is another"),
]


@pytest.mark.parametrize(("age", "standing", "told"), AGES)
def test_a_list_ages(age: float, standing: Standing, told: str | None) -> None:
    found = parse(list_of(ROOT), list_of(SEATS, seconds=100 * LIFE))
    now = clock() + age
    assert found.standing(now) is standing
    sentence = found.sentence(now)
    if told is None:
        assert sentence is None
    else:
        assert re.search(told, sentence or "")


def test_without_a_list_nothing_can_be_revoked_and_that_is_said() -> None:
    nothing = Revocations()
    assert nothing.standing(clock()) is Standing.NONE
    assert nothing.sentence(0) == (
        "there is no list of revoked certificates: nobody can be shut out by revoking them"
    )
    assert (nothing.next_update, nothing.half_life, nothing.revoked, nothing.pem) == (None, None, 0, b"")
