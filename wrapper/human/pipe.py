"""A person's lines from a pipe or a file: for scripts, and for who has no terminal that can edit.

One line is one input, in its order; a backslash at its end goes on in the next. A text waits for a turn, and
what is behind it waits too. The end is an end: no turn is skipped by it.
"""

from __future__ import annotations

import codecs
import io
import os
import stat
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from consilium.console import Console
from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper.human.commands import continues
from wrapper.human.draft import MAX_CHARS, typed
from wrapper.human.front import Ended, Entered, Mood

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TextIO

    from wrapper.human.front import Input

READ_BYTES = 4096


class Pipe:
    """The front where standard input is no terminal. What the person reads is written to ``screen``."""

    waits = True
    owns_stdout = False
    draft = ""

    def __init__(self, source: int, screen: TextIO) -> None:
        self.screen = screen
        self.touched = float("-inf")
        self._source = source

    def open(self) -> None:
        """Refuse what never brings a line. Raises `AdapterFault`."""
        try:
            kind = os.fstat(self._source).st_mode
        except OSError:
            kind = stat.S_IFDIR
        if stat.S_ISCHR(kind) or stat.S_ISDIR(kind):
            detail = "nobody can type here: standard input is neither a terminal nor a pipe"
            raise AdapterFault(Fault.START_FAILED, PromptSent.NO, detail)

    async def serve(self, take: Callable[[Input], Awaitable[None]]) -> None:
        """Bring the lines, and then the end."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        rest = begun = ""
        while data := await self._more():
            self.touched = anyio.current_time()
            *lines, rest = (rest + decoder.decode(data)).split("\n")
            for line in lines:
                text, more = continues(typed(line))
                begun = (begun + text)[:MAX_CHARS]
                if more:
                    begun += "\n"
                    continue
                whole, begun = begun, ""
                await take(Entered(whole))
            rest = rest[:MAX_CHARS]
        if begun or rest:
            # Whoever ended in the middle of a line has not sent it.
            self.give_back(begun + typed(rest))
        await take(Ended("the input has ended", final=True))

    async def _more(self) -> bytes:
        try:
            await anyio.wait_readable(self._source)
        except PermissionError:  # a plain file, which is always readable
            await anyio.lowlevel.checkpoint()
        try:
            return os.read(self._source, READ_BYTES)
        except OSError:
            return b""

    def show(self, page: Callable[[Console], None]) -> None:
        """Write what ``page`` writes."""
        written = io.StringIO()
        page(Console(written))
        self.screen.write(written.getvalue())
        self.screen.flush()

    def invite(self, mood: Mood) -> None:
        """Nobody sees a prompt."""

    def give_back(self, text: str) -> None:
        """Nobody is there to be given it: say what was not sent."""
        self.show(lambda console: console.text(text, first="not sent: ", indent=" " * 10))

    def begin(self, text: str) -> None:
        """Nobody is there to complete it."""

    def close(self) -> None:
        """Nothing was changed."""
