"""What `wrapper.clean` lets through. The tables are by kind of attack: a new one is one line."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wrapper import clean
from wrapper.clean import (
    MAX_MARKS,
    boundary,
    clean_line,
    clean_text,
    cut_at_bytes,
    decode_output,
    last_token_cut,
)

TOKEN = "__FINE_RISPOSTA__"
MEGABYTE = 1024 * 1024

ESCAPES = {
    "colour": ("\x1b[31mred\x1b[0m", "red"),
    "colour with sub-parameters": ("\x1b[38:2::1:2:3mred", "red"),
    "private mode": ("\x1b[?1049hhidden\x1b[?1049l", "hidden"),
    "intermediate byte": ("a\x1b[1 qb", "ab"),
    "cursor movement": ("one\x1b[2Atwo", "onetwo"),
    "bracketed paste end": ("x\x1b[201~y", "xy"),
    "8-bit CSI": ("a\x9b31mb", "ab"),
    "CSI cut short by a line": ("a\x1b[3\nb", "a\nb"),
    "CSI cut short by another": ("a\x1b[3\x1b[1mb", "ab"),
    "CSI at the end": ("a\x1b[38;5", "a"),
    "window title, BEL": ("\x1b]0;title\x07text", "text"),
    "window title, ST": ("\x1b]0;title\x1b\\text", "text"),
    "window title, 8-bit ST": ("\x1b]0;title\x9ctext", "text"),
    "window title, 8-bit OSC": ("\x9d0;title\x9ctext", "text"),
    "window title, cancelled": ("\x1b]0;title\x18text", "text"),
    "hyperlink": ("\x1b]8;;https://x.example\x1b\\here\x1b]8;;\x1b\\", "here"),
    "clipboard": ("\x1b]52;c;cm0gLXJmIC8=\x07text", "text"),
    "OSC at the end": ("text\x1b]0;ti", "text"),
    "OSC never ended takes its line only": ("one \x1b]0;title\ntwo", "one\ntwo"),
    "OSC never ended, U+2028": ("\x1b]0;title\u2028two", "two"),
    "OSC cut short by another sequence": ("\x1b]0;title\x1b[1mtext", "text"),
    "DCS over two lines": ("a\x1bPq#0\n#1\x1b\\b", "ab"),
    "8-bit DCS": ("a\x90q#0\x9cb", "ab"),
    "APC": ("a\x1b_Gf=100;AAAA\x1b\\b", "ab"),
    "8-bit APC": ("a\x9fG\x9cb", "ab"),
    "PM": ("a\x1b^secret\x1b\\b", "ab"),
    "SOS": ("a\x1bXsecret\x1b\\b", "ab"),
    "8-bit SOS and PM": ("a\x98x\x9cb\x9ey\x9cc", "abc"),
    "character set": ("\x1b(Btext", "text"),
    "reset": ("a\x1bcb", "ab"),
    "lone ESC": ("a\x1b\u00e9b", "a\u00e9b"),
    "ESC at the end": ("text\x1b", "text"),
    "ESC inside a sequence": ("a\x1b\x1b[31mb", "ab"),
    "sequence made by taking another away": ("\x1b\x1b[0m[31mtext", "[31mtext"),
    "what looks like one and has no ESC": ("[31mtext", "[31mtext"),
}

CONTROLS = {
    "NUL": ("a\0b", "ab"),
    "BEL": ("a\x07b", "ab"),
    "DEL": ("a\x7fb", "ab"),
    "C1": ("a\x80b\x99c", "abc"),
    "tab stays": ("a\tb", "a\tb"),
    "CR LF": ("a\r\nb", "a\nb"),
    "CR CR LF of a terminal": ("a\r\r\nb", "a\nb"),
    "bare CR": ("safe\rrm -rf", "safe\nrm -rf"),
    "VT and FF": ("a\vb\fc", "a\nb\nc"),
    "NEL, LS, PS": ("a\x85b\u2028c\u2029d", "a\nb\nc\nd"),
    "file and record separators": ("a\x1cb\x1ec", "abc"),
    "overstruck letter": ("a\ba", "a"),
    "spinner": ("|\b/\b-\b \bdone", "done"),
    "backspace with nothing before it": ("\ba", "a"),
    "backspace stays on its line": ("a\n\b\bb", "a\nb"),
    "backspace takes the marks along": ("xe\u0301\b", "x"),
    "backspace does not spend itself on something invisible": ("ax\u200b\b", "a"),
}

INVISIBLE = {
    "bidi override": ("a\u202eb\u202c", "ab"),
    "bidi isolate": ("a\u2067b\u2069", "ab"),
    "direction marks": ("a\u200e\u200f\u061cb", "ab"),
    "zero width": ("a\u200b\u2060\ufeffb", "ab"),
    "invisible operators": ("a\u2061\u2062\u2063\u2064b", "ab"),
    "deprecated format": ("a\u206a\u206fb", "ab"),
    "tags": ("a\U000e0041\U000e007fb", "ab"),
    "Hangul fillers": ("a\u115f\u1160\u3164\uffa0b", "ab"),
    "Mongolian vowel separator": ("a\u180eb", "ab"),
    "grapheme joiner": ("a\u034fb", "ab"),
    "soft hyphen": ("a\u00adb", "ab"),
    "interlinear annotation": ("a\ufff9b\ufffac\ufffb", "abc"),
    "Khmer inherent vowels": ("a\u17b4\u17b5b", "ab"),
    "musical format": ("a\U0001d173b", "ab"),
    "noncharacters": ("a\ufdd0\uffff\U0010fffeb", "ab"),
    "selectors as a channel": ("a\U000e0100\U000e01ef\ufe00\ufe0db", "ab"),
    "emoji selector after a letter": ("a\ufe0fb", "ab"),
    "emoji selector after an ASCII sign": ("a<\ufe0fb", "a<b"),
    "emoji selector at the start": ("\ufe0fa", "a"),
    "emoji selectors in a row": ("\u2764\ufe0f\ufe0e\ufe0f", "\u2764\ufe0f"),
    "emoji selector after a digit that is no keycap": ("1\ufe0f", "1"),
    "joiners in a row": ("\u0645\u200c\u200d\u200c\u0645", "\u0645\u200c\u0645"),
    "joiner between words": ("a\u200d b\u200c", "a b"),
    "joiner between letter and emoji": ("a\u200d\u2764", "a\u2764"),
    "joiner between emoji and letter": ("\u2764\u200da", "\u2764a"),
    "joiner after the last emoji": ("\u2764\u200d", "\u2764"),
    "joiner after a mark without a letter": ("\u0301\u200da", "\u0301a"),
    "non-joiner between emoji": ("\u2764\u200c\u2764", "\u2764\u2764"),
}

KEPT = {
    "accents, composed": ("e\u0301", "\u00e9"),
    "Persian": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "Devanagari half form": "\u0915\u094d\u200d\u0937",
    "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "skin tone": "\U0001f469\U0001f3fd\u200d\U0001f52c",
    "heart on fire": "\u2764\ufe0f\u200d\U0001f525",
    "text form": "\u2764\ufe0e",
    "double exclamation": "\u203c\ufe0f",
    "keycap": "1\ufe0f\u20e3",
    "flag": "\U0001f1ee\U0001f1f9",
    "Hebrew with points": "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd",
    "indented code": "a\n    b",
    "prompts and commands are text": "/quit\n!ls\n@file\n#memo\n$ ls",
}

LAYOUT = {
    "line ends": ("a \t\nb\u3000\n", "a\nb"),
    "blank lines at either end": ("\n \n\na\n\n", "a"),
    "two blank lines stay": ("a\n\n\nb", "a\n\n\nb"),
    "more do not": ("a\n\n\n \n\n\nb", "a\n\n\nb"),
    "nothing": ("\x1b[0m \r\n", ""),
}

SURROGATES = {
    "lone": ("a\ud83db", "a\ufffdb"),
    "pair": ("\ud83d\ude00", "\U0001f600"),
}


def cases(*tables: dict[str, tuple[str, str]]) -> list[object]:
    return [pytest.param(*case, id=name) for table in tables for name, case in table.items()]


@pytest.mark.parametrize(("printed", "meant"), cases(ESCAPES, CONTROLS, INVISIBLE, LAYOUT, SURROGATES))
def test_what_was_printed_is_reduced_to_what_was_meant(printed: str, meant: str) -> None:
    assert clean_text(printed) == meant
    assert clean_text(meant) == meant


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in KEPT.items()])
def test_what_languages_and_emoji_need_is_kept(case: str | tuple[str, str]) -> None:
    printed, meant = (case, case) if isinstance(case, str) else case
    assert clean_text(printed) == meant


# --- properties --------------------------------------------------------------------------------------

SPECIAL = (
    "\x1b\x9b\x9c\x9d\x90\x07\x18[]P_\\0;m~ \b\t\r\n\v\f\x85\u2028\0\x7f"
    "aZ1#/\u00e9\u0645\u0915\u094d\u093c\u0301\u0338\u0344\u0f73\u20e3=<\u2190\u2194\u2764\u2adc\U0001f525\U0001f3fd"
    "\u200b\u200c\u200d\ufe0e\ufe0f\ufeff\u202e\u2060\u3164\U000e0041\u1100\u1161\u11a8\u2000\u3000\ud83d\ude00"
)
anything = st.text(st.characters(), max_size=60)
hostile = st.text(st.sampled_from(SPECIAL), max_size=60)

NEVER = frozenset(
    [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"]
    + [chr(code) for code in (*range(0xD800, 0xE000), *range(0x202A, 0x202F), *range(0x2060, 0x2070))]
    + [chr(code) for code in range(0xE0000, 0xE1000)]
    + list(
        "\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028\u2029\u3164\ufeff\uffa0\ufff9\ufffa\ufffb"
    )
)


@given(hostile | anything)
@settings(max_examples=300)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    once = clean_text(text)
    assert clean_text(once) == once


@given(hostile | anything)
def test_nothing_forbidden_comes_out_whatever_goes_in(text: str) -> None:
    cleaned = clean_text(text)
    assert not NEVER.intersection(cleaned)
    assert unicodedata.is_normalized("NFC", cleaned)
    assert all(line == line.rstrip() for line in cleaned.split("\n"))
    assert "\n\n\n\n" not in cleaned
    assert cleaned == cleaned.strip("\n")
    assert cleaned.splitlines() == (cleaned.split("\n") if cleaned else [])


@given(hostile | anything, st.integers(0, 60))
def test_a_split_output_is_still_safe_when_its_parts_are_joined(text: str, at: int) -> None:
    joined = clean_text(text[:at]) + clean_text(text[at:])
    assert not NEVER.intersection(joined)


@given(st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=60))
def test_letters_digits_and_punctuation_of_every_script_stay(text: str) -> None:
    expected = unicodedata.normalize("NFC", text).rstrip()
    for filler in "\u115f\u1160\u3164\uffa0":
        expected = expected.replace(filler, "")
    assert clean_text(text) == unicodedata.normalize("NFC", expected).rstrip()


@given(st.binary(max_size=200))
def test_decoding_first_and_cleaning_then_is_cleaning(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    assert clean_text(decode_output(data)) == clean_text(text)


# --- work --------------------------------------------------------------------------------------------

FLOODS = {
    "ESC [": "\x1b[",
    "ESC ]": "\x1b]",
    "ESC": "\x1b",
    "8-bit OSC": "\x9d",
    "OSC and text": "\x9dab\n",
    "OSC ended wrongly": "\x1b]0;x\x1b",
    "parameters": "\x1b[" + ";" * 1000,
    "an OSC without an end": "\x1b]" + "a" * (MEGABYTE - 2),
    "lines in a DCS without an end": "\x90" + "a\n" * 500_000,
    "CR": "\r",
    "backspaces": "\b",
    "marks in the wrong order": "\u0315\u0300",
    "marks that decompose": "\u0f73",
    "marks and joiners": "a\u0315\u0300\u200d",
    "joiners": "\u200d",
    "selectors": "\ufe0f\u0301",
    "spaces": " ",
    "blank lines": "\n",
    "punctuation": "-",
}


@pytest.mark.parametrize("unit", FLOODS.values(), ids=FLOODS)
def test_a_megabyte_of_anything_is_cleaned_within_the_time_of_a_test(unit: str) -> None:
    """Quadratic work would take hours here; the suite's time limit is the bound."""
    text = unit * (MEGABYTE // len(unit))
    cleaned = clean_text(text)
    assert len(cleaned) <= len(text)
    assert "\x1b" not in cleaned


def test_a_tower_of_marks_is_brought_down_to_what_a_language_could_use() -> None:
    assert clean_text("a" + "\u0316" * 500 + "b") == "a" + "\u0316" * MAX_MARKS + "b"
    assert clean_text("-" * 100) == "-" * 100


# --- bytes, lines, cuts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param("caff\u00e8".encode(), "caff\u00e8", id="UTF-8"),
        pytest.param(b"\xef\xbb\xbf{}", "{}", id="BOM"),
        pytest.param(b"a\xffb\xe2\x82", "a\ufffdb\ufffd", id="not UTF-8, cut at the end"),
        pytest.param(b'\x1b]0;opencode\x07{"a":1}\n', '{"a":1}\n', id="title glued to JSON"),
        pytest.param(b'\x1b[?25l{"a":1}\x1b[0m', '{"a":1}', id="cursor around JSON"),
        pytest.param('{"a":"\u2028 \u009d"}'.encode(), '{"a":"\u2028 \u009d"}', id="what JSON may hold raw"),
    ],
)
def test_output_is_decoded_for_a_parser(data: bytes, text: str) -> None:
    assert decode_output(data) == text


