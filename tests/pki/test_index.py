"""The index of what was issued and revoked, and the numbers and times of the revocation lists."""

from __future__ import annotations

import pytest
from certificates import DAY
from hypothesis import given
from hypothesis import strategies as st

from pki.build import BACKDATE_S
from pki.index import Index, Lists, ListsBehind, Record

NOW = 1_800_000_000.0


def record(
    name: str = "seat", serial: str = "a1", *, fingerprint: str = "ab" * 32, not_after: float = NOW + 30 * DAY
) -> Record:
    return Record(
        name=name,
        profile="participant",
        issuer="participants",
        uri=f"spiffe://council.local/participant/{name}",
        days=30,
        serial=serial,
        fingerprint=fingerprint,
        not_before=int(NOW),
        not_after=int(not_after),
    )


def index(*records: Record) -> Index:
    return Index(lists=Lists.first(NOW), issued=records)


def test_it_is_read_as_it_was_written() -> None:
    full = index(record(), record("hub", "b2")).with_revoked([record()], NOW, "key-compromise")
    assert Index.read(full.written()) == full


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"\0" * 100,
        index(record()).written()[:-20],
        index(record()).written().replace(b'"version": 1', b'"version": 2'),
        index(record()).written().replace(b'"issuer": "participants"', b'"issuer": "root"'),
        index(record()).written().replace(b'"serial": "a1"', b'"serial": "x"'),
        index(record()).written().replace(b'"number": 1', b'"number": 0'),
    ],
)
def test_what_is_no_index_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - pydantic's own; whoever reads the file says which
        Index.read(content)


Times = st.lists(st.sampled_from([0, 0, 0, 0.4, 1, 90, 3 * DAY]), min_size=1, max_size=40)


@given(Times)
def test_lists_never_go_back_and_never_begin_in_the_future(steps: list[float]) -> None:
    lists, now = Lists.first(NOW), NOW
    for step in steps:
        now += step
        try:
            new = lists.following(now)
        except ListsBehind:
            assert lists.this_update + 1 > now
            continue
        assert new.number == lists.number + 1
        assert lists.this_update < new.this_update <= now
        assert new.next_update == int(now) + lists.days * DAY
        lists = new


def test_there_is_room_for_hundreds_of_lists_in_one_second() -> None:
    lists = Lists.first(NOW)
    for _ in range(BACKDATE_S):
        lists = lists.following(NOW)
    assert lists.this_update == int(NOW)
    with pytest.raises(ListsBehind, match="begins 1 seconds from now"):
        lists.following(NOW)
    assert lists.following(NOW + 1).number == BACKDATE_S + 2


def test_a_clock_that_was_put_back_makes_no_list() -> None:
    with pytest.raises(ListsBehind):
        Lists.first(NOW).following(NOW - DAY)


def test_days_are_kept_until_others_are_asked_for() -> None:
    lists = Lists.first(NOW, 7)
    assert lists.following(NOW).days == 7
    longer = lists.following(NOW, 14)
    assert (longer.days, longer.following(NOW).days) == (14, 14)
    assert longer.end_within(NOW, 14)
    assert not longer.end_within(NOW, 13.9)


def test_a_second_revocation_changes_neither_date_nor_reason() -> None:
    once = index(record()).with_revoked([record()], NOW, "key-compromise")
    twice = once.with_revoked([record()], NOW + DAY, "superseded")
    assert twice == once


def test_an_expired_certificate_stays_on_one_list_of_after_its_end() -> None:
    short = record(not_after=NOW + DAY)
    revoked = index(short).with_revoked([short], NOW, "superseded")
    late = revoked.with_lists(revoked.lists.following(NOW + 2 * DAY))
    assert [each.serial for each in revoked.to_list("participants")] == [0xA1]
    assert late.to_list("participants") == []
    assert revoked.to_list("operators") == []


ONE = record("guest", "deadbeef01", fingerprint="12345678" + "0" * 56)
TWO = record("guest", "cafe", fingerprint="12345679" + "0" * 56)
THREE = record("12345678", "77", fingerprint="ff" * 32)
TABLE = [
    ("guest", [[ONE, TWO]]),
    ("deadbeef01", [[ONE]]),
    ("DEADBEEF01", [[ONE]]),
    ("de:ad:be:ef:01", [[ONE]]),
    ("0cafe", [[TWO]]),
    ("12345679", [[TWO]]),
    ("_12345679", [[TWO]]),
    ("guest_claude_12345679", [[TWO]]),
    ("guest_claude_1234567", []),
    (TWO.fingerprint, [[TWO]]),
    (TWO.fingerprint.upper(), [[TWO]]),
    ("12345678", [[THREE], [ONE]]),
    ("1234567", []),
    ("", []),
    ("nobody", []),
    ("Guest", []),
    ("77", [[THREE]]),
]


@pytest.mark.parametrize(("key", "meant"), TABLE)
def test_what_a_word_names(key: str, meant: list[list[Record]]) -> None:
    assert index(ONE, TWO, THREE).found(key) == meant


def test_the_beginning_of_two_fingerprints_is_two_things() -> None:
    twin = ONE.model_copy(update={"serial": "99", "fingerprint": "12345678" + "1" * 56})
    assert index(ONE, twin).found("12345678") == [[ONE], [twin]]


def test_the_last_certificate_of_a_name_is_the_last_that_was_issued() -> None:
    full = index(ONE, THREE, TWO)
    assert full.latest("guest") == TWO
    assert full.latest("nobody") is None
    assert full.names() == ["guest", "12345678"]
    assert ONE.suffix == "12345678"


Deeds = st.lists(
    st.tuples(st.sampled_from(["issue", "revoke", "lists"]), st.sampled_from("abc"), st.integers(1, 40)),
    max_size=30,
)


@given(Deeds)
def test_whatever_is_done_the_revoked_stay_on_a_list_until_they_have_ended(
    deeds: list[tuple[str, str, int]],
) -> None:
    full, now, last, revoked = index(), NOW, NOW, set[str]()
    for number, (deed, name, days) in enumerate(deeds, 1):
        now += DAY
        if deed == "issue":
            digits = f"{number:064x}"
            new = record(name, f"{number + 4096:x}", fingerprint=digits, not_after=now + days * DAY)
            full = full.with_issued(new)
            assert full.latest(name) == new
            assert full.found(digits) == full.found(new.serial) == [[new]]
        elif deed == "revoke":
            full = full.with_revoked([each for each in full.issued if each.name == name], now, "superseded")
            revoked |= {each.serial for each in full.issued if each.name == name}
        else:
            full, last = full.with_lists(full.lists.following(now)), now
        assert {each.serial for each in full.issued if each.revoked is not None} == revoked
        on_it = {f"{each.serial:x}" for each in full.to_list("participants")}
        alive = {each.serial for each in full.issued if each.not_after > last}
        assert revoked & alive <= on_it <= revoked
    assert Index.read(full.written()) == full
