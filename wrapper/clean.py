"""What a client printed, reduced to the text it meant (§5.5, §12, §14.5).

1. Nothing that leaves `clean_text` moves a cursor, writes a clipboard, changes the direction of reading
   or hides from a reader what a model still sees.
2. `clean_text` is idempotent, and its work grows with the length of the text, not with its square.
3. Clean a whole output, never its chunks: an escape sequence may be split between two of them.

Kept on purpose: newline and tab; U+FE0E and U+FE0F (text or emoji form) once, directly after a symbol or
inside a keycap; one U+200C or U+200D between two letters, and one U+200D between two symbols, where
Persian, Indic scripts and emoji need them. Every other variation selector goes: rare glyph variants of
Han and Mongolian text are the price.
"""

from __future__ import annotations

import re
import unicodedata
from io import StringIO

MAX_MARKS = 30
"""Combining marks kept on one character: Unicode's stream-safe limit (UAX #15). `unicodedata.normalize`
takes quadratic time on a longer run, and no language writes one."""

_ZWJ = "\u200d"
_SELECTORS = "\ufe0e\ufe0f"
_KEYCAP = "\u20e3"
_KEYCAP_BASES = frozenset("0123456789#*")
_SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")
_EMOJI_NOT_FILED_AS_SYMBOLS = frozenset("\u203c\u2049\u2139\u3030\u303d")
_LOOK_BACK = 64

# --- escape sequences (ECMA-48, and what terminals make of it) ---------------------------------------

# A string control (DCS, SOS, OSC, PM, APC) runs to its terminator. One that was never terminated, or that
# another control cut short, takes its own line with it and no more of the answer.
_PAYLOAD = r"[^\x07\x18\x1a\x1b\x80-\x9f]*+"
_PAYLOAD_OF_ONE_LINE = r"[^\x07\x18\x1a\x1b\x80-\x9f\n\r\v\f\u2028\u2029]*+"
_STRING = rf"(?:{_PAYLOAD}(?:\x1b\\|[\x07\x18\x1a\x9c])|{_PAYLOAD_OF_ONE_LINE})"
_CSI = r"[0-?]*+[ -/]*+[@-~]?"

_SEVEN_BIT = (
    rf"\x1b[\]PX^_]{_STRING}",
    rf"\x1b\[{_CSI}",
    r"\x1b[ -/]*+[0-~]?",  # every other sequence, and an ESC that begins none
)
_EIGHT_BIT = (
    rf"[\x90\x98\x9d-\x9f]{_STRING}",
    rf"\x9b{_CSI}",
)
_SEQUENCE_7BIT = re.compile("|".join(_SEVEN_BIT))
_SEQUENCE = re.compile("|".join(_SEVEN_BIT + _EIGHT_BIT))

# --- characters --------------------------------------------------------------------------------------

_SEQUENCE_STARTS = frozenset("\x1b\x90\x98\x9b\x9d\x9e\x9f")
_LINE_BREAK = re.compile(r"\r+\n?|[\v\f\x85\u2028\u2029]")
_LINE_BREAKS = frozenset("\r\v\f\x85\u2028\u2029")

# Unicode's default-ignorable code points, except those that the last lines of the pipeline judge by
# context, and the controls, annotation characters and noncharacters. U+0008 is judged by `_take_back`.
_NEVER_SHOWN = re.compile(
    "["
    r"\x00-\x07\x0e-\x1f\x7f-\x9f"  # C0 (breaks are \n by now), DEL, C1
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # soft hyphen, joiners and fillers
    r"\u061c\u200e\u200f\u202a-\u202e"  # bidirectional marks, embeddings and overrides
    r"\u180b-\u180f"  # Mongolian selectors and vowel separator
    r"\u200b\u2060-\u206f\ufeff"  # zero width, invisible operators, isolates, deprecated format
    r"\ufe00-\ufe0d"  # variation selectors other than the two judged below
    r"\ufff0-\ufffb"  # unassigned specials, interlinear annotation
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # shorthand and musical format controls
    r"\U000e0000-\U000e0fff"  # tags and the supplementary variation selectors
    r"\ufdd0-\ufdef"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(17))
    + "]"
)
_JUDGED = re.compile(r"[\u200c\u200d\ufe0e\ufe0f]+")
_JUDGED_ONES = frozenset("\u200c\u200d\ufe0e\ufe0f")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_CROWD = re.compile(rf"[^\w\s]{{{MAX_MARKS + 1},}}")
_BLANK_LINES = re.compile(r"\n{4,}")


def clean_text(text: str) -> str:
    r"""``text`` as a person would have read it, safe for a terminal, a log, a file or another client.

    Removes escape sequences and invisible characters, makes every kind of line break ``\n``, lets a
    backspace take back what stands before it, composes (NFC), trims line ends and blank lines at either
    end, and keeps at most two blank lines in a row. Refuses nothing; a lone surrogate becomes U+FFFD.
    """
    there = frozenset(text)
    if _SURROGATE.search("".join(there)):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        there = frozenset(text)
    # A step that finds nothing to do costs a megabyte as much time as one that does: each is taken only where
    # the characters are there that it is about. No step before brings in what a later one is about.
    if there & _SEQUENCE_STARTS:
        text = _SEQUENCE.sub("", text)
    if there & _LINE_BREAKS:
        text = _LINE_BREAK.sub("\n", text)
    if _NEVER_SHOWN.search("".join(there)):
        text = _NEVER_SHOWN.sub("", text)
    text = _compose(_take_back(text))
    if there & _JUDGED_ONES:
        text = _compose(_JUDGED.sub(_judge, text))
    text = "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")
    return _BLANK_LINES.sub("\n\n\n", text) if "\n\n\n\n" in text else text


