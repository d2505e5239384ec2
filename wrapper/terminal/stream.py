"""What a client writes to its terminal, taken apart: text, and controls (ECMA-48). Pure.

Every sequence of bytes is a stream; one that is no terminal's language loses its bad part and no more. A
control may come in pieces, but not for ever: what is longer than `MAX_CONTROL` is dropped.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CONTROL = 64 * 1024
"""Characters of a control that has not ended yet. A picture may be that long, and is not shown anyway."""

_PIECE = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|\x1b\[(?P<parameters>[0-?]*)(?P<between>[ -/]*)(?P<csi>[@-~])"
    # A string ends with ST or BEL; CAN, SUB or another escape cut it short.
    r"|\x1b(?P<string>[\]PX^_])(?P<body>[^\x07\x18\x1a\x1b]*)(?:\x07|\x1b\\|[\x18\x1a]|(?=\x1b[^\\]))"
    r"|\x1b(?P<shift>[ -/]*)(?P<escape>[0-OQ-WYZ\\`-~])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x9f])"
    r"|(?P<broken>\x1b(?:\[[0-?]*)?[ -/]*(?=[^\x20-\x7e]))"
)


@dataclass(frozen=True, slots=True)
class Control:
    """A control: its ``kind`` is ``csi``, ``escape``, ``control``, or what a string begins with (``]``).

    ``name`` is what tells it from others of its kind, the private mark in front: ``?h``, ``>q``, ``?$p``.
    ``parameters`` are its numbers, None for one that is left out; ``body`` is a string's content.
    """

    kind: str
    name: str
    parameters: tuple[int | None, ...] = ()
    body: str = ""


class Splitter:
    """Takes one stream apart, in whatever pieces it comes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, data: bytes) -> Iterator[str | Control]:
        """What ``data`` adds: text, and controls that are whole."""
        given = self._rest + self._decoder.decode(data)
        self._rest = ""
        at = 0
        while at < len(given):
            found = _PIECE.match(given, at)
            if found is None:
                self._rest = given[at:] if len(given) - at <= MAX_CONTROL else ""
                return
            at = found.end()
            if found["text"] is not None:
                yield found["text"]
            elif found["broken"] is None:
                yield _control(found)


def _control(found: re.Match[str]) -> Control:
    if found["csi"] is not None:
        given = found["parameters"]
        mark = given[:1] if given[:1] in "<=>?" else ""
        numbers = tuple(_number(one) for one in given[len(mark) :].split(";"))
        return Control("csi", mark + found["between"] + found["csi"], numbers)
    if found["string"] is not None:
        return Control(found["string"], found["string"], body=found["body"])
    if found["escape"] is not None:
        return Control("escape", found["shift"] + found["escape"])
    return Control("control", found["control"])


def _number(text: str) -> int | None:
    """A parameter; of one with parts (``4:3``) the first."""
    first = text.partition(":")[0]
    return min(int(first), 9999) if first.isdecimal() and len(first) < 10 else None
