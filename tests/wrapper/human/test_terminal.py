"""The line editor on a real pseudo-terminal, whose screen a terminal emulator shows."""

from __future__ import annotations

import fcntl
import os
import signal
import termios
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import pyte
import pytest

from consilium.errors import AdapterFault
from wrapper.adapters.presets import load_person
from wrapper.human import tty
from wrapper.human.commands import Command
from wrapper.human.front import Ended, Entered, Input, Mood, Pressed
from wrapper.human.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio

PATIENCE = 20.0
KEYS = {str(command): key for command, key in load_person("human").person.keys.items()}


class Desk:
    """A terminal, who types at it, and what can be seen on it."""

    def __init__(self, columns: int = 60, rows: int = 12) -> None:
        self.person, self.line = os.openpty()
        os.set_blocking(self.person, False)
        self.screen = pyte.Screen(columns, rows)
        self.emulator = pyte.ByteStream(self.screen)
        self.written = b""
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.line)
        self.terminal = Terminal(self.line, self.line, dict(KEYS), owns_stdout=True, colour=False)
        self.inputs: list[Input] = []

    def resize(self, columns: int, rows: int) -> None:
        termios.tcsetwinsize(self.line, (rows, columns))
        self.screen.resize(rows, columns)

    async def take(self, entered: Input) -> None:
        self.inputs.append(entered)

    def type(self, text: str | bytes) -> None:
        os.write(self.person, text.encode() if isinstance(text, str) else text)

    def look(self) -> list[str]:
        """The lines of the screen that hold something."""
        with suppress(BlockingIOError, OSError):
            while data := os.read(self.person, 65536):
                self.written += data
                self.emulator.feed(data)
        return [line.rstrip() for line in self.screen.display if line.strip()]

    async def sees(self, *lines: str) -> None:
        """Wait until these are the last lines of the screen."""
        seen: list[str] = []
        with anyio.move_on_after(PATIENCE):
            while seen[-len(lines) :] != list(lines):
                await anyio.sleep(0.005)
                seen = self.look()
            return
        raise AssertionError(f"{lines} is not at the end of {seen}")

    async def brought(self, *inputs: Input) -> None:
        with anyio.move_on_after(PATIENCE):
            while self.inputs != list(inputs):  # noqa: ASYNC110 - nobody tells
                await anyio.sleep(0.005)
            self.inputs.clear()
            return
        raise AssertionError(f"{self.inputs} instead of {inputs}")

    def close(self) -> None:
        self.terminal.close()
        os.close(self.person)
        os.close(self.line)


@asynccontextmanager
async def desk(*size: int) -> AsyncIterator[Desk]:
    made = Desk(*size)
    try:
        made.terminal.open()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(made.terminal.serve, made.take)
            yield made
            tasks.cancel_scope.cancel()
    finally:
        made.close()


def modes(attributes: list[Any]) -> list[Any]:
    """What counts of a terminal's attributes."""
    return [*attributes[:4], attributes[6]]


async def test_text_is_typed_edited_and_sent() -> None:
    async with desk() as at:
        at.terminal.invite(Mood.TURN)
        at.type("I dubt it")
        await at.sees("you> I dubt it")
        at.type("\x1b[D" * 6 + "o")
        await at.sees("you> I doubt it")
        at.type("\r")
        await at.brought(Entered("I doubt it"))
        await at.sees("you>")
        assert at.terminal.draft == ""


async def test_several_lines_by_backslash_by_key_and_by_paste() -> None:
    async with desk() as at:
        at.terminal.invite(Mood.TURN)
        at.type("one\\\rtwo\nthree\x1b\r\x1b[200~four\r/quit\r\x01\x1b[201~")
        await at.sees("you> one", "     two", "     three", "     four", "     /quit")
        at.type("\r")
        await at.brought(Entered("one\ntwo\nthree\nfour\n/quit\n"))


async def test_the_keys_of_the_preset_are_commands_and_no_text() -> None:
    async with desk() as at:
        at.type("\x01\x02\x13\x11\x14")
        wanted = ("away", "back", "status", "quit", "timeout")
        await at.brought(*(Pressed(Command(word)) for word in wanted))
        assert at.terminal.draft == ""


