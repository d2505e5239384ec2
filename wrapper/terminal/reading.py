"""What a client's screen shows: whether it waits, works, was asked, and what it answered (§12). Pure.

1. A turn is looked for below the echo of its own prompt, which is known by a mark that nobody else can know.
   What stood on the screen before, or is drawn again above it, is of an earlier turn.
2. The client sets apart what it says from what it was told, by how a block's first line begins
   (`Signs.said`); every other line of a block is indented. So what somebody wrote cannot begin a block, nor
   imitate a dialog.
3. The token counts in an answer alone. In an echo, a title or a status line it is somebody's text.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wrapper.clean import clean_text, last_token_cut
from wrapper.prompts import END_TOKEN

if TYPE_CHECKING:
    from collections.abc import Sequence

FOOT = 40
"""Lines at the lower end of what is shown in which a client's prompt is looked for; empty ones are not
counted."""

_TOKEN = re.compile(rf"(?<!_)_*{re.escape(END_TOKEN.strip('_'))}_*")
"""The token as a screen may show it: to Markdown, two underscores around a word mean bold type. It is looked
for where they begin: at each of a long line of them, it would take the square of its length."""

_MARGIN = 6
"""How many columns a client may leave free at the right."""


@dataclass(frozen=True, slots=True)
class Signs:
    """How a client's screen is read; each is a pattern, of a line or (``ready``) of several.

    ``ready``: it takes a prompt. ``asked``, ``said``: how the first line of a prompt's echo and of a block of
    its own begins. ``working``: it is at work. ``done``: the line that it writes below a finished answer.
    ``aside``: what it says beside that, such as an error.
    """

    ready: re.Pattern[str]
    asked: re.Pattern[str]
    said: re.Pattern[str]
    working: re.Pattern[str] | None = None
    done: re.Pattern[str] | None = None
    aside: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """What there is to see of a turn: ``blocks`` is what the client said in it so far, ``notes`` what aside.

    ``answer`` is the text before the token, None without one; it may be empty.
    """

    asked: bool
    working: bool
    done: bool
    blocks: tuple[str, ...]
    notes: tuple[str, ...]
    answer: str | None


def is_ready(lines: Sequence[str], signs: Signs) -> bool:
    """Whether the client takes a prompt."""
    return signs.ready.search("\n".join(foot(lines))) is not None


def foot(lines: Sequence[str]) -> list[str]:
    """The lower end of what is shown."""
    return [line for line in lines if line][-FOOT:]


def look(lines: Sequence[str], signs: Signs, mark: str, columns: int) -> Shown:
    """What ``lines`` show of the turn whose prompt begins with ``mark``, on a terminal of ``columns``."""
    asked = [number for number, line in enumerate(lines) if mark in line and signs.asked.match(line)]
    below = lines[asked[-1] + 1 :] if asked else ()
    blocks: list[list[str]] = []
    notes: list[str] = []
    done = within = working = False
    for line in below:
        if signs.working is not None and signs.working.search(line):
            working, within = True, False
            continue
        begins = signs.said.match(line)
        if begins is not None:
            blocks.append([" " * begins.end() + line[begins.end() :]])
            within = True
        elif signs.done is not None and signs.done.search(line):
            done, within = bool(blocks), False
        elif any(pattern.search(line) for pattern in signs.aside):
            notes.append(line)
            within = False
        elif line and not line[0].isspace():
            within = False
        elif within:
            blocks[-1].append(line)
    texts = tuple(_text(block, columns) for block in blocks)
    return Shown(bool(asked), working, done, texts, tuple(notes), _answer(texts))


def _answer(blocks: Sequence[str]) -> str | None:
    """What stands before the last token, in the last block that has one."""
    for text in reversed(blocks):
        cut = last_token_cut(text, END_TOKEN)
        if cut is not None:
            return cut
    return None


def _text(block: Sequence[str], columns: int) -> str:
    """A block's lines as the text that they were: without the indentation, and what was wrapped joined."""
    indents = [len(line) - len(line.lstrip()) for line in block if line]
    margin = min(indents, default=0)
    text = "\n".join(_unwrapped([line[margin:] for line in block], columns - margin))
    return clean_text(_TOKEN.sub(END_TOKEN, text))


def _unwrapped(lines: Sequence[str], columns: int) -> list[str]:
    """``lines``, those joined whose break only the width explains."""
    kept: list[str] = []
    last = ""
    for line in lines:
        if last and line and _is_wrapped(last, line, columns):
            gap = "" if _is_wide(last[-1]) or " " not in last.strip() else " "
            kept[-1] += gap + line.lstrip()
        else:
            kept.append(line)
        last = line
    return kept


def _is_wrapped(line: str, following: str, columns: int) -> bool:
    """Whether the first word of ``following`` would not have fitted behind ``line``."""
    if _indent(following) < _indent(line):
        return False
    word = following.split(maxsplit=1)[0]
    needed = 1 if _is_wide(word[0]) else 1 + len(word)
    return _width(line) > columns // 2 and _width(line) + needed > columns - _MARGIN


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _width(line: str) -> int:
    return sum(2 if _is_wide(char) else 1 for char in line)


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"
