"""A terminal without a window: what a client draws, as the lines that a person would read. Pure.

`pyte` keeps the screen: cursor, scrolling, erasing. It gets only controls that it understands, since it draws
parts of others as text, or fails on them; colours are left out, nobody looks. What it lacks is here: lines
that scrolled away, the alternate screen, scrolling by command, repetition, characters without a width.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import pyte
from pyte.screens import StaticDefaultDict
from pyte.streams import Stream
from wcwidth import wcwidth

from wrapper.terminal import queries
from wrapper.terminal.stream import Control, Splitter

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS, ROWS = 2000, 200
"""So wide that a paragraph of an answer seldom wraps, and so high that the whole of one is seen where a
client draws a screen of its own. Claude Code and Codex draw it in the time that they need for 80 by 24."""

MAX_PAST = 20_000
"""Lines kept of what scrolled away."""

_MAX_SAVED = 32

_MAX_CELL = 32
"""Characters in one place of the screen: a letter, and what joins it. Beyond, they are left out: each takes
the longer, the more there are."""

_PRIVATE_MODES = frozenset({6, 7, 25})
"""Origin, wrapping and the cursor's visibility: what `pyte` does right, and draws on."""

_ALTERNATE = frozenset({47, 1047, 1049})

_ESCAPES: Mapping[str, str] = Stream.escape
_BASIC: Mapping[str, str] = {
    name: event for name, event in Stream.basic.items() if event not in ("shift_in", "shift_out", "bell")
}
_NOT_FORWARDED = ("set_mode", "reset_mode", "report", "select_graphic_rendition", "erase_in_display")
_SEQUENCES: Mapping[str, str] = {
    name: event for name, event in Stream.csi.items() if not event.startswith(_NOT_FORWARDED)
}


class _Screen(pyte.Screen):
    """A screen that keeps what scrolls out at its top, as text."""

    def __init__(self, columns: int, lines: int) -> None:
        self.past: deque[str] = deque(maxlen=MAX_PAST)
        self.alternate = False
        super().__init__(columns, lines)

    def index(self) -> None:
        """Move down; at the bottom, scroll."""
        if self.cursor.y == self._region()[1]:
            self._keep_top()
        super().index()

    def scroll(self, lines: int) -> None:
        """Scroll the region up, or down by a negative number."""
        top, bottom = self._region()
        y, x = self.cursor.y, self.cursor.x
        self.cursor.y = top
        for _ in range(min(abs(lines), bottom - top + 1)):
            if lines > 0:
                self._keep_top()
                self.delete_lines(1)
            else:
                self.insert_lines(1)
        self.cursor.y, self.cursor.x = y, x

    def draw(self, data: str) -> None:
        """Draw ``data``; what has no width of its own joins the character before it."""
        if data.isascii():
            super().draw(data)
            return
        run = ""
        for char in data:
            if wcwidth(char) > 0:
                run += char
                continue
            super().draw(run)
            run = ""
            self._join(char)
        super().draw(run)

    def cursor_to_line(self, line: int | None = None) -> None:
        """Move to ``line``; without margins, lines count from the top of the screen in every mode."""
        if self.margins is not None:
            super().cursor_to_line(line)
            return
        self.cursor.y = min(max(line or 1, 1), self.lines) - 1

    def save_cursor(self) -> None:
        """Save; a client that only ever saves does not fill our memory."""
        del self.savepoints[:-_MAX_SAVED]
        super().save_cursor()

    def text(self, y: int) -> str:
        """The line ``y`` as text."""
        cells = self.buffer[y]
        return "".join(cells[x].data for x in range(max(cells, default=-1) + 1)).rstrip()

    def _join(self, char: str) -> None:
        if wcwidth(char) < 0 or not self.cursor.x:
            return
        cells = self.buffer[self.cursor.y]
        x = self.cursor.x - 1
        if cells[x].data == "" and x:  # the second half of a wide one
            x -= 1
        if len(cells[x].data) < _MAX_CELL:
            cells[x] = cells[x]._replace(data=unicodedata.normalize("NFC", cells[x].data + char))
            self.dirty.add(self.cursor.y)

    def _region(self) -> tuple[int, int]:
        return (0, self.lines - 1) if self.margins is None else (self.margins.top, self.margins.bottom)

    def _keep_top(self) -> None:
        if self._region()[0] == 0 and not self.alternate:
            self.past.append(self.text(0))


