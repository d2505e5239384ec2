"""Text on a person's terminal, without letting it command the terminal (§14.5, §5.6).

1. Everything that a `Console` writes goes through `printable`; the only escape sequences are its own.
2. What is taken out is shown in its place: a reader sees that something was there.
3. A line stays one line: text that holds line breaks cannot draw lines of its own between ours.
"""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

TAB_WIDTH = 4
MAX_WIDTH = 100
"""Longer lines are hard to read; a wider terminal is not filled."""
MIN_WIDTH = 20

_UNUSUAL = re.compile(r"[^\n -~]")
# Printable by their category, and yet nothing is seen of them: fillers, joiners, supplementary selectors.
_INVISIBLE = re.compile(r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\U000e0100-\U000e01ef]")


# What JSON may hold raw: DEL, C1, line separators, and what turns the direction of reading.
_RAW_IN_JSON = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]")
_PERHAPS_RAW = (b"\x7f", b"\xc2", b"\xd8")
_RAW_BEHIND_E2 = re.compile(rb"\xe2(?:\x80[\x8e\x8f\xa8-\xae]|\x81[\xa6-\xa9])")


class Style(StrEnum):
    """How a piece of a line looks; the value is the SGR parameter."""

    BOLD = "1"
    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    BLUE = "34"
    MAGENTA = "35"
    CYAN = "36"


Part = str | tuple[str, Style]


def printable(text: str) -> str:
    """``text`` with every control and format character replaced by something that can be seen.

    Line breaks stay (CR LF counts as one), tabs become spaces, C0 and DEL become their control pictures, and
    the rest (C1, bidirectional, zero-width, tags, surrogates, unassigned) ``<U+202E>``.
    """
    if "\t" in text or "\r\n" in text:
        text = text.replace("\r\n", "\n").expandtabs(TAB_WIDTH)
    return _UNUSUAL.sub(lambda match: _shown(match[0]), text)


@lru_cache(maxsize=4096)
def _shown(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if (char.isprintable() or unicodedata.category(char) == "Zs") and not _INVISIBLE.match(char):
        return char
    return f"<U+{code:04X}>"


def json_text(value: object) -> str:
    """``value`` as JSON that a terminal may be shown: ASCII only, nothing but printable characters."""
    return json.dumps(value, indent=2).replace("\x7f", "\\u007f")


def obeyed_by_none(line: bytes) -> bytes:
    """JSON that says what ``line`` says, with escapes for what a terminal would obey."""
    # Nearly every line holds nothing of the kind, and these looks at it are ten times as fast.
    if not _RAW_BEHIND_E2.search(line) and not any(byte in line for byte in _PERHAPS_RAW):
        return line
    return _RAW_IN_JSON.sub(lambda match: b"\\u%04x" % ord(match[0].decode()), line)


def columns(text: str) -> int:
    """How many columns of a terminal ``text`` takes: two for wide characters, none for combining ones."""
    return len(text) if text.isascii() else sum(map(_columns, text))


@lru_cache(maxsize=4096)
def _columns(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def wrap(text: str, width: int) -> list[str]:
    """Cut printable ``text`` into lines of at most ``width`` columns, between words where that is possible.

    Its own line breaks stay, and so does the indentation of each of its lines (a list, a piece of code).
    """
    return [line for paragraph in text.split("\n") for line in _wrap(paragraph, width)]


def _wrap(paragraph: str, width: int) -> list[str]:
    if columns(paragraph) <= width:
        return [paragraph.rstrip()]
    body = paragraph.lstrip(" ")
    indent = " " * min(len(paragraph) - len(body), max(0, width - 2) // 2)
    room = width - len(indent)
    lines: list[str] = []
    line = ""
    for word in filter(None, body.split(" ")):
        for piece in _pieces(word, room):
            longer = f"{line} {piece}" if line else piece
            if line and columns(longer) > room:
                lines.append(indent + line)
                longer = piece
            line = longer
    return [*lines, indent + line]


def _pieces(word: str, room: int) -> list[str]:
    """``word``, or, if it is wider than ``room``, what it is cut into: pieces of ``room`` columns."""
    pieces = [""]
    used = 0
    for char in word:
        wide = columns(char)
        if used + wide > room and used:
            pieces.append("")
            used = 0
        pieces[-1] += char
        used += wide
    return pieces


def duration(seconds: float) -> str:
    """A time for a person: ``12.5 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left} min" if hours else f"{minutes} min {rest} s"


def wants_colour(stream: TextIO, environ: Mapping[str, str], *, no_color: bool) -> bool:
    """Colour is for a terminal that can show it and a person who did not say no (https://no-color.org)."""
    if no_color or environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


class Console:
    """Writes lines for a person. ``width`` is in columns."""

    def __init__(self, stream: TextIO, *, colour: bool = False, width: int = 80) -> None:
        self.width = max(MIN_WIDTH, min(width, MAX_WIDTH))
        self._stream = stream
        self._colour = colour

    @classmethod
    def on(cls, stream: TextIO, environ: Mapping[str, str], *, no_color: bool = False) -> Self:
        """A console on ``stream``, as wide as the terminal, coloured if `wants_colour`."""
        width = shutil.get_terminal_size().columns
        return cls(stream, colour=wants_colour(stream, environ, no_color=no_color), width=width)

    def line(self, *parts: Part) -> None:
        """Write one line, made of ``parts``, each of them plain or with a style."""
        self._stream.write("".join(map(self._styled, parts)) + "\n")

    def text(
        self, text: str, *, first: str | None = None, indent: str = "", style: Style | None = None
    ) -> None:
        """Write ``text`` wrapped to the width, with its own line breaks.

        ``indent`` goes before each line; before the first line, ``first`` instead, which is as long.
        """
        before = indent if first is None else first
        for line in wrap(printable(text), self.width - len(indent)):
            self.line(before + line if style is None else (before + line, style))
            before = indent

    def _styled(self, part: Part) -> str:
        text, style = (part, None) if isinstance(part, str) else part
        text = printable(text).replace("\n", " ")
        if style is None or not self._colour or not text:
            return text
        return f"\x1b[{style}m{text}\x1b[0m"