@pytest.mark.parametrize(
    ("text", "limit", "line"),
    [
        ("  one\r\n\ttwo \u2028three ", 50, "one two three"),
        ("\x1b]0;x\x07sceptic", 50, "sceptic"),
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("abc def", 5, "abc…"),
        ("abcde\u0316\u0317", 6, "abcd…"),
        ("abcdef", 1, "…"),
        ("\n", 5, ""),
    ],
)
def test_a_label_becomes_one_bounded_line(text: str, limit: int, line: str) -> None:
    assert clean_line(text, limit) == line


@pytest.mark.parametrize(
    ("text", "at", "cut"),
    [
        ("abc", 2, 2),
        ("abc", 3, 3),
        ("abc", 99, 3),
        ("abc", 0, 0),
        ("ab\u0316\u0317c", 3, 1),
        ("ab\u0316\u0317c", 4, 4),
        ("a\U0001f468\u200d\U0001f469b", 2, 1),
        ("a\U0001f468\u200d\U0001f469b", 3, 1),
        ("a\u2764\ufe0fb", 2, 1),
        ("a\U0001f44d\U0001f3fdb", 2, 1),
        ("\u0316" * 10, 5, 5),
        ("\u0316" * 500, 400, 400),
    ],
)
def test_a_cut_falls_between_characters(text: str, at: int, cut: int) -> None:
    assert boundary(text, at) == cut