class Emulator:
    """One client's terminal."""

    def __init__(self, columns: int = COLUMNS, rows: int = ROWS) -> None:
        self._screen = _Screen(columns, rows)
        self._shown = [""] * rows
        self._splitter = Splitter()
        self._modes = {queries.WRAP, queries.CURSOR}
        self._last = ""
        self._main: tuple[Any, int, int] | None = None

    @property
    def takes_paste(self) -> bool:
        """Whether the client asked for pastes to be marked as such."""
        return queries.PASTE in self._modes

    @property
    def columns(self) -> int:
        """How wide it is."""
        return self._screen.columns

    def feed(self, data: bytes) -> bytes:
        """Show ``data``, and return what the terminal answers to it."""
        replies = ""
        for piece in self._splitter.feed(data):
            if isinstance(piece, str):
                self._screen.draw(piece)
                self._last = piece[-1]
            else:
                replies += queries.answer(piece, self._place())
                self._obey(piece)
        return replies.encode()

    def lines(self) -> list[str]:
        """Everything that can be read, oldest first: what scrolled away, then the screen."""
        for y in self._screen.dirty:
            self._shown[y] = self._screen.text(y)
        self._screen.dirty.clear()
        return list(self._shown) if self._screen.alternate else [*self._screen.past, *self._shown]

    def forget(self) -> None:
        """Forget what scrolled away."""
        self._screen.past.clear()

    def _place(self) -> queries.Place:
        screen = self._screen
        column = min(screen.cursor.x + 1, screen.columns)
        return queries.Place(
            screen.cursor.y + 1, column, screen.lines, screen.columns, frozenset(self._modes)
        )

    def _obey(self, control: Control) -> None:
        match control.kind:
            case "control" if control.name in _BASIC:
                getattr(self._screen, _BASIC[control.name])()
            case "escape" if control.name in _ESCAPES:
                getattr(self._screen, _ESCAPES[control.name])()
            case "csi":
                self._sequence(control.name, control.parameters)
            case _:
                pass

    def _sequence(self, name: str, parameters: tuple[int | None, ...]) -> None:
        first = parameters[0] or 0
        match name:
            case "?h" | "?l":
                self._switch({mode for mode in parameters if mode is not None}, on=name == "?h")
            case "J" | "?J" if first == 3:
                self._screen.past.clear()
            case "J" | "?J" if first < 3:
                self._screen.erase_in_display(first)
            case "K" | "?K" if first < 3:
                self._screen.erase_in_line(first)
            case "J" | "?J" | "K" | "?K":  # what nobody knows erases nothing
                pass
            case "S" | "T":
                self._screen.scroll(max(first, 1) if name == "S" else -max(first, 1))
            case "b":
                self._screen.draw(self._last * min(max(first, 1), self.columns))
            case "H" | "f" | "r":
                event = "set_margins" if name == "r" else "cursor_position"
                getattr(self._screen, event)(*parameters[:2])
            case _ if name in _SEQUENCES:
                getattr(self._screen, _SEQUENCES[name])(*(one for one in parameters[:1] if one is not None))
            case _:
                pass

    def _switch(self, modes: set[int], *, on: bool) -> None:
        if on:
            self._modes |= modes
            self._screen.set_mode(*modes & _PRIVATE_MODES, private=True)
        else:
            self._modes -= modes
            self._screen.reset_mode(*modes & _PRIVATE_MODES, private=True)
        if modes & _ALTERNATE and on != self._screen.alternate:
            self._change_screen()

    def _change_screen(self) -> None:
        screen = self._screen
        screen.alternate = not screen.alternate
        if screen.alternate:
            self._main = (screen.buffer, screen.cursor.y, screen.cursor.x)
            blank = screen.default_char
            screen.buffer = defaultdict(lambda: StaticDefaultDict(blank))
        else:
            assert self._main is not None
            screen.buffer, screen.cursor.y, screen.cursor.x = self._main
            self._main = None
        screen.dirty.update(range(screen.lines))
