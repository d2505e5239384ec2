"""`wrapper.terminal.stream`: text and controls, whole, in pieces and mutilated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wrapper.terminal.stream import MAX_CONTROL, Control, Splitter


def split(*pieces: bytes) -> list[str | Control]:
    splitter = Splitter()
    return [found for piece in pieces for found in splitter.feed(piece)]


def text_of(found: list[str | Control]) -> str:
    return "".join(piece for piece in found if isinstance(piece, str))


@pytest.mark.parametrize(
    ("stream", "control"),
    [
        (b"\x1b[2J", Control("csi", "J", (2,))),
        (b"\x1b[;5H", Control("csi", "H", (None, 5))),
        (b"\x1b[?2004h", Control("csi", "?h", (2004,))),
        (b"\x1b[>0q", Control("csi", ">q", (0,))),
        (b"\x1b[?2026$p", Control("csi", "?$p", (2026,))),
        (b"\x1b[<u", Control("csi", "<u", (None,))),
        (b"\x1b[4:3m", Control("csi", "m", (4,))),
        (b"\x1b[99999999999999A", Control("csi", "A", (None,))),
        (b"\x1b[12345A", Control("csi", "A", (9999,))),
        (b"\x1b]11;?\x07", Control("]", "]", body="11;?")),
        (b"\x1b]11;?\x1b\\", Control("]", "]", body="11;?")),
        (b"\x1bP+q544e\x1b\\", Control("P", "P", body="+q544e")),
        (b"\x1b(B", Control("escape", "(B")),
        (b"\x1b7", Control("escape", "7")),
        (b"\r", Control("control", "\r")),
    ],
)
def test_a_control_is_known(stream: bytes, control: Control) -> None:
    assert split(b"a" + stream + b"b") == ["a", control, "b"]
    assert split(*(bytes([byte]) for byte in b"a" + stream + b"b")) == ["a", control, "b"]


@pytest.mark.parametrize(
    "stream", [b"\x1b[12\x07", b"\x1b[1\xc3\xa4", b"\x1b\xc3\xa4", b"\x1b]0;title\x18", b"\x1b\x1b[2J"]
)
def test_what_was_cut_short_takes_nothing_with_it(stream: bytes) -> None:
    assert text_of(split(b"before " + stream + b" behind")).replace("ä", "") == "before  behind"


def test_a_string_that_another_control_cuts_short_is_over() -> None:
    assert split(b"\x1b]0;title\x1b[2Jx") == [
        Control("]", "]", body="0;title"),
        Control("csi", "J", (2,)),
        "x",
    ]


def test_characters_are_put_together_over_pieces() -> None:
    assert text_of(split(b"\xe2\x97", b"\x8f yes \xff")) == "● yes \ufffd"


def test_a_control_without_an_end_is_dropped_at_last() -> None:
    splitter = Splitter()
    assert list(splitter.feed(b"\x1b]52;c;" + b"A" * MAX_CONTROL)) == []
    assert list(splitter.feed(b"text")) == ["text"]


@given(st.lists(st.binary(max_size=40)))
def test_any_bytes_are_a_stream(pieces: list[bytes]) -> None:
    found = split(*pieces)
    assert not any(char in text_of(found) for char in map(chr, (*range(32), *range(127, 160))))
    assert text_of(found) == text_of(split(b"".join(pieces)))
