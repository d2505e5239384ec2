from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilium.identity import MAX_LIFETIME_DAYS, Identity, fingerprint, parse_spiffe, spiffe
from consilium.messages import SystemEvent

DIGITS = bytes.fromhex("ab12cd34") + bytes(28)


def identity(digits: bytes = DIGITS, *, lifetime_s: float = 90 * 86400) -> Identity:
    return Identity(
        fingerprint=digits,
        trust_domain="consilium.test",
        profile="participant",
        subject="claude",
        not_after=2e9,
        lifetime_s=lifetime_s,
    )


def test_the_fingerprint_is_the_whole_sha256_of_the_der() -> None:
    assert fingerprint(b"der") == hashlib.sha256(b"der").digest()
    assert len(fingerprint(b"")) == 32


def test_the_suffix_is_eight_upper_case_digits_of_the_fingerprint() -> None:
    assert identity().suffix == "AB12CD34"


def test_a_display_name_is_the_name_and_the_suffix() -> None:
    assert identity().display_name("claude_sonnet_deep") == "claude_sonnet_deep_AB12CD34"


@given(st.binary(min_size=32, max_size=32), st.from_regex(r"[a-z0-9_]{1,64}", fullmatch=True))
def test_every_display_name_is_a_participant_id(digits: bytes, name: str) -> None:
    shown = identity(digits).display_name(name)
    assert SystemEvent(event="HUMAN_SKIP", participant_id=shown).participant_id == shown


def test_the_suffix_does_not_make_two_certificates_equal() -> None:
    other = identity(DIGITS[:-1] + b"\x01")
    assert other.suffix == identity().suffix
    assert other != identity()


def test_a_lifetime_is_told_in_days() -> None:
    assert identity().lifetime_days == MAX_LIFETIME_DAYS
    assert identity(lifetime_s=43200).lifetime_days == 0.5


@given(
    st.from_regex(r"[a-z0-9.-]{1,255}", fullmatch=True),
    st.from_regex(r"[a-z0-9_-]{1,64}", fullmatch=True),
    st.from_regex(r"[a-z0-9_-]{1,64}", fullmatch=True),
)
def test_a_uri_that_is_built_is_parsed_into_its_parts(domain: str, profile: str, subject: str) -> None:
    assert parse_spiffe(spiffe(domain, profile, subject)) == (domain, profile, subject)


BAD_URIS = {
    "another scheme": "https://consilium.test/participant/claude",
    "upper-case scheme": "SPIFFE://consilium.test/participant/claude",
    "no domain": "spiffe:///participant/claude",
    "no id": "spiffe://consilium.test/participant",
    "an empty id": "spiffe://consilium.test/participant/",
    "an empty profile": "spiffe://consilium.test//claude",
    "one part too many": "spiffe://consilium.test/participant/claude/x",
    "a dot segment": "spiffe://consilium.test/participant/..",
    "upper case": "spiffe://consilium.test/Participant/claude",
    "a port": "spiffe://consilium.test:1/participant/claude",
    "a user": "spiffe://a@consilium.test/participant/claude",
    "a query": "spiffe://consilium.test/participant/claude?a",
    "a fragment": "spiffe://consilium.test/participant/claude#a",
    "a percent escape": "spiffe://consilium.test/participant/cl%61ude",
    "a newline after": "spiffe://consilium.test/participant/claude\n",
    "a newline before": "\nspiffe://consilium.test/participant/claude",
    "NUL": "spiffe://consilium.test/operator\0/participant/claude",
    "a Cyrillic letter": "spiffe://consilium.test/p\u0430rticipant/claude",
    "a full-width letter": "spiffe://consilium.test/\uff50articipant/claude",
    "a full-width slash": "spiffe://consilium.test/participant\uff0fclaude",
    "a long profile": "spiffe://consilium.test/" + "p" * 65 + "/claude",
    "a long id": "spiffe://consilium.test/participant/" + "c" * 65,
    "a long domain": "spiffe://" + "d" * 256 + "/participant/claude",
    "nothing": "",
}


@pytest.mark.parametrize("uri", BAD_URIS.values(), ids=BAD_URIS.keys())
def test_anything_but_the_one_form_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="not of the form"):
        parse_spiffe(uri)


@pytest.mark.parametrize(
    ("domain", "profile", "subject"),
    [("", "p", "s"), ("d", "", "s"), ("d", "p", ""), ("d", "p/q", "s"), ("d", "p", "S"), ("d/e", "p", "s\n")],
)
def test_nothing_is_built_that_would_not_be_parsed(domain: str, profile: str, subject: str) -> None:
    with pytest.raises(ValueError, match="not of the form"):
        spiffe(domain, profile, subject)
