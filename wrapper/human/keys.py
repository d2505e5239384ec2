"""From the bytes of a terminal to what a person pressed, typed or pasted. Pure.

1. Every sequence that a terminal sends is taken whole: what is not known is a key without a name, not text.
2. What is pasted is text, whatever it holds: no key is pressed by it.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilium.messages import MAX_SPEECH_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

PASTE_CHARS = 2 * MAX_SPEECH_BYTES
"""What is kept of one paste: more than any speech may hold."""

ENTER = "enter"
ESCAPE = "escape"
UNKNOWN = "unknown"

_ESC = "\x1b"
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]*[@-~]|O[@-~]|[^\[O])", re.DOTALL)
_PERHAPS = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]*|O)?\Z")
_PLAIN = re.compile(r"[^\x00-\x1f\x7f-\x9f]+")

_PASTE, _PASTE_END = "\x1b[200~", "\x1b[201~"

_CONTROLS: Mapping[str, str] = {
    **{chr(code): f"ctrl+{chr(code + 0x60)}" for code in range(1, 27)},
    "\r": ENTER,
    "\x08": "backspace",
    "\x7f": "backspace",
    "\t": "tab",
}

_MOVES = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"}
_SEQUENCES: Mapping[str, str] = {
    **{f"{_ESC}{form}{letter}": name for letter, name in _MOVES.items() for form in ("[", "O")},
    **{f"{_ESC}[1;5{letter}": f"ctrl+{name}" for letter, name in _MOVES.items()},
    **{f"{_ESC}[1;3{letter}": f"alt+{name}" for letter, name in _MOVES.items()},
    **{f"{_ESC}[{number}~": "home" for number in (1, 7)},
    **{f"{_ESC}[{number}~": "end" for number in (4, 8)},
    f"{_ESC}[3~": "delete",
    f"{_ESC}\r": "alt+enter",
    f"{_ESC}[13;2u": "alt+enter",  # Shift+Enter, where a terminal tells it apart
    f"{_ESC}\x7f": "alt+backspace",
    **{
        f"{_ESC}{form}": f"f{number}"
        for number, form in enumerate(("OP", "OQ", "OR", "OS", "[15~", "[17~", "[18~", "[19~"), 1)
    },
    **{f"{_ESC}{letter}": f"alt+{letter}" for letter in map(chr, range(ord("a"), ord("z") + 1))},
}


@dataclass(frozen=True, slots=True)
class Typed:
    """Characters, as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class Key:
    """A key that is no character."""

    name: str


@dataclass(frozen=True, slots=True)
class Pasted:
    """What was pasted. ``cut`` says that it was longer than `PASTE_CHARS`."""

    text: str
    cut: bool = False


Stroke = Typed | Key | Pasted


class Decoder:
    """Takes bytes in whatever pieces they come."""

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._paste: list[str] | None = None
        self._pasted = 0

    @property
    def undecided(self) -> bool:
        """Whether an Escape may be the key, or the beginning of a sequence: a moment's silence tells."""
        return self._paste is None and bool(self._rest)

    def feed(self, data: bytes) -> list[Stroke]:
        """What was pressed by now."""
        self._rest += self._utf8.decode(data)
        strokes: list[Stroke] = []
        while self._rest:
            stroke = self._in_paste() if self._paste is not None else self._next()
            if stroke is None:
                break
            strokes.append(stroke)
        return strokes

    def settle(self) -> list[Stroke]:
        """Nothing came for a moment: what is `undecided` is what it looks like."""
        if not self.undecided:
            return []
        self._rest = ""
        return [Key(ESCAPE)]

    def _next(self) -> Stroke | None:
        if plain := _PLAIN.match(self._rest):
            self._rest = self._rest[plain.end() :]
            return Typed(plain[0])
        first = self._rest[0]
        if first != _ESC:
            self._rest = self._rest[1:]
            return Key(_CONTROLS.get(first, UNKNOWN))
        if found := _SEQUENCE.match(self._rest):
            self._rest = self._rest[found.end() :]
            if found[0] != _PASTE:
                return Key(_SEQUENCES.get(found[0], UNKNOWN))
            self._paste, self._pasted = [], 0
            return self._in_paste()
        if _PERHAPS.match(self._rest):
            return None
        self._rest = self._rest[1:]
        return Key(ESCAPE)

    def _in_paste(self) -> Pasted | None:
        assert self._paste is not None
        text, end, rest = self._rest.partition(_PASTE_END)
        if not end:
            # The end may have come in part.
            keep = next((n for n in range(len(_PASTE_END) - 1, 0, -1) if text.endswith(_PASTE_END[:n])), 0)
            text, rest = text[: len(text) - keep], text[len(text) - keep :]
        self._rest = rest
        self._paste.append(text[: max(0, PASTE_CHARS - self._pasted)])
        self._pasted += len(text)
        if not end:
            return None
        whole, self._paste = "".join(self._paste), None
        return Pasted(whole, cut=self._pasted > PASTE_CHARS)