async def test_a_key_that_was_given_away_does_not_edit() -> None:
    made = Desk()
    made.terminal = Terminal(
        made.line, made.line, {"away": "ctrl+w", "newline": "f2"}, owns_stdout=True, colour=False
    )
    made.terminal.open()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(made.terminal.serve, made.take)
            made.type("one two\x17\x1bOQx\x01")
            await made.brought(Pressed(Command.AWAY))
            await made.sees("  one two", "  x")
            tasks.cancel_scope.cancel()
    finally:
        made.close()


async def test_ctrl_d_ends_only_an_empty_line() -> None:
    async with desk() as at:
        at.type("ab\x1b[D\x04")
        await at.sees("  a")
        at.type("\x7f\x04")
        await at.brought(Ended("the person pressed Ctrl+D: the input has ended"))


async def test_what_others_write_stands_above_the_line_that_is_typed() -> None:
    async with desk() as at:
        at.terminal.invite(Mood.TURN)
        at.type("half a th")
        await at.sees("you> half a th")
        at.terminal.screen.write("WARNING: the link")
        at.terminal.screen.write(" is slow\nnext\n")
        await at.sees("WARNING: the link is slow", "next", "you> half a th")
        at.type("ought")
        await at.sees("next", "you> half a thought")


async def test_a_text_that_is_given_back_stands_ahead() -> None:
    async with desk() as at:
        at.type("new")
        await at.sees("  new")
        at.terminal.give_back("old")
        await at.sees("  old", "  new")
        at.type("\r")
        await at.brought(Entered("old\nnew"))
        at.terminal.give_back("alone")
        await at.sees("  alone")


async def test_what_is_typed_waits_while_something_else_is_asked() -> None:
    async with desk() as at:
        at.type("my point")
        await at.sees("  my point")
        at.terminal.begin("/timeout ")
        at.terminal.begin("/timeout ")
        await at.sees("  /timeout")
        at.type("60\r")
        await at.brought(Entered("/timeout 60"))
        await at.sees("  my point")


async def test_a_text_that_is_given_back_meanwhile_does_not_mix_with_the_answer() -> None:
    async with desk() as at:
        at.type("typed")
        await at.sees("  typed")
        at.terminal.begin("/timeout ")
        at.terminal.give_back("sent too late")
        assert at.terminal.draft == "sent too late\ntyped"
        at.type("60\r")
        await at.brought(Entered("/timeout 60"))
        await at.sees("  sent too late", "  typed")


async def test_to_answer_nothing_is_no_skip_and_what_was_typed_comes_back() -> None:
    async with desk() as at:
        at.type("typed")
        await at.sees("  typed")
        at.terminal.begin("/timeout ")
        at.type("\x15\r")
        await at.sees("  typed")
        at.type("\r")
        await at.brought(Entered("typed"))


async def test_what_was_typed_before_something_was_asked_is_shown_at_the_end() -> None:
    async with desk() as at:
        at.type("typed")
        await at.sees("  typed")
        at.terminal.begin("/timeout ")
        at.terminal.close()
        await at.sees("  typed")


async def test_a_long_text_wraps_and_a_higher_one_shows_the_part_with_the_cursor() -> None:
    async with desk(20, 5) as at:
        at.type("abcdefghijklmnopqrstuvwxyz")
        await at.sees("  abcdefghijklmnopq", "rstuvwxyz")
        at.type("\n1\n2\n3\n4\n5")
        await at.sees("  2", "  3", "  4", "  5")
        at.type("\x1b[A" * 9)
        await at.sees("  abcdefghijklmnopq", "rstuvwxyz", "  1", "  2")


async def test_a_terminal_that_is_made_narrower_shows_the_text_once() -> None:
    async with desk(40, 10) as at:
        at.terminal.screen.write("a line above\n")
        at.type("twelve words of text")
        await at.sees("a line above", "  twelve words of text")
        at.resize(16, 10)
        # As a terminal that wraps anew what it showed.
        at.screen.reset()
        at.emulator.feed(b"a line above\r\n  twelve words o\r\nf text")
        os.kill(os.getpid(), signal.SIGWINCH)
        await at.sees("a line above", "  twelve words", "of text")
        at.type("!")
        await at.sees("a line above", "  twelve words", "of text!")


