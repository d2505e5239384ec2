"""The text that a person is typing: the keys of a line editor on it, and how it lies on the screen. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from consilium.console import TAB_WIDTH, columns, printable
from consilium.messages import MAX_SPEECH_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_CHARS = 2 * MAX_SPEECH_BYTES
"""Longest text: more than any speech may hold."""

_LINE_BREAK = re.compile(r"\r\n?|[\v\f\x85\u2028\u2029]")
_NEVER_TYPED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_JOINERS = "\u200d\ufe0e\ufe0f"


def typed(text: str) -> str:
    """``text`` as it may stand in a draft: line breaks are newlines, tabs are spaces, controls are gone."""
    return _NEVER_TYPED.sub("", _LINE_BREAK.sub("\n", text).replace("\t", " " * TAB_WIDTH))


class Draft:
    """A text and a place in it, which no operation leaves inside a character."""

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self._cut = ""

    def insert(self, text: str) -> bool:
        """Put ``text`` where the cursor is; False if there is no room for all of it."""
        room = MAX_CHARS - len(self.text)
        clean = typed(text)
        fits = clean[:room]
        self.text = self.text[: self.at] + fits + self.text[self.at :]
        self.at += len(fits)
        return len(fits) == len(clean)

    def take(self) -> str:
        """The text; the draft is empty then."""
        text = self.text
        self.put("")
        return text

    def put(self, text: str) -> None:
        """Have ``text`` in place of what there is, with the cursor behind it."""
        self.text = text
        self.at = len(text)

    def press(self, key: str) -> bool:
        """Do what an editor does at ``key``; False if it does nothing there."""
        action = self.ACTIONS.get(key)
        if action is None:
            return False
        action(self)
        return True

    # --- moving --------------------------------------------------------------------------------------

    def _left(self) -> None:
        self.at = self._before(self.at)

    def _right(self) -> None:
        self.at = self._after(self.at)

    def _home(self) -> None:
        self.at = self.text.rfind("\n", 0, self.at) + 1

    def _end(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _word_left(self) -> None:
        while self.at and not self.text[self.at - 1].isalnum():
            self._left()
        while self.at and self.text[self.at - 1].isalnum():
            self._left()

    def _word_right(self) -> None:
        while self.at < len(self.text) and not self.text[self.at].isalnum():
            self._right()
        while self.at < len(self.text) and self.text[self.at].isalnum():
            self._right()

    def _up(self) -> None:
        start = self.text.rfind("\n", 0, self.at) + 1
        if start:
            above = self.text.rfind("\n", 0, start - 1) + 1
            self.at = self._whole(min(above + self.at - start, start - 1))

    def _down(self) -> None:
        start = self.text.rfind("\n", 0, self.at) + 1
        below = self.text.find("\n", self.at) + 1
        if below:
            end = self.text.find("\n", below)
            self.at = self._whole(min(below + self.at - start, len(self.text) if end < 0 else end))

    def _before(self, at: int) -> int:
        return self._whole(max(0, at - 1))

    def _after(self, at: int) -> int:
        at = min(len(self.text), at + 1)
        while at < len(self.text) and self._belongs(at):
            at += 1
        return at

    def _whole(self, at: int) -> int:
        while 0 < at < len(self.text) and self._belongs(at):
            at -= 1
        return at

    def _belongs(self, at: int) -> bool:
        """Whether what stands at ``at`` is one character with what stands before it."""
        char = self.text[at]
        if char == "\n" or self.text[at - 1] == "\n":
            return False
        return char in _JOINERS or self.text[at - 1] == "\u200d" or columns(char) == 0

    # --- taking away ---------------------------------------------------------------------------------

    def _backspace(self) -> None:
        self._remove(self._before(self.at), self.at)

    def _delete(self) -> None:
        self._remove(self.at, self._after(self.at))

    def _cut_word(self) -> None:
        end = self.at
        while self.at and self.text[self.at - 1].isspace():
            self._left()
        while self.at and not self.text[self.at - 1].isspace():
            self._left()
        self._cut_out(self.at, end)

    def _cut_to_start(self) -> None:
        start = self.text.rfind("\n", 0, self.at) + 1
        self._cut_out(start if start < self.at else self._before(self.at), self.at)

    def _cut_to_end(self) -> None:
        end = self.text.find("\n", self.at)
        self._cut_out(self.at, len(self.text) if end < 0 else max(end, self.at + 1))

    def _paste_cut(self) -> None:
        self.insert(self._cut)

    def _cut_out(self, start: int, end: int) -> None:
        if start < end:
            self._cut = self.text[start:end]
        self._remove(start, end)

    def _remove(self, start: int, end: int) -> None:
        self.text = self.text[:start] + self.text[end:]
        self.at = start

    # --- the keys ------------------------------------------------------------------------------------

    ACTIONS: ClassVar[Mapping[str, Callable[[Draft], None]]] = {
        "left": _left,
        "right": _right,
        "ctrl+f": _right,
        "home": _home,
        "end": _end,
        "ctrl+e": _end,
        "up": _up,
        "ctrl+p": _up,
        "down": _down,
        "ctrl+n": _down,
        "ctrl+left": _word_left,
        "alt+left": _word_left,
        "alt+b": _word_left,
        "ctrl+right": _word_right,
        "alt+right": _word_right,
        "alt+f": _word_right,
        "backspace": _backspace,
        "delete": _delete,
        "ctrl+d": _delete,
        "ctrl+w": _cut_word,
        "alt+backspace": _cut_word,
        "ctrl+u": _cut_to_start,
        "ctrl+k": _cut_to_end,
        "ctrl+y": _paste_cut,
    }
    """The keys of common line editors, which give way to the commands of the preset."""


@dataclass(frozen=True, slots=True)
class Lying:
    """How a draft lies on the screen: its rows, none as wide as the terminal, and where the cursor is."""

    rows: tuple[str, ...]
    row: int
    column: int

    def height(self, width: int) -> int:
        """How many rows of a terminal of ``width`` columns it takes, after that was made narrower."""
        return sum(self._lines(row, width) for row in self.rows)

    def above(self, width: int) -> int:
        """How many of them are above the cursor's."""
        whole = sum(self._lines(row, width) for row in self.rows[: self.row])
        return whole + self.column // max(1, width)

    @staticmethod
    def _lines(row: str, width: int) -> int:
        return max(1, -(-columns(row) // max(1, width)))


@lru_cache(maxsize=4096)
def _shown(char: str) -> tuple[str, int]:
    shown = printable(char)
    return shown, columns(shown)


def lay(prompt: str, text: str, at: int, width: int, height: int) -> Lying:
    """Lay ``prompt`` and ``text`` out for a terminal; of a text that is too high, the part with the cursor.

    ``at`` is the cursor's place in ``text``. The last column stays free, where terminals differ.
    """
    room = max(2, width - 1)
    rows, used = [prompt], columns(prompt)
    where = (0, used)
    indent = " " * min(used, room // 2)
    for place, char in enumerate(text):
        if char == "\n":
            if place == at:
                where = len(rows) - 1, used
            rows.append(indent)
            used = len(indent)
            continue
        shown, wide = (char, 1) if " " <= char <= "~" else _shown(char)
        if used + wide > room:
            rows.append("")
            used = 0
        if place == at:
            where = len(rows) - 1, used
        rows[-1] += shown
        used += wide
    if at >= len(text):
        where = len(rows) - 1, used
    row, column = where
    first = max(0, min(row - height // 2, len(rows) - height)) if len(rows) > height else 0
    return Lying(tuple(rows[first : first + height]), row - first, column)
