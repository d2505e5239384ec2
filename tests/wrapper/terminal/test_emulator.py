"""`wrapper.terminal.emulator`: what a client draws, as a person would read it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wrapper.terminal.emulator import MAX_PAST, Emulator


def shown(*drawn: str, columns: int = 20, rows: int = 5) -> list[str]:
    emulator = Emulator(columns, rows)
    for piece in drawn:
        emulator.feed(piece.encode())
    lines = emulator.lines()
    while lines and not lines[-1]:
        lines.pop()
    return lines


@pytest.mark.parametrize(
    ("drawn", "lines"),
    [
        ("one\r\ntwo", ["one", "two"]),
        ("old\rnew", ["new"]),
        ("one\r\ntwo\x1b[1A\r\x1b[Jthree", ["three"]),
        ("\x1b[31mred\x1b[0m \x1b[38;2;1;2;3mx\x1b[4:3mcurly", ["red xcurly"]),
        ("\x1b[>1u\x1b[<u\x1b[?1049$px", ["x"]),
        ("\x1b]0;a title\x07text\x1bPq#0~\x1b\\", ["text"]),
        ("ab\x1b[3b", ["abbbb"]),
        ("a\x1b[5Cb", ["a     b"]),
        ("ä東\u0301👩\u200d🚀❤\ufe0f.", ["ä東\u0301👩\u200d🚀❤\ufe0f."]),
        ("\u200dx\x00\x7fy", ["xy"]),
        ("1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7", ["1", "2", "3", "4", "5", "6", "7"]),
        ("1\r\n2\r\n3\x1b[2S", ["1", "2", "3"]),
        ("1\r\n2\x1b[H\x1b[2T", ["", "", "1", "2"]),
        ("a\x1b[2;4r\x1b[4Hb\r\nc\x1b[r", ["a", "", "b", "c"]),
        ("x" * 25, ["x" * 20, "x" * 5]),
        ("abc\x1b[2D\x1b[K", ["a"]),
        ("abc\x1b[?K", ["abc"]),
        ("abc\x1b[5K\x1b[?7K\x1b[9J", ["abc"]),  # erases what nobody knows
        ("a\x1b[?6h\x1b[2dx\x1b[99dy", ["a", "x", "", "", " y"]),  # an origin that was never set
        ("a\x1b[2;4r\x1b[3dx\x1b[?6h\x1b[3dy", ["a", "", "x", "y"]),
        ("e" + 5000 * "\u0301", ["\u00e9" + 31 * "\u0301"]),
        ("e" + 5000 * "\u200d", ["e" + 31 * "\u200d"]),
        ("abc\x1b7\x1b[H12\x1b8d", ["12cd"]),
        ("abc\x1bcx", ["x"]),
        ("\x1b#8\x1b(0q", ["q"]),
        ("one\x1b[9J", ["one"]),
    ],
)
def test_what_is_drawn_is_read(drawn: str, lines: list[str]) -> None:
    assert shown(drawn) == lines
    assert shown(*drawn) == lines


def test_an_alternate_screen_has_no_past_and_gives_back_what_was_there() -> None:
    emulator = Emulator(20, 3)
    emulator.feed(b"1\r\n2\r\n3\r\n4")
    before = emulator.lines()
    emulator.feed(b"\x1b[?1049h\x1b[Ha\r\nb\r\nc\r\nd")
    assert emulator.lines() == ["b", "c", "d"]
    emulator.feed(b"\x1b[?1049h\x1b[?1049l")
    assert emulator.lines() == before == ["1", "2", "3", "4"]


def test_what_scrolled_away_is_forgotten_on_demand_and_when_the_client_clears_it() -> None:
    for clear in ("forget", "\x1b[3J"):
        emulator = Emulator(20, 2)
        emulator.feed(b"1\r\n2\r\n3")
        if clear == "forget":
            emulator.forget()
        else:
            emulator.feed(clear.encode())
        assert emulator.lines() == ["2", "3"]


def test_the_past_is_bounded() -> None:
    emulator = Emulator(10, 2)
    emulator.feed(b"x\r\n" * (MAX_PAST + 10))
    assert len(emulator.lines()) == MAX_PAST + 2


@given(
    st.lists(
        st.binary(max_size=30)
        | st.sampled_from([b"\x1b[", b"\x1b7", b"\x1b[5;2r", b"\x1b[9999S", b"\x1b[?6h"])
    )
)
def test_nothing_that_a_client_draws_breaks_the_terminal(pieces: list[bytes]) -> None:
    emulator = Emulator(12, 4)
    for piece in pieces:
        emulator.feed(piece)
    assert len(emulator.lines()) >= 4
