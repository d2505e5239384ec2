"""A person at a terminal: a line editor that others may write beside (§10).

The standard library's readline cannot give a key to a function of ours, cannot be left while it waits, and
does not leave the terminal as it was when its process is ended. This one is a task among the seat's others.
"""

from __future__ import annotations

import io
import os
import signal
import termios
from typing import TYPE_CHECKING, cast

import anyio

from consilium.console import Console, wants_colour
from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper.human.commands import Command, continues
from wrapper.human.draft import Draft, Lying, lay
from wrapper.human.front import Ended, Entered, Mood, Pressed
from wrapper.human.keys import ENTER, Decoder, Key, Pasted, Typed
from wrapper.human.tty import Tty

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import TextIO

    from wrapper.human.front import Input
    from wrapper.human.keys import Stroke

ESCAPE_SECONDS = 0.05
"""How long after Escape the rest of a sequence may come, which a terminal sends at once."""

READ_BYTES = 4096
NEWLINE = "newline"

PROMPTS: dict[Mood, str] = {Mood.WAITING: "  ", Mood.TURN: "you> ", Mood.AWAY: "(away) "}

_REFRESHING = (signal.SIGWINCH, signal.SIGCONT)
_ENDING = (signal.SIGHUP, signal.SIGQUIT)
"""What would end us with the terminal as the editor has it."""


