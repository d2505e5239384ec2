"""What a client asks its terminal, and what a plain one answers. Pure.

Clients wait for these answers before they draw anything, some for seconds, some for ever. What a plain
terminal does not know, it is silent about (the kitty keyboard), or says so (a mode, a capability): either way
the client uses what every terminal has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wrapper.terminal.stream import Control

PASTE, ALTERNATE, WRAP, CURSOR = 2004, 1049, 7, 25

_ST = "\x1b\\"
_COLOURS = {"10": "ffff/ffff/ffff", "11": "0000/0000/0000", "12": "ffff/ffff/ffff"}
_NOT_KNOWN, _SET, _RESET = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Place:
    """What an answer may tell: where the cursor is (from 1), the size, and the private modes that are set."""

    row: int
    column: int
    rows: int
    columns: int
    modes: frozenset[int]


_REPORTS: Mapping[tuple[str, int], str] = {
    ("c", 0): "\x1b[?62;22c",  # a VT220 with colours
    (">c", 0): "\x1b[>1;10;0c",
    (">q", 0): f"\x1bP>|Consilium{_ST}",
    ("n", 5): "\x1b[0n",
    ("n", 6): "\x1b[{row};{column}R",
    ("?n", 6): "\x1b[?{row};{column}R",
    ("t", 18): "\x1b[8;{rows};{columns}t",
}
"""Name and first parameter of a question -> the answer to it."""


def answer(control: Control, place: Place) -> str:
    """What a terminal answers to ``control``; nothing to most, which are no questions."""
    if control.kind == "csi":
        first = control.parameters[0] or 0
        if control.name in ("?$p", "$p"):
            mark = control.name[:-2]
            return f"\x1b[{mark}{first};{_state(first, place.modes) if mark else _NOT_KNOWN}$y"
        return _REPORTS.get((control.name, first), "").format(
            row=place.row, column=place.column, rows=place.rows, columns=place.columns
        )
    if control.kind == "]":
        return _colour(control.body)
    if control.kind == "P" and control.body[:2] in ("+q", "$q"):
        return f"\x1bP0{control.body[0]}r{_ST}"  # no capability, no setting that we could name
    return ""


def _state(mode: int, modes: frozenset[int]) -> int:
    if mode in modes:
        return _SET
    return _RESET if mode in (PASTE, ALTERNATE, WRAP, CURSOR) else _NOT_KNOWN


def _colour(body: str) -> str:
    number, _, asked = body.partition(";")
    return f"\x1b]{number};rgb:{_COLOURS[number]}{_ST}" if asked == "?" and number in _COLOURS else ""