async def test_ctrl_l_draws_anew() -> None:
    async with desk() as at:
        at.terminal.screen.write("old\n")
        at.type("x")
        await at.sees("old", "  x")
        at.type("\x0c")
        with anyio.fail_after(PATIENCE):
            while at.look() != ["  x"]:  # noqa: ASYNC110 - as above
                await anyio.sleep(0.005)


async def test_an_escape_and_unknown_keys_do_nothing() -> None:
    async with desk() as at:
        at.type("a\x1b")
        await anyio.sleep(0.2)
        at.type("b\x1b[99~\tc")
        await at.sees("  ab    c")


async def test_more_than_there_is_room_for_is_said() -> None:
    async with desk() as at:
        at.type("\x1b[200~")
        for _ in range(40):
            with suppress(BlockingIOError):
                at.type("x" * 4000)
            await anyio.sleep(0.02)
            at.look()
        at.type("\x1b[201~")
        with anyio.fail_after(PATIENCE):
            while b"no room for so much text" not in at.written:
                await anyio.sleep(0.01)
                at.look()


async def test_the_terminal_is_as_it_was_afterwards_and_shows_what_was_not_sent() -> None:
    async with desk() as at:
        held = termios.tcgetattr(at.line)
        assert not held[0] & termios.IXON, "Ctrl+S and Ctrl+Q are keys"
        assert held[3] & termios.ISIG, "Ctrl+C interrupts"
        assert not held[3] & (termios.ECHO | termios.ICANON)
        at.type("unsent")
        await at.sees("  unsent")
        at.terminal.close()
        at.terminal.close()
        assert modes(termios.tcgetattr(at.line)) == modes(at.before)
        at.terminal.screen.write("the shell's prompt\n")
        await at.sees("  unsent", "the shell's prompt")
        assert at.written.count(b"\x1b[?2004h") == at.written.count(b"\x1b[?2004l") == 1
        assert os.get_blocking(at.line), "whoever shares the descriptor finds it as it was"


async def test_a_terminal_that_was_stopped_is_taken_again() -> None:
    async with desk() as at:
        at.type("x")
        await at.sees("  x")
        termios.tcsetattr(at.line, termios.TCSANOW, at.before)
        os.kill(os.getpid(), signal.SIGCONT)
        with anyio.fail_after(PATIENCE):
            while termios.tcgetattr(at.line)[3] & termios.ICANON:  # noqa: ASYNC110 - as above
                await anyio.sleep(0.005)


async def test_a_terminal_that_goes_away_is_the_end() -> None:
    at = Desk()
    at.terminal.open()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(at.terminal.serve, at.take)
            await anyio.sleep(0.05)
            os.close(at.person)
            await at.brought(Ended("the terminal is gone", final=True))
    finally:
        at.terminal.close()
        os.close(at.line)


async def test_a_terminal_that_takes_nothing_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tty, "BACKLOG_BYTES", 64 * 1024)
    monkeypatch.setattr(tty, "FLUSH_SECONDS", 0.1)
    async with desk() as at:
        with anyio.fail_after(PATIENCE):
            for number in range(3000):
                at.terminal.screen.write(f"line {number} {'x' * 40}\n")
            assert len(at.terminal._tty._backlog) <= 64 * 1024
            await at.sees(f"line 2999 {'x' * 40}")


async def test_what_is_no_terminal_is_refused() -> None:
    read, write = os.pipe()
    try:
        with pytest.raises(AdapterFault, match="the terminal cannot be used"):
            Terminal(read, write, {}, owns_stdout=True, colour=False).open()
    finally:
        os.close(read)
        os.close(write)


def test_the_size_of_what_has_none_is_guessed() -> None:
    read, write = os.pipe()
    columns, rows = tty.Tty(read, write).size
    assert columns > 0 < rows
    fcntl.fcntl(read, fcntl.F_GETFD)
    os.close(read)
    os.close(write)