def test_a_text_at_its_limit_is_not_cut() -> None:
    text = "\U0001f600" * 25
    assert cut_at_bytes(text, 100) == text


def test_a_text_one_byte_over_its_limit_is_cut_and_says_so() -> None:
    text = "\U0001f600" * 25 + "a"
    cut = cut_at_bytes(text, 100)
    head, _, note = cut.rpartition("\n")
    assert len(cut.encode()) <= 100
    assert text.startswith(head)
    assert note == f"[cut here: {len(text.encode()) - len(head.encode())} more bytes are not shown]"


def test_a_limit_without_room_for_the_note_is_refused() -> None:
    with pytest.raises(ValueError, match="10 bytes"):
        cut_at_bytes("a" * 20, 10)


@given(anything.map(clean_text).map(lambda text: text * 20), st.integers(60, 300))
def test_a_cut_text_keeps_its_limit_begins_like_the_whole_and_is_clean(text: str, limit: int) -> None:
    cut = cut_at_bytes(text, limit)
    assert len(cut.encode()) <= limit
    if cut != text:
        assert text.startswith(cut.rpartition("\n")[0])


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("no token here", None),
        (f"answer\n{TOKEN}", "answer"),
        (f"answer {TOKEN} \n> ", "answer"),
        (f"he wrote {TOKEN} in the text\n{TOKEN}", f"he wrote {TOKEN} in the text"),
        (f"answer{TOKEN}\n{TOKEN} {TOKEN}\n", "answer"),
        (TOKEN, ""),
        (f" {TOKEN}{TOKEN}", ""),
        ("", None),
    ],
)
def test_the_last_token_ends_the_answer_and_one_inside_it_stays(text: str, before: str | None) -> None:
    assert last_token_cut(text, TOKEN) == before


