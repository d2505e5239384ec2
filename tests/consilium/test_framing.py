from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_strategies import CODECS, UNIONS, messages_of

from consilium.codec import encode
from consilium.errors import ErrorCode, PeerError
from consilium.framing import MAX_ARBITER_LINE_BYTES, MAX_LINE_BYTES, LineFramer
from consilium.messages import MAX_SPEECH_BYTES

LIMIT = 16

streams = st.lists(st.binary(max_size=LIMIT + 2) | st.sampled_from([b"\n", b"\n\n", b"\r\n"])).map(b"".join)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut ``data`` at these places, taken modulo its length; some chunks are empty."""
    edges = sorted([0, *(place % (len(data) + 1) for place in places), len(data)])
    return [data[start:end] for start, end in pairwise(edges)]


def feed(framer: LineFramer, chunks: list[bytes]) -> tuple[list[bytes], PeerError | None]:
    """Feed all chunks; return the lines, and what ended it."""
    lines: list[bytes] = []
    for chunk in chunks:
        try:
            lines += framer.feed(chunk)
        except PeerError as error:
            return lines, error
        assert framer.partial <= framer.limit
    return lines, None


def each_byte(data: bytes) -> list[bytes]:
    return [data[place : place + 1] for place in range(len(data))]


@given(streams, st.lists(st.integers(0, 200), max_size=8))
@settings(max_examples=100)
def test_lines_do_not_depend_on_how_the_bytes_arrive(stream: bytes, places: list[int]) -> None:
    *expected, rest = stream.split(b"\n")
    too_long = any(len(line) > LIMIT for line in [*expected, rest])
    for chunks in ([stream], each_byte(stream), cut(stream, places)):
        framer = LineFramer(LIMIT)
        lines, error = feed(framer, chunks)
        assert (error is not None) is too_long
        if error is None:
            assert lines == expected
            assert framer.partial == len(rest)
        else:
            assert error.code is ErrorCode.TOO_LARGE
            assert lines == expected[: len(lines)]


@given(streams)
@settings(max_examples=100)
def test_byte_by_byte_every_line_before_the_one_that_is_too_long_is_delivered(stream: bytes) -> None:
    good: list[bytes] = []
    for line in stream.split(b"\n")[:-1]:
        if len(line) > LIMIT:
            break
        good.append(line)
    lines, _ = feed(LineFramer(LIMIT), each_byte(stream))
    assert lines == good


@given(st.data(), st.lists(st.integers(0, 10_000), max_size=8))
@settings(max_examples=100)
def test_messages_survive_any_chunking(data: st.DataObject, places: list[int]) -> None:
    channel = data.draw(st.sampled_from(list(UNIONS)))
    sent = data.draw(st.lists(messages_of(UNIONS[channel]), max_size=4))
    stream = b"".join(encode(message, f"m-{number}") for number, message in enumerate(sent))
    for chunks in ([stream], each_byte(stream), cut(stream, places)):
        lines, error = feed(LineFramer(), chunks)
        assert error is None
        assert [CODECS[channel].decode(line).message for line in lines] == sent


@given(st.data(), st.lists(st.integers(0, 10_000), max_size=8))
@settings(max_examples=100)
def test_a_damaged_stream_yields_messages_or_peer_errors(data: st.DataObject, places: list[int]) -> None:
    """Any other exception fails the test."""
    channel = data.draw(st.sampled_from(list(UNIONS)))
    sent = data.draw(st.lists(messages_of(UNIONS[channel]), min_size=1, max_size=3))
    stream = bytearray(b"".join(encode(message, "m-1") for message in sent))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(stream)))
        stream[place : place + data.draw(st.integers(0, 4))] = data.draw(
            st.binary(max_size=4) | st.just(b"\n")
        )
    limit = data.draw(st.sampled_from([64, MAX_LINE_BYTES]))
    lines, error = feed(LineFramer(limit), cut(bytes(stream), places))
    assert error is None or error.code is ErrorCode.TOO_LARGE
    for line in lines:
        assert len(line) <= limit
        try:
            CODECS[channel].decode(line)
        except PeerError:
            break


@pytest.mark.parametrize("tail", [b"\n", b""], ids=["ended", "not ended yet"])
@pytest.mark.parametrize("step", [1, LIMIT + 1], ids=["byte by byte", "whole"])
def test_a_line_may_be_as_long_as_the_limit_and_no_longer(step: int, tail: bytes) -> None:
    def chunks(size: int) -> list[bytes]:
        stream = b"x" * size + tail
        return [stream[place : place + step] for place in range(0, len(stream), step)]

    for size in (LIMIT - 1, LIMIT):
        lines, error = feed(LineFramer(LIMIT), chunks(size))
        assert error is None
        assert lines == ([b"x" * size] if tail else [])
    lines, error = feed(LineFramer(LIMIT), chunks(LIMIT + 1))
    assert lines == []
    assert error is not None
    assert (error.code, error.message) == (ErrorCode.TOO_LARGE, "a line may hold at most 16 bytes")


def test_after_a_line_that_is_too_long_everything_is_refused_and_nothing_is_held() -> None:
    framer = LineFramer(LIMIT)
    for chunk in (b"x" * 100, b"", b"\n", b"good\n"):
        with pytest.raises(PeerError, match="at most 16 bytes"):
            framer.feed(chunk)
        assert framer.partial == 0


def test_a_chunk_that_ends_one_line_and_overfills_the_next_is_refused() -> None:
    with pytest.raises(PeerError) as caught:
        LineFramer(LIMIT).feed(b"good\n" + b"x" * (LIMIT + 1))
    assert caught.value.code is ErrorCode.TOO_LARGE


def test_empty_lines_are_lines() -> None:
    assert LineFramer().feed(b"\n\na\n") == [b"", b"", b"a"]


def test_only_a_newline_ends_a_line() -> None:
    text = "a\rb\vc\fd\u0085e\u2028f".encode()
    assert LineFramer().feed(text + b"\n") == [text]


def test_memory_stays_below_the_limit_whatever_arrives() -> None:
    chunk = b"x" * 16384
    framer = LineFramer()
    tracemalloc.start()
    _, error = feed(framer, [chunk] * (MAX_LINE_BYTES // len(chunk) + 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert error is not None
    assert peak < 2 * MAX_LINE_BYTES


def test_a_large_line_leaves_no_large_buffer_behind() -> None:
    framer = LineFramer()
    chunk = b"x" * (MAX_LINE_BYTES // 2)
    tracemalloc.start()
    framer.feed(chunk)
    framer.feed(chunk)
    assert tracemalloc.get_traced_memory()[0] >= MAX_LINE_BYTES
    framer.feed(b"\ny")
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert framer.partial == 1
    assert held < 4096


def test_the_limits_leave_room_for_the_largest_speech_escaped_six_times_over() -> None:
    assert MAX_LINE_BYTES > 6 * MAX_SPEECH_BYTES
    assert MAX_ARBITER_LINE_BYTES > 64 * 6 * MAX_SPEECH_BYTES