def clean_line(text: str, limit: int) -> str:
    """``text`` cleaned, on one line, of at most ``limit`` characters (``limit`` >= 1; a cut ends in …)."""
    line = " ".join(clean_text(text).split())
    if len(line) <= limit:
        return line
    return line[: boundary(line, limit - 1)].rstrip() + "…"


def decode_output(data: bytes) -> str:
    """A client's output as text, ready to be parsed: UTF-8, what is not becomes U+FFFD, no BOM.

    Takes out the seven-bit escape sequences that clients print even into a pipe. It goes no further,
    because JSON may hold raw C1 controls and U+2028 that belong to it: clean the text that is found inside.
    """
    return _SEQUENCE_7BIT.sub("", data.decode("utf-8-sig", "replace"))


def boundary(text: str, at: int) -> int:
    """The last place at or before ``at`` where ``text`` may be cut without splitting a character.

    A character keeps its marks, selectors and skin tone; joined emoji stay joined. Looks back over at most
    64 code points, which cleaned text never needs except for a chain of joined characters.
    """
    if at >= len(text):
        return len(text)
    for index in range(at, max(at - _LOOK_BACK, 0), -1):
        if not _extends(text[index]) and text[index - 1] != _ZWJ:
            return index
    return at


def cut_at_bytes(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` bytes of UTF-8; a cut falls between characters and says what is missing.

    ``text`` is cleaned text. Raises `ValueError` if ``limit`` leaves no room for the note.
    """
    data = text.encode()
    if len(data) <= limit:
        return text
    room = limit - len(_cut_note(len(data)))
    if room < 0:
        raise ValueError(f"{limit} bytes leave no room to say that the text was cut")
    whole = len(data[:room].decode("utf-8", "ignore"))
    head = text[: boundary(text, whole)].rstrip()
    return head + _cut_note(len(data) - len(head.encode()))


def last_token_cut(text: str, token: str) -> str | None:
    """What stands before the last occurrence of ``token`` in cleaned ``text``; None without one (§12).

    Repetitions of the token at the end go with it. One in the middle is something quoted, and stays.
    Raises `ValueError` if ``token`` is empty.
    """
    if not token:
        raise ValueError("the end-of-response token is empty")
    end = text.rfind(token)
    if end < 0:
        return None
    while True:
        while end > 0 and text[end - 1].isspace():
            end -= 1
        if not text.endswith(token, 0, end):
            return text[:end]
        end -= len(token)


def _cut_note(missing: int) -> str:
    return f"\n[cut here: {missing} more bytes are not shown]"


def _take_back(text: str) -> str:
    """Carry out backspaces: each takes back one character of its line, with the marks on it."""
    if "\b" not in text:
        return text
    kept: list[str] = []
    for char in text:
        if char != "\b":
            kept.append(char)
            continue
        while kept and _is_mark(kept[-1]):
            kept.pop()
        if kept and kept[-1] != "\n":
            kept.pop()
    return "".join(kept)


def _compose(text: str) -> str:
    """NFC, with no more than `MAX_MARKS` on a character before (for its sake) and after it."""
    thinned = _thinned(text)
    composed = unicodedata.normalize("NFC", thinned)
    return composed if composed is thinned else _thinned(composed)


def _thinned(text: str) -> str:
    return _CROWD.sub(_thin, text) if any(map(_is_mark, frozenset(text))) else text


def _thin(match: re.Match[str]) -> str:
    kept = StringIO()  # of a list, each character would be an object of its own
    marks = 0
    for char in match[0]:
        marks = marks + 1 if _is_mark(char) else 0
        if marks <= MAX_MARKS:
            kept.write(char)
    return kept.getvalue()


def _judge(match: re.Match[str]) -> str:
    """What stays of a run of joiners and of the two selectors, judged by its neighbours."""
    text, start, end = match.string, match.start(), match.end()
    before = text[start - 1] if start else ""
    after = text[end] if end < len(text) else ""
    run = match[0]
    kept = ""
    if run[0] in _SELECTORS:
        if _is_symbol(before) or (before in _KEYCAP_BASES and after == _KEYCAP):
            kept = run[0]
        run = run[1:]
    if not run or run[0] in _SELECTORS:
        return kept
    if run[0] == _ZWJ and (_is_symbol(before) or _is_skin_tone(before)) and _is_symbol(after):
        return kept + _ZWJ
    return kept + run[0] if _is_letter(after) and _ends_in_letter(text, start) else kept


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "M"


def _is_letter(char: str) -> bool:
    return char != "" and unicodedata.category(char)[0] == "L"


def _is_symbol(char: str) -> bool:
    return char > "\x7f" and (
        unicodedata.category(char) in {"So", "Sm"} or char in _EMOJI_NOT_FILED_AS_SYMBOLS
    )


def _is_skin_tone(char: str) -> bool:
    return _SKIN_TONES[0] <= char <= _SKIN_TONES[1]


def _ends_in_letter(text: str, end: int) -> bool:
    """Whether ``text[:end]`` ends in a letter and its marks (an Indic joiner follows a mark)."""
    while end and _is_mark(text[end - 1]):
        end -= 1
    return end > 0 and _is_letter(text[end - 1])


def _extends(char: str) -> bool:
    return _is_mark(char) or char == _ZWJ or _is_skin_tone(char)
