"""`wrapper.terminal.reading`: which part of a screen is the answer."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wrapper.prompts import END_TOKEN
from wrapper.terminal.reading import Shown, Signs, foot, is_ready, look

SIGNS = Signs(
    ready=re.compile(r"^─{5,}\n> .*\n─{5,}$", re.MULTILINE),
    asked=re.compile("> "),
    said=re.compile("● "),
    working=re.compile("esc to interrupt"),
    done=re.compile("^done after"),
    aside=(re.compile("^  ! "),),
)
PROMPT = ["─────", "> ", "─────", f"  status {END_TOKEN}"]
MARK = "(turn 12ab)"


def seen(*lines: str, columns: int = 60, signs: Signs = SIGNS) -> Shown:
    return look([*lines, "", *PROMPT], signs, MARK, columns)


def answer(*lines: str, columns: int = 60) -> str | None:
    return seen(f"> {MARK}", *lines, columns=columns).answer


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["● Yes.", f"  {END_TOKEN}"], "Yes."),
        (["● Yes.", "  FINE_RISPOSTA"], "Yes."),
        (["● Yes. _FINE_RISPOSTA_"], "Yes."),
        (["● One.", "", "  Two.", "", "    indented", "", f"  {END_TOKEN}"], "One.\n\nTwo.\n\n  indented"),
        (
            [f"● The {END_TOKEN} ends.", "  More.", f"  {END_TOKEN}", f"  {END_TOKEN}"],
            f"The {END_TOKEN} ends.\nMore.",
        ),
        ([f"● {END_TOKEN}"], ""),
        (["● I look.", "● Tool(x)", "  ! refused", f"● Yes. {END_TOKEN}"], "Yes."),
        ([f"● Yes. {END_TOKEN}", "● Tool(x)"], "Yes."),
        ([f"● It ends with {END_TOKEN}.", "● Tool(x)", f"● Yes. {END_TOKEN}"], "Yes."),
        (["● Yes.", "done after 3 s", f"  {END_TOKEN}"], None),
        (["● Yes."], None),
        ([f"  of the echo: {END_TOKEN}", "  ● quoted", "● No token."], None),
        ([f"a line of its own {END_TOKEN}"], None),
        ([f"  ! aside {END_TOKEN}"], None),
    ],
)
def test_the_answer_is_what_the_client_said_before_the_last_token(lines: list[str], text: str | None) -> None:
    assert answer(*lines) == text


def test_an_earlier_turn_is_not_this_one() -> None:
    earlier = ["> (turn 9999)", f"● Old. {END_TOKEN}", "done after 3 s"]
    assert seen(*earlier) == Shown(False, False, False, (), (), None)
    assert seen(*earlier, f"> {MARK}").blocks == ()
    again = [f"> {MARK}", f"● Half {END_TOKEN}", *earlier, f"> {MARK}", f"● Drawn again. {END_TOKEN}"]
    assert seen(*again).blocks == (f"Drawn again. {END_TOKEN}",)


def test_nobody_else_can_name_the_turn() -> None:
    spoofed = [f"> {MARK}", "  > (turn 12ab)", f"  ● not mine {END_TOKEN}", "● Mine."]
    assert seen(*spoofed).blocks == ("Mine.",)


def test_what_the_client_does_besides_is_told_apart() -> None:
    shown = seen(f"> {MARK}", "● Yes.", "  ! 529", "✻ Thinking (esc to interrupt)", "  not mine")
    assert shown == Shown(True, True, False, ("Yes.",), ("  ! 529",), None)
    assert seen(f"> {MARK}", "● Yes.", "done after 3 s").done
    assert not seen(f"> {MARK}", "done after 3 s").done, "of an earlier turn, drawn late"


def test_a_client_that_tells_less_is_read_as_well() -> None:
    plain = Signs(SIGNS.ready, SIGNS.asked, SIGNS.said)
    shown = seen(f"> {MARK}", f"● Yes. {END_TOKEN}", "esc to interrupt", signs=plain)
    assert shown == Shown(True, False, False, (f"Yes. {END_TOKEN}",), (), "Yes.")


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (
            ["● a sentence that goes on and on to the edge", "  of it"],
            "a sentence that goes on and on to the edge of it",
        ),
        (["● a sentence that ends early", "  and another"], "a sentence that ends early\nand another"),
        (
            ["● - an item that goes on and on to the very", "    edge"],
            "- an item that goes on and on to the very edge",
        ),
        (
            ["● x", "    an indented line that goes on to the edge", "  back"],
            "x\n  an indented line that goes on to the edge\nback",
        ),
        (["● " + "x" * 46, "  xxx"], "x" * 49),
        (["● " + "東京" * 11, "  東京"], "東京" * 12),
        (
            ["● a sentence that goes on and on to the edge", "", "  a"],
            "a sentence that goes on and on to the edge\n\na",
        ),
    ],
)
def test_lines_that_the_client_wrapped_are_joined(lines: list[str], text: str) -> None:
    assert answer(*lines, f"  {END_TOKEN}", columns=50) == text


@given(
    st.lists(
        st.lists(st.text("abcdefgh", min_size=1, max_size=9), min_size=1, max_size=40).map(" ".join),
        max_size=5,
    ),
    st.integers(40, 120),
)
def test_a_paragraph_survives_being_wrapped(paragraphs: list[str], columns: int) -> None:
    drawn: list[str] = []
    for paragraph in [*paragraphs, END_TOKEN]:
        line = ""
        for word in paragraph.split():
            if line and len(line) + 1 + len(word) > columns - 4:
                drawn.append(line)
                line = ""
            line = f"{line} {word}".strip()
        drawn += [line, ""]
    lines = [f"● {drawn[0]}", *(f"  {line}".rstrip() for line in drawn[1:])]
    assert answer(*lines, columns=columns) == "\n\n".join(paragraphs)


def test_a_prompt_is_looked_for_at_the_foot_alone() -> None:
    assert is_ready(PROMPT, SIGNS)
    assert not is_ready([*PROMPT, *["line"] * 40], SIGNS)
    assert not is_ready([f"  {line}" for line in PROMPT], SIGNS), "somebody's text is indented"
    assert foot(["a", "", "b"]) == ["a", "b"]


def test_a_long_line_of_underscores_takes_no_more_time_than_another() -> None:
    began = time.monotonic()
    assert answer(f"● {'_' * 100_000}x", f"  {END_TOKEN}", columns=200_000) is not None
    assert time.monotonic() - began < 3
