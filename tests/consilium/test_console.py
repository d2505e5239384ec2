"""No text commands the terminal, and what is taken out of it leaves a trace that can be seen."""

from __future__ import annotations

import io
import json
import re
import unicodedata

import pytest
import transcripts
from hypothesis import example, given, settings
from hypothesis import strategies as st

from consilium.console import Console, Style, columns, json_text, printable, wants_colour, wrap

ANY = st.text(max_size=120)
WRAPPED = st.text(st.sampled_from("ab é漢😀\u0301\n  <"), max_size=120)
SGR = re.compile(r"\x1b\[[0-9]+m")


def dangerous(char: str) -> bool:
    """What must never reach a terminal: C0 but the newline, DEL, C1, format characters, line separators."""
    if char == "\n":
        return False
    return (
        unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} or char in "\u034f\u115f\u3164\U000e0100"
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# --- cleaning ----------------------------------------------------------------------------------------


@given(text=ANY)
@example(text=transcripts.HOSTILE)
@example(text="".join(map(chr, range(0x300))))
@settings(max_examples=200)
def test_nothing_that_commands_a_terminal_is_left(text: str) -> None:
    assert not any(map(dangerous, printable(text)))


@given(text=ANY)
def test_cleaning_what_is_clean_changes_nothing(text: str) -> None:
    assert printable(printable(text)) == printable(text)


def test_every_character_below_256_is_either_itself_or_seen() -> None:
    for code in range(0x100):
        shown = printable(chr(code))
        assert shown.strip("\n \u00a0") or chr(code) in "\t\n \u00a0"
        assert not any(map(dangerous, shown))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x07", "␛[2J␇"),
        ("\x7f", "␡"),
        ("over\rwritten", "over␍written"),
        ("two\r\nlines", "two\nlines"),
        ("a\tb\n\tc", "a   b\n    c"),
        ("\x9b31m", "<U+009B>31m"),
        ("\u202eevil", "<U+202E>evil"),
        ("zero\u200bwidth\u2060\ufeff", "zero<U+200B>width<U+2060><U+FEFF>"),
        ("\U000e0041tag", "<U+E0041>tag"),
        ("\u2028\u2029\x85", "<U+2028><U+2029><U+0085>"),
        ("\udc80", "<U+DC80>"),
        ("\u3164\u034f\U000e0101", "<U+3164><U+034F><U+E0101>"),
        ("naïve 漢字 😀 \u00a0❤\ufe0f e\u0301", "naïve 漢字 😀 \u00a0❤\ufe0f e\u0301"),
    ],
)
def test_what_is_taken_out_is_shown_and_what_is_harmless_stays(text: str, shown: str) -> None:
    assert printable(text) == shown


# --- wrapping ----------------------------------------------------------------------------------------


@given(text=WRAPPED, width=st.integers(2, 30))
@settings(max_examples=200)
def test_no_line_is_wider_than_it_may_be_and_no_letter_is_lost(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(columns(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_words_are_kept_whole_and_indentation_is_repeated() -> None:
    assert wrap("one two three\n\n  - four five six", 10) == [
        "one two",
        "three",
        "",
        "  - four",
        "  five six",
    ]


def test_a_word_wider_than_the_line_is_cut() -> None:
    assert wrap("go abcdefghij k", 4) == ["go", "abcd", "efgh", "ij k"]
    assert wrap("漢字漢字漢", 5) == ["漢字", "漢字", "漢"]


def test_a_wide_character_on_a_line_of_one_column_is_not_waited_for() -> None:
    assert wrap("漢字", 1) == ["漢", "字"]


def test_columns_counts_wide_and_combining_characters_as_a_terminal_does() -> None:
    assert columns("abc") == 3
    assert columns("漢😀") == 4
    assert columns("e\u0301") == 1


# --- the console -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "no_color", "wanted"),
    [
        ({}, False, True),
        ({"NO_COLOR": ""}, False, True),
        ({"NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({}, True, False),
    ],
)
def test_colour_can_be_declined_in_each_of_the_usual_ways(
    environ: dict[str, str], no_color: bool, wanted: bool
) -> None:
    assert wants_colour(Terminal(), environ, no_color=no_color) is wanted
    assert wants_colour(io.StringIO(), environ, no_color=no_color) is False


def written(console: Console, stream: io.StringIO, *parts: str | tuple[str, Style]) -> str:
    console.line(*parts)
    return stream.getvalue()


def test_a_line_is_coloured_by_its_parts_and_reset_after_each() -> None:
    stream = Terminal()
    console = Console.on(stream, {})
    assert (
        written(console, stream, ("who", Style.BOLD), " says ", ("", Style.RED))
        == "\x1b[1mwho\x1b[0m says \n"
    )


def test_without_colour_a_line_is_only_its_text() -> None:
    stream = io.StringIO()
    assert written(Console.on(stream, {}), stream, ("who", Style.BOLD), " says") == "who says\n"


@given(text=ANY, style=st.sampled_from([None, *Style]))
def test_a_console_writes_one_clean_line_whatever_a_part_holds(text: str, style: Style | None) -> None:
    stream = Terminal()
    output = written(Console(stream, colour=True), stream, text if style is None else (text, style))
    assert output.count("\n") == 1
    assert not any(map(dangerous, SGR.sub("", output)))


def test_text_is_wrapped_to_the_width_and_indented() -> None:
    stream = io.StringIO()
    Console(stream, width=20).text("one two three four five\n  six", indent="| ", style=Style.DIM)
    assert stream.getvalue() == "| one two three four\n| five\n|   six\n"


def test_the_first_line_of_a_text_can_begin_otherwise() -> None:
    stream = io.StringIO()
    Console(stream, width=20).text("one two three four five\nsix", first="· ", indent="  ")
    assert stream.getvalue() == "· one two three four\n  five\n  six\n"


@given(text=ANY)
@example(text=transcripts.HOSTILE)
def test_json_for_a_terminal_holds_nothing_but_printable_ascii_and_reads_back(text: str) -> None:
    written_out = json_text({"text": text})
    assert all(" " <= char <= "~" or char == "\n" for char in written_out)
    assert json.loads(written_out) == {"text": text}


def test_a_very_wide_or_narrow_terminal_is_used_within_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns_of_terminal, used in (("400", 100), ("72", 72), ("3", 20)):
        monkeypatch.setenv("COLUMNS", columns_of_terminal)
        assert Console.on(io.StringIO(), {}).width == used
