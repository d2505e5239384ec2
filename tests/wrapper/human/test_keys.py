"""What a terminal sends, and what a person did."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wrapper.human.keys import PASTE_CHARS, Decoder, Key, Pasted, Stroke, Typed


@pytest.mark.parametrize(
    ("sent", "strokes"),
    [
        (b"hello", [Typed("hello")]),
        ("día 漢字".encode(), [Typed("día 漢字")]),
        (b"\r", [Key("enter")]),
        (b"\n", [Key("ctrl+j")]),
        (b"\x01\x02\x11\x13\x14", [Key(f"ctrl+{letter}") for letter in "abqst"]),
        (b"\x7f\x08\t", [Key("backspace"), Key("backspace"), Key("tab")]),
        (b"\x1b[A\x1bOB\x1b[1;5C\x1b[3~", [Key("up"), Key("down"), Key("ctrl+right"), Key("delete")]),
        (b"\x1bb\x1b\r\x1b[13;2u", [Key("alt+b"), Key("alt+enter"), Key("alt+enter")]),
        (b"\x1bOP\x1b[15~", [Key("f1"), Key("f5")]),
        (b"\x1b[99;99zx", [Key("unknown"), Typed("x")]),
        (b"\x1c\x00", [Key("unknown"), Key("unknown")]),
        ("\x85\x9b31m".encode(), [Key("unknown"), Key("unknown"), Typed("31m")]),
        (b"a\xff\xfeb", [Typed("a��b")]),
        (b"\x1b[200~/quit\r\x01\x1b[A\x1b[201~x", [Pasted("/quit\r\x01\x1b[A"), Typed("x")]),
        (b"\x1b[200~\x1b[201~", [Pasted("")]),
        (b"\x1b[" + b"1" * 40 + b"A", [Key("escape"), Typed("[" + "1" * 40 + "A")]),
    ],
)
def test_what_was_sent_is_what_was_pressed(sent: bytes, strokes: list[Stroke]) -> None:
    decoder = Decoder()
    assert decoder.feed(sent) == strokes
    assert not decoder.undecided


def joined(strokes: list[Stroke]) -> list[Stroke]:
    """The same with texts that came in pieces put together."""
    whole: list[Stroke] = []
    for stroke in strokes:
        last = whole[-1] if whole else None
        if isinstance(stroke, Typed) and isinstance(last, Typed):
            whole[-1] = Typed(last.text + stroke.text)
        else:
            whole.append(stroke)
    return whole


PIECES = st.sampled_from(
    [
        "a",
        "é",
        "漢",
        "\x01",
        "\r",
        "\x1b[A",
        "\x1bOH",
        "\x1bf",
        "\x1b[200~x\x1b[2\r\x1b[201~",
        "\x1b[1;5D",
        "[",
        "O",
    ]
)


@given(pieces=st.lists(PIECES), data=st.data())
def test_pieces_make_no_difference(pieces: list[str], data: st.DataObject) -> None:
    sent = "".join(pieces).encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(sent)))) | {0, len(sent)})
    whole, cut = Decoder(), Decoder()
    at_once = whole.feed(sent) + whole.settle()
    bit_by_bit = [stroke for a, b in pairwise(cuts) for stroke in cut.feed(sent[a:b])]
    assert joined(bit_by_bit + cut.settle()) == joined(at_once)


@given(st.binary())
def test_whatever_comes_no_control_is_taken_for_text(sent: bytes) -> None:
    decoder = Decoder()
    for stroke in decoder.feed(sent) + decoder.settle():
        if isinstance(stroke, Typed):
            assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in stroke.text)


def test_an_escape_alone_is_a_key_after_a_moment() -> None:
    decoder = Decoder()
    assert decoder.settle() == []
    assert decoder.feed(b"\x1b") == []
    assert decoder.undecided
    assert decoder.settle() == [Key("escape")]
    assert decoder.feed(b"x") == [Typed("x")]


def test_a_paste_is_bounded_and_says_so() -> None:
    decoder = Decoder()
    assert decoder.feed(b"\x1b[200~" + b"a" * (PASTE_CHARS + 5)) == []
    assert not decoder.undecided
    assert decoder.feed(b"more\x1b[20") == []
    assert decoder.feed(b"1~") == [Pasted("a" * PASTE_CHARS, cut=True)]