def test_a_megabyte_of_tokens_is_an_empty_answer() -> None:
    assert last_token_cut(f"{TOKEN} " * (MEGABYTE // (len(TOKEN) + 1)), TOKEN) == ""


def test_an_empty_token_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        last_token_cut("answer", "")


PIECES = [
    "\x1b[31m",
    "\x1b]0;t\x07",
    "\x9b",
    "\r",
    "\v",
    "\u2028",
    "\u200d",
    "\ufe0f",
    "\u200b",
    "\u0301" * 40,
]
PIECES += [
    "\u0958",
    "\u2126",
    "\ud83d\ude00",
    "\ud800",
    "\b",
    "\n\n\n\n\n",
    "#\u20e3",
    "a",
    " ",
    "\n",
    "\u0627",
    "\u2764",
]


@given(st.lists(st.sampled_from(PIECES) | st.characters()).map("".join))
def test_a_step_that_is_left_out_would_have_changed_nothing(text: str) -> None:
    every = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    every = clean._LINE_BREAK.sub("\n", clean._SEQUENCE.sub("", every))
    every = clean._take_back(clean._NEVER_SHOWN.sub("", every))
    for step in (str, lambda every: clean._JUDGED.sub(clean._judge, every)):
        thinned = clean._CROWD.sub(clean._thin, step(every))
        every = clean._CROWD.sub(clean._thin, unicodedata.normalize("NFC", thinned))
    every = "\n".join(line.rstrip() for line in every.split("\n")).strip("\n")
    assert clean_text(text) == clean._BLANK_LINES.sub("\n\n\n", every)
