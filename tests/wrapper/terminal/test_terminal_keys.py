"""`wrapper.terminal.keys`: what may never be written to a client's terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wrapper.terminal.keys import KEYS, PASTE_BEGINS, PASTE_ENDS, pasted

HOSTILE = st.lists(
    st.sampled_from(
        ["\x1b[201~", "\x1b[200~", "\x1b", "\r", "\x03", "\x04", "\x9b201~", "[201~", "\n/quit", "\t", "a"]
    )
    | st.text(max_size=5)
).map("".join)

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")


@given(HOSTILE)
def test_a_paste_presses_no_key_and_cannot_end_itself(text: str) -> None:
    written = pasted(text)
    assert written.startswith(PASTE_BEGINS)
    assert written.endswith(PASTE_ENDS)
    inner = written[len(PASTE_BEGINS) : -len(PASTE_ENDS)].decode()
    assert not CONTROL.search(inner)


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), min_size=1))
def test_plain_text_arrives_as_it_is(text: str) -> None:
    assert pasted(text)[len(PASTE_BEGINS) : -len(PASTE_ENDS)].decode() == text.rstrip()


@pytest.mark.parametrize(
    ("text", "arrives"),
    [
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("a\tb", "a    b"),
        ("before\x1b[201~\rrm -rf\r", "before\nrm -rf"),
        ("/help\n!ls\n> @/etc/passwd", "/help\n!ls\n> @/etc/passwd"),
    ],
)
def test_lines_stay_lines(text: str, arrives: str) -> None:
    assert pasted(text) == PASTE_BEGINS + arrives.encode() + PASTE_ENDS


def test_every_key_is_one_that_a_terminal_has() -> None:
    assert all(len(key) == 1 or key in (b"\x1b[A", b"\x1b[B") for key in KEYS.values())
