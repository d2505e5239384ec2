"""A line editor's keys, and where its text lies on the screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilium.console import columns
from wrapper.human.draft import MAX_CHARS, Draft, lay, typed


def draft(text: str) -> Draft:
    """A draft with the cursor at ``|``."""
    made = Draft()
    before, _, after = text.partition("|")
    made.put(before + after)
    made.at = len(before)
    return made


def shown(made: Draft) -> str:
    return f"{made.text[: made.at]}|{made.text[made.at :]}"


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        ("ab|", "left left left", "|ab"),
        ("|ab", "right ctrl+f right", "ab|"),
        ("one two|", "ctrl+left alt+b", "|one two"),
        ("|one, two", "ctrl+right", "one|, two"),
        ("|one, two", "alt+f alt+f alt+f", "one, two|"),
        ("one\ntwo|", "home", "one\n|two"),
        ("on|e\ntwo", "end", "one|\ntwo"),
        ("one\n|two", "ctrl+e", "one\ntwo|"),
        ("one\ntwo|", "up", "one|\ntwo"),
        ("o\ntwo|", "ctrl+p up", "o|\ntwo"),
        ("on|e\ntwo\nx", "down ctrl+n down", "one\ntwo\nx|"),
        ("ab|c", "backspace backspace backspace", "|c"),
        ("a|bc", "delete ctrl+d delete", "a|"),
        ("one two |three", "ctrl+w", "one |three"),
        ("one |", "alt+backspace alt+backspace", "|"),
        ("x\none|two", "ctrl+u", "x\n|two"),
        ("x\n|two", "ctrl+u", "x|two"),
        ("on|e\ntwo", "ctrl+k", "on|\ntwo"),
        ("one|\ntwo", "ctrl+k", "one|two"),
        ("one|", "ctrl+k", "one|"),
        ("one two|", "ctrl+w home ctrl+y", "two|one "),
        ("one|", "ctrl+w ctrl+u ctrl+y ctrl+y", "oneone|"),
        ("cafe\u0301|", "left", "caf|e\u0301"),
        ("cafe\u0301|", "backspace", "caf|"),
        ("|e\u0301a", "delete", "|a"),
        ("👩\u200d🔧|", "backspace", "|"),
        ("ab\ne\u0301x|", "up down", "ab\ne\u0301|x"),
    ],
)
def test_each_key_does_what_line_editors_do(before: str, keys: str, after: str) -> None:
    made = draft(before)
    for key in keys.split():
        assert made.press(key)
    assert shown(made) == after


def test_a_key_that_means_nothing_does_nothing() -> None:
    made = draft("a|b")
    assert not made.press("f5")
    assert shown(made) == "a|b"


def test_what_is_inserted_is_text_and_bounded() -> None:
    made = draft("[|]")
    assert made.insert("a\tb\r\nc\x1b\x07\x9bd\u2028e")
    assert made.text == "[a    b\ncd\ne]"
    assert not made.insert("x" * MAX_CHARS)
    assert len(made.text) == MAX_CHARS
    assert made.take().endswith("]")
    assert (made.text, made.at) == ("", 0)


@given(st.text())
def test_no_control_is_ever_in_a_draft(text: str) -> None:
    assert not any(char != "\n" and (ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0) for char in typed(text))


TEXTS = st.text(st.sampled_from("ab \n漢e\u0301👩\u200d\u202e"), max_size=60)


@given(text=TEXTS, data=st.data(), width=st.integers(4, 20), height=st.integers(1, 6))
def test_a_layout_never_leaves_the_screen_and_shows_the_cursor(
    text: str, data: st.DataObject, width: int, height: int
) -> None:
    at = data.draw(st.integers(0, len(text)))
    lying = lay("> ", text, at, width, height)
    assert 1 <= len(lying.rows) <= height
    assert 0 <= lying.row < len(lying.rows)
    # A bidirectional control is shown by its number, which may be wider than a narrow terminal.
    assert all(columns(row) < width or "<U+" in row for row in lying.rows)
    assert lying.column < width or "<U+" in lying.rows[lying.row]


def test_a_layout_in_rows() -> None:
    lying = lay("you> ", "one two\nthree", 9, 10, 9)
    assert lying.rows == ("you> one ", "two", "    three")
    assert (lying.row, lying.column) == (2, 5)
    assert lay("you> ", "", 0, 80, 9).column == 5
    at_the_end_of_a_line = lay("> ", "ab\ncd", 2, 20, 9)
    assert (at_the_end_of_a_line.row, at_the_end_of_a_line.column) == (0, 4)


@pytest.mark.parametrize(("width", "height", "above"), [(10, 3, 1), (5, 5, 2), (1, 16, 9)])
def test_rows_that_a_narrower_terminal_has_broken_are_counted(width: int, height: int, above: int) -> None:
    lying = lay("> ", "abcd\nefghi\nj", 6, 10, 9)
    assert lying.rows == ("> abcd", "  efghi", "  j")
    assert lying.height(width) == height
    assert lying.above(width) == above
