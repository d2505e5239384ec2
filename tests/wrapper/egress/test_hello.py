"""The name in a ClientHello, however it comes, and everything that is none."""

from __future__ import annotations

from itertools import pairwise

import pytest
from egress_hellos import body, extension, hello_for, message, name_extension, real_hello, records
from hypothesis import given
from hypothesis import strategies as st

from wrapper.egress.hello import HELLO_BYTES, Hello
from wrapper.egress.verdicts import Outcome, RefusedError

HOST = "api.provider.test"


def fed(data: bytes, *cuts: int) -> str | None:
    """The name in ``data``, fed in pieces that are cut at ``cuts``."""
    hello, places = Hello(), [0, *sorted(cuts), len(data)]
    for start, end in pairwise(places):
        if (name := hello.feed(data[start:end])) is not None:
            return name
    return None


def refused(data: bytes) -> Outcome:
    with pytest.raises(RefusedError) as raised:
        fed(data)
    return raised.value.outcome


def test_the_name_of_a_real_clients_hello() -> None:
    assert fed(real_hello(HOST)) == HOST


@given(st.data(), st.integers(1, 700))
def test_a_hello_may_be_split_over_records_and_segments(data: st.DataObject, size: int) -> None:
    whole = real_hello(HOST)
    split = records(whole[5:], size=size)
    cuts = data.draw(st.lists(st.integers(0, len(split)), max_size=30))
    assert fed(split, *cuts) == HOST


def test_byte_by_byte() -> None:
    whole = real_hello(HOST)
    assert fed(whole, *range(len(whole))) == HOST


@given(st.data())
def test_no_part_of_a_hello_is_enough(data: st.DataObject) -> None:
    whole = real_hello(HOST)
    assert fed(whole[: data.draw(st.integers(0, len(whole) - 1))]) is None


def test_what_comes_after_it_is_kept_to_be_passed_on() -> None:
    hello = Hello()
    sent = real_hello(HOST) + b"early data"
    assert hello.feed(sent) == HOST
    assert hello.taken == sent


@given(st.binary(max_size=300))
def test_any_bytes_are_a_name_or_refused_or_too_few(junk: bytes) -> None:
    try:
        fed(junk)
    except RefusedError:
        return


@given(st.data(), st.binary(min_size=1, max_size=8))
def test_a_damaged_hello_is_never_a_bug(data: st.DataObject, damage: bytes) -> None:
    whole = bytearray(hello_for(HOST.encode()))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at : at + len(damage)] = damage
    try:
        fed(bytes(whole))
    except RefusedError:
        return


NO_NAME, NOT_TLS = Outcome.NO_NAME, Outcome.NOT_TLS
LONG = body(extension(21, bytes(60000)), extension(21, bytes(5480)), name_extension(b"a"))
GOOD = body(name_extension(b"a"))
assert len(LONG) > HELLO_BYTES


@pytest.mark.parametrize(
    ("sent", "outcome"),
    [
        (real_hello(None), NO_NAME),
        (records(message(body())), NO_NAME),
        (records(message(GOOD[:41] + b"\x20" + bytes(0))), NOT_TLS),
        (records(message(body()[:-2])), NO_NAME),  # no extensions at all: older than names
        (hello_for(b"a", b"b"), NO_NAME),
        (records(message(body(name_extension(b"a"), name_extension(b"b")))), NO_NAME),
        (records(message(body(extension(0xFE0D, b"secret"), name_extension(b"a")))), NO_NAME),
        (records(message(body(name_extension(b"a"), extension(0xFE0D, b"")))), NO_NAME),
        (records(message(body(name_extension(b"a", kind=1)))), NOT_TLS),
        (hello_for("prövider.test".encode()), NOT_TLS),
        (records(message(GOOD + b"x")), NOT_TLS),
        (records(message(body(extension(0, b"\x00\x04\x00\x00\x01a" + b"x")))), NOT_TLS),
        (records(message(body(extension(0, b"\x00\x09\x00\x00\x01a")))), NOT_TLS),
        (records(message(body(extension(0, b"")))), NOT_TLS),
        (records(message(b"")), NOT_TLS),
        (records(message(GOOD, kind=2)), NOT_TLS),
        (records(message(GOOD), kind=23), NOT_TLS),
        (records(message(LONG)), NOT_TLS),
        (b"\x16\x03\x01\x00\x00", NOT_TLS),
        (b"\x16\x03\x01\x40\x01", NOT_TLS),
        (b"\x16\x02\x00\x00\x05hello", NOT_TLS),
        (b"GET / HTTP/1.1\r\n\r\n", NOT_TLS),
        (b"CONNECT b.test:22 HTTP/1.1\r\n\r\n", NOT_TLS),
        (b"SSH-2.0-OpenSSH_9.2\r\n", NOT_TLS),
    ],
)
def test_what_names_no_single_server_is_refused(sent: bytes, outcome: Outcome) -> None:
    assert refused(sent) is outcome
