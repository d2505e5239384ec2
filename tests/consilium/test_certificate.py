"""§14.4: what a certificate must be, and every way in which it is not."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import Any

import pytest
from certificates import (
    CLIENT_AUTH,
    DAY,
    ODD,
    SEAT,
    SERVER_AUTH,
    Forged,
    forge_root,
    issue_odd,
    key_usage,
    uris,
)
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from consilium.certificate import (
    CertificateRefused,
    examine,
    identify,
    identify_arbiter,
    printable,
    span,
    validity,
)
from consilium.errors import ConsiliumError
from consilium.identity import fingerprint

NOW = 1_800_000_000.0
ROOT = forge_root(now=NOW)
ARBITER = uris("spiffe://council.local/arbiter/hub")


def seat(**odd: Any) -> Forged:
    return issue_odd(ROOT, now=NOW, **odd)


def arbiter(*names: x509.GeneralName, **odd: Any) -> Forged:
    chosen = [*ARBITER, *names] or [*ARBITER, x509.DNSName("localhost")]
    return issue_odd(ROOT, now=NOW, **{"names": chosen, "usages": (SERVER_AUTH,), **odd})


def test_a_good_certificate_becomes_an_identity() -> None:
    good = seat()
    identity = identify(good.der)
    assert identity.fingerprint == fingerprint(good.der)
    assert (identity.trust_domain, identity.profile, identity.subject) == (
        "council.local",
        "participant",
        "seat",
    )
    assert identity.not_after == NOW - 300 + 30 * DAY
    assert identity.lifetime_s == 30 * DAY
    assert identity.lifetime_days == 30


def test_a_certificate_that_was_read_before_is_not_read_again_and_a_refused_one_is_refused_again() -> None:
    good, odd = seat(), seat(usages=(SERVER_AUTH,))
    assert identify(good.der) is identify(bytes(bytearray(good.der)))
    for _ in range(2):
        with pytest.raises(CertificateRefused):
            identify(odd.der)


def test_the_uri_decides_and_the_cn_does_not() -> None:
    identity = identify(seat(cn="spiffe://council.local/operator/admin").der)
    assert (identity.profile, identity.subject) == ("participant", "seat")


def test_ninety_days_to_the_second_are_accepted() -> None:
    assert identify(seat(seconds=90 * DAY).der).lifetime_days == 90


def test_further_harmless_key_usages_are_accepted() -> None:
    assert identify(seat(usage=key_usage("digital_signature", "key_agreement")).der).subject == "seat"


def test_an_unknown_extension_that_is_not_critical_is_accepted() -> None:
    note = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\5\0")
    assert identify(seat(extra=[(note, False)]).der).subject == "seat"


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_certificate_is_refused_and_told_why(kind: str) -> None:
    odd, why = ODD[kind]
    with pytest.raises(CertificateRefused) as refusal:
        identify(seat(**odd).der)
    assert why in str(refusal.value)
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_certificate_fails_exactly_one_check(kind: str) -> None:
    failed = [finding for finding in examine(seat(**ODD[kind][0]).der) if not finding.ok]
    # An Arbiter's URI on a client's certificate is examined as an Arbiter's, of which more is missing.
    assert len(failed) == (2 if kind == "arbiter's identity" else 1), failed


def test_a_good_certificate_passes_every_check() -> None:
    findings = examine(seat().der)
    assert all(finding.ok for finding in findings)
    assert [finding.check for finding in findings] == [
        "public key",
        "key usage",
        "extended key usage",
        "leaf",
        "names",
        "lifetime",
        "subject",
        "extensions",
    ]


def test_a_good_arbiter_is_identified_and_examined_as_one() -> None:
    good = arbiter(x509.DNSName("localhost"))
    assert identify_arbiter(good.der).subject == "hub"
    assert all(finding.ok for finding in examine(good.der))


@pytest.mark.parametrize(
    ("forged", "why"),
    [
        (arbiter(x509.DNSName("localhost"), usages=(CLIENT_AUTH,)), "must be exactly serverAuth"),
        (arbiter(x509.DNSName("localhost"), usages=(SERVER_AUTH, CLIENT_AUTH)), "must be exactly serverAuth"),
        (arbiter(names=ARBITER), "no DNS name and no IP address"),
        (arbiter(x509.DNSName("*.council.local")), "a wildcard name"),
        (arbiter(x509.DNSName("localhost"), x509.RFC822Name("a@b")), "no URI, DNS name or IP address"),
        (arbiter(*uris("spiffe://council.local/arbiter/b"), x509.DNSName("x")), "it has 2 URI names"),
        (arbiter(names=[*uris(SEAT), x509.DNSName("x")]), "does not go with serverAuth"),
        (seat(), "must be exactly serverAuth"),
    ],
    ids=["client", "both", "no host", "wildcard", "email", "two URIs", "a seat's identity", "a seat"],
)
def test_a_wrapper_refuses_an_arbiter_that_is_none(forged: Forged, why: str) -> None:
    with pytest.raises(CertificateRefused, match=why):
        identify_arbiter(forged.der)


def test_an_arbiter_cannot_take_a_seat() -> None:
    with pytest.raises(CertificateRefused, match="is serverAuth; it must be exactly clientAuth"):
        identify(arbiter(x509.DNSName("localhost")).der)


def test_a_refusal_is_an_error_of_ours() -> None:
    assert issubclass(CertificateRefused, ConsiliumError)


@pytest.mark.parametrize("garbage", [b"", b"\x30", b"GET / HTTP/1.1\r\n\r\n", bytes(4096)])
def test_what_is_no_certificate_is_refused(garbage: bytes) -> None:
    for judge in (identify, identify_arbiter, examine, lambda der: validity(der, NOW)):
        with pytest.raises(CertificateRefused, match="cannot be read"):
            judge(garbage)


def test_anything_behind_the_certificate_is_refused() -> None:
    with pytest.raises(CertificateRefused):
        identify(seat().der + b"\0")


def test_a_subject_with_a_value_that_is_no_text_is_refused() -> None:
    kind = x509.NameOID.X500_UNIQUE_IDENTIFIER
    bits = x509.NameAttribute(kind, b"\1", x509.name._ASN1Type.BitString)
    with pytest.raises(CertificateRefused, match="cannot be printed"):
        identify(seat(subject=x509.Name([bits])).der)


def test_a_text_type_that_does_not_go_with_its_attribute_is_refused() -> None:
    # Found by damaging certificates at random: the parser raises a TypeError of its own for this.
    utf8, bits = bytes.fromhex("0603550403 0c04"), bytes.fromhex("0603550403 0304")
    der = seat().der
    subject = der.rindex(utf8)
    with pytest.raises(CertificateRefused, match="cannot be read"):
        identify(der[:subject] + bits + der[subject + len(utf8) :])


GOOD = seat().der


# The parser warns of damage that it can live with, such as a serial number below zero.
@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_certificate_is_identified_or_refused_and_nothing_else(
    damage: list[tuple[int, int]],
) -> None:
    der = bytearray(GOOD)
    for at, byte in damage:
        der[at] = byte
    # Any other exception than a refusal fails the test: it would end the connection as a bug of ours.
    with contextlib.suppress(CertificateRefused):
        assert identify(bytes(der)).fingerprint == fingerprint(bytes(der))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(GOOD) - 1))
def test_a_cut_certificate_is_refused(length: int) -> None:
    with pytest.raises(CertificateRefused):
        identify(GOOD[:length])


@pytest.mark.parametrize(
    ("at", "state", "sentence"),
    [
        (-300, "valid", "valid for another 30 days (until 2027-02-14 07:55:00 UTC)"),
        (30 * DAY - 301, "valid", "valid for another 1 second (until 2027-02-14 07:55:00 UTC)"),
        (30 * DAY - 300, "expired", "expired 0 seconds ago (2027-02-14 07:55:00 UTC)"),
        (33 * DAY - 300, "expired", "expired 3 days ago (2027-02-14 07:55:00 UTC)"),
        (-301, "not yet valid", "not valid for another 1 second (from 2027-01-15 07:55:00 UTC)"),
        (-300 - 7200, "not yet valid", "not valid for another 2 hours (from 2027-01-15 07:55:00 UTC)"),
    ],
)
def test_validity_says_how_far_away_the_end_is(at: float, state: str, sentence: str) -> None:
    found = validity(GOOD, NOW + at)
    assert found.state == state
    assert found.sentence.startswith(sentence)
    assert (found.not_before, found.not_after) == (NOW - 300, NOW - 300 + 30 * DAY)


def test_a_certificate_that_is_not_yet_valid_puts_the_clock_in_question() -> None:
    assert validity(GOOD, NOW - 301).sentence.endswith("is this clock right?")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 seconds"),
        (0.5, "0 seconds"),
        (1, "1 second"),
        (1.9, "1 second"),
        (2, "2 seconds"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (3600, "60 minutes"),
        (7200, "2 hours"),
        (2 * DAY - 1, "47 hours"),
        (3 * DAY - 1, "2 days"),
    ],
)
def test_a_span_is_told_in_its_largest_plural_unit(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_what_is_quoted_from_a_certificate_cannot_move_the_cursor() -> None:
    assert printable("a\x1b[2J\x9b\u202e\u00e9\n") == "a\\x1b[2J\\x9b\\u202e\u00e9\\n"


def test_the_package_itself_does_not_load_cryptography() -> None:
    code = (
        "import sys, consilium, consilium.identity, consilium.profile, consilium.credentials;"
        "sys.exit('cryptography' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
