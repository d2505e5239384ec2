"""`wrapper.terminal.queries`: what a client asks its terminal, and waits for."""

from __future__ import annotations

import pytest

from wrapper.terminal.emulator import Emulator
from wrapper.terminal.queries import PASTE


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (b"\x1b[c", b"\x1b[?62;22c"),
        (b"\x1b[0c", b"\x1b[?62;22c"),
        (b"\x1b[>c", b"\x1b[>1;10;0c"),
        (b"\x1b[5n", b"\x1b[0n"),
        (b"\x1b[6n", b"\x1b[1;1R"),
        (b"ab\r\nc\x1b[6n", b"\x1b[2;2R"),
        (b"\x1b[?6n", b"\x1b[?1;1R"),
        (b"\x1b[>0q", b"\x1bP>|Consilium\x1b\\"),
        (b"\x1b[18t", b"\x1b[8;10;40t"),
        (b"\x1b]10;?\x07", b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\"),
        (b"\x1b]11;?\x1b\\", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
        (b"\x1bP+q544e\x1b\\", b"\x1bP0+r\x1b\\"),
        (b"\x1bP$qm\x1b\\", b"\x1bP0$r\x1b\\"),
        (b"\x1b[?2026$p", b"\x1b[?2026;0$y"),
        (b"\x1b[?2004$p", b"\x1b[?2004;2$y"),
        (b"\x1b[?2004h\x1b[?2004$p", b"\x1b[?2004;1$y"),
        (b"\x1b[4$p", b"\x1b[4;0$y"),
    ],
)
def test_a_question_is_answered(question: bytes, answer: bytes) -> None:
    assert Emulator(40, 10).feed(question) == answer


@pytest.mark.parametrize(
    "said",
    [
        b"\x1b[?u",
        b"\x1b[>1u",
        b"\x1b[3c",
        b"\x1b]0;title\x07",
        b"\x1b]11;#fff\x07",
        b"\x1bPx\x1b\\",
        b"\x1b_x\x1b\\",
    ],
)
def test_what_is_no_question_of_a_plain_terminal_is_not_answered(said: bytes) -> None:
    emulator = Emulator(40, 10)
    assert emulator.feed(said) == b""
    assert "".join(emulator.lines()) == ""


def test_a_marked_paste_is_taken_when_it_was_asked_for() -> None:
    emulator = Emulator(40, 10)
    for switch, taken in ((b"h", True), (b"l", False)):
        emulator.feed(b"\x1b[?%d%b" % (PASTE, switch))
        assert emulator.takes_paste is taken
