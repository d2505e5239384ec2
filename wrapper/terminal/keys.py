"""What is written to a client's terminal, and nothing else ever is (§14.5). Pure.

1. Text goes in as one bracketed paste, so that no line of it is a line to the client.
2. A paste holds no control character but the newline: it can neither end itself nor press a key.
3. Keys are pressed by name, each in a write of its own: a client takes an Enter that comes along with a paste
   for a part of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from wrapper.clean import clean_text

if TYPE_CHECKING:
    from collections.abc import Mapping

Key = Literal["enter", "escape", "up", "down", "tab", "ctrl-c", "ctrl-d", "y", "n", "1", "2", "3"]

KEYS: Mapping[Key, bytes] = {
    "enter": b"\r",
    "escape": b"\x1b",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "tab": b"\t",
    "ctrl-c": b"\x03",
    "ctrl-d": b"\x04",
    **{key: key.encode() for key in ("y", "n", "1", "2", "3")},
}

PASTE_BEGINS, PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"

TAB = "    "
"""What stands for a tab, which is a key: it would ask for a completion."""


def pasted(text: str) -> bytes:
    """``text`` as a paste: cleaned, and without a control character but the newline."""
    return PASTE_BEGINS + clean_text(text).replace("\t", TAB).encode() + PASTE_ENDS