class Beside(io.TextIOBase):
    """A stream whose whole lines appear above the one that is being typed."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._rest = ""

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str) -> int:
        """Show the lines that are complete."""
        whole, newline, rest = (self._rest + text).rpartition("\n")
        self._rest = rest
        if newline:
            self._show(whole + newline)
        return len(text)


class Terminal:
    """The front at a terminal. ``keys`` say which key is which command, and which begins a new line."""

    waits = False

    def __init__(
        self, source: int, target: int, keys: Mapping[str, str], *, owns_stdout: bool, colour: bool
    ) -> None:
        """``source`` is read and ``target`` written to; both are terminals."""
        self.owns_stdout = owns_stdout
        self.screen = cast("TextIO", Beside(self._above))
        self.touched = float("-inf")
        self._source = source
        self._tty = Tty(source, target)
        self._colour = colour
        self._commands = {key: command for command, key in keys.items()}
        self._draft = Draft()
        self._aside: str | None = None
        self._mood = Mood.WAITING
        self._lying: Lying | None = None
        self._drawn: object = None
        self._live = False

    @property
    def draft(self) -> str:
        """What is typed and not sent, also while something else is asked."""
        return self._draft.text if self._aside is None else self._aside

    def open(self) -> None:
        """Have the terminal. Raises `AdapterFault`."""
        try:
            self._tty.seize()
        except (termios.error, OSError) as error:
            detail = f"the terminal cannot be used: {error}"
            raise AdapterFault(Fault.START_FAILED, PromptSent.NO, detail) from None
        self._live = True
        self._draw()

    async def serve(self, take: Callable[[Input], Awaitable[None]]) -> None:
        """Edit, until the terminal is gone."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tty.pump)
            tasks.start_soon(self._obey_signals)
            await self._read(take)
            tasks.cancel_scope.cancel()

    def show(self, page: Callable[[Console], None]) -> None:
        """Write what ``page`` writes above the line that is being typed."""
        written = io.StringIO()
        page(Console(written, colour=self._colour, width=self._tty.size[0] - 1))
        self._above(written.getvalue())

    def invite(self, mood: Mood) -> None:
        """Show what is awaited by the prompt."""
        self._mood = mood
        self._draw()

    def give_back(self, text: str) -> None:
        """Put ``text`` ahead of what is typed."""
        whole = f"{text}\n{self.draft}" if self.draft else text
        if self._aside is None:
            self._draft.put(whole)
        else:
            self._aside = whole
        self._draw()

    def begin(self, text: str) -> None:
        """Have ``text`` completed; what was typed comes back after Enter."""
        if self._aside is None:
            self._aside = self._draft.take()
        self._draft.put(text)
        self._draw()

    def close(self) -> None:
        """Leave the terminal as it was found, with what was typed still to be read."""
        if self._live:
            self._take_up()
            if self._draft.text:
                self._draw()
                self._below()
            else:
                self._erase()
            self._live = False
        self._tty.restore()

    # --- reading -----------------------------------------------------------------------------------------

    async def _read(self, take: Callable[[Input], Awaitable[None]]) -> None:
        decoder = Decoder()
        while True:
            strokes: list[Stroke] = []
            with anyio.move_on_after(ESCAPE_SECONDS if decoder.undecided else None) as moment:
                await anyio.wait_readable(self._source)
            if moment.cancelled_caught:
                strokes = decoder.settle()
            else:
                try:
                    data = os.read(self._source, READ_BYTES)
                except OSError:
                    data = b""
                if not data:
                    await take(Ended("the terminal is gone", final=True))
                    return
                self.touched = anyio.current_time()
                strokes = decoder.feed(data)
            for stroke in strokes:
                entered = self._stroke(stroke)
                if entered is not None:
                    self._draw()
                    await take(entered)
            self._draw()

    def _stroke(self, stroke: Stroke) -> Input | None:
        match stroke:
            case Typed(text):
                self._insert(text)
            case Pasted(text, cut):
                self._insert(text, cut=cut)
            case Key(name):
                return self._pressed(name)
        return None

    def _pressed(self, name: str) -> Input | None:
        command = self._commands.get(name)
        if command == NEWLINE or (name == "alt+enter" and command is None):
            self._draft.insert("\n")
            return None
        if command is not None:
            return Pressed(Command(command))
        if name == ENTER:
            return self._enter()
        if name == "ctrl+d" and not self._draft.text:
            return Ended("the person pressed Ctrl+D: the input has ended")
        if name == "tab":
            self._insert("\t")
        elif name == "ctrl+l":
            self._tty.write(b"\x1b[H\x1b[2J")
            self._lying = None
        else:
            self._draft.press(name)
        return None

    def _enter(self) -> Input | None:
        line, more = continues(self._draft.text)
        if more:
            self._draft.put(line + "\n")
            return None
        self._draft.take()
        # Nothing is the answer to what was asked, and no skip of the turn.
        return None if self._take_up() and not line.strip() else Entered(line)

    def _take_up(self) -> bool:
        """Go on with what was typed before something else was asked; whether something was."""
        if self._aside is None:
            return False
        self._draft.put(self._aside)
        self._aside = None
        return True

    def _insert(self, text: str, *, cut: bool = False) -> None:
        if not self._draft.insert(text) or cut:
            self._above("there is no room for so much text: the end was left out\n")

    async def _obey_signals(self) -> None:
        with anyio.open_signal_receiver(*_REFRESHING, *_ENDING) as received:
            async for number in received:
                if number in _ENDING:
                    self.close()
                    signal.signal(number, signal.SIG_DFL)
                    os.kill(os.getpid(), number)
                elif number == signal.SIGCONT:
                    self._tty.claim()
                self._draw()

    # --- drawing -----------------------------------------------------------------------------------------

    def _above(self, text: str) -> None:
        """Write whole lines where the edited one is, and that below them."""
        if not text:
            return
        self._erase()
        self._tty.write(text.encode("utf-8", "replace"))
        self._draw()

    def _draw(self) -> None:
        if not self._live:
            return
        width, height = self._tty.size
        prompt = PROMPTS[self._mood]
        wanted = prompt, self._draft.text, self._draft.at, width, height
        if self._lying is not None and wanted == self._drawn:
            return
        self._erase()
        self._drawn = wanted
        lying = lay(prompt, self._draft.text, self._draft.at, width, max(1, height - 1))
        down = len(lying.rows) - 1 - lying.row
        back = (f"\x1b[{down}A" if down else "") + "\r" + (f"\x1b[{lying.column}C" if lying.column else "")
        self._tty.write(("\n".join(lying.rows) + back).encode("utf-8", "replace"))
        self._lying = lying

    def _erase(self) -> None:
        """Take the edited line away, also where the terminal has been made narrower since it was drawn."""
        if self._lying is not None:
            above = self._lying.above(self._tty.size[0])
            self._tty.write((f"\x1b[{above}A" if above else "").encode() + b"\r\x1b[J")
            self._lying = None

    def _below(self) -> None:
        """Go on below the edited line, which stays."""
        if self._lying is not None:
            down = self._lying.height(self._tty.size[0]) - 1 - self._lying.above(self._tty.size[0])
            self._tty.write((f"\x1b[{down}B" if down > 0 else "").encode() + b"\r\n")
            self._lying = None


def at_terminal(
    source: int, target: int, keys: Mapping[str, str], environ: Mapping[str, str], *, owns_stdout: bool
) -> Terminal:
    """The front for a person at these terminals, in colour where that is wanted."""
    with open(target, "w", closefd=False) as stream:
        colour = wants_colour(stream, environ, no_color=False)
    return Terminal(source, target, keys, owns_stdout=owns_stdout, colour=colour)
