"""Standard output of a command that shows a debate as it happens: who writes to it, how, until when."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from typing import TYPE_CHECKING

import anyio

from consilium.cli import READER_LEFT
from consilium.console import wants_colour
from council.closing import Closing
from council.live import SIGN_OF_LIFE_SECONDS, JsonView, TextView
from council.printer import Printer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskStatus

    from council.course import Verdict
    from council.live import View

TICK_SECONDS = 0.2

FAREWELL_SECONDS = 2.0
"""After an interruption, how long the last lines may take to be shown."""

SIGNALLED = 128
"""What a signal's number is added to in an exit code."""


def open_printer() -> Printer:
    """Whoever writes to standard output; to nowhere, if there is none."""
    if sys.stdout is None:
        return Printer(os.open(os.devnull, os.O_WRONLY), "utf-8")
    sys.stdout.flush()
    return Printer(sys.stdout.fileno(), sys.stdout.encoding)


def open_view(
    printer: Printer, *, as_json: bool, no_color: bool, silence: float = SIGN_OF_LIFE_SECONDS
) -> View:
    """What is written: JSON lines, or lines for a person that go with the terminal.

    Where there is no terminal, ``silence`` is how many seconds may pass without a line.
    """
    now = time.monotonic()
    if as_json:
        return JsonView(printer.write, now=now)
    return TextView(
        printer.write,
        width=shutil.get_terminal_size().columns,
        terminal=os.isatty(printer.fd) and os.environ.get("TERM") != "dumb",
        colour=sys.stdout is not None and wants_colour(sys.stdout, os.environ, no_color=no_color),
        now=now,
        silence=silence,
    )


def exit_code(error: OSError) -> int:
    """The exit code of a command that can show no more, by what `Printer.run` returned."""
    return READER_LEFT if isinstance(error, BrokenPipeError) else 1


class Showing:
    """Runs what is shown, with signs of life, until its verdict, a signal, or the reader's end."""

    def __init__(
        self,
        view: View,
        printer: Printer,
        *,
        farewell: str,
        closing: Callable[[Verdict], Closing] = lambda verdict: Closing(verdict, (), ()),
    ) -> None:
        """``farewell`` is said after a signal; ``closing`` says what is shown of a verdict."""
        self._view = view
        self._printer = printer
        self._farewell = farewell
        self._closing = closing
        self._work = anyio.CancelScope()
        self._parting = anyio.CancelScope()
        self._stopped: int | None = None

    async def run(self, work: Callable[[], Awaitable[Verdict]]) -> int:
        """Return the verdict's exit code, 128 + n after signal n, or `READER_LEFT`."""
        code = 0
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._hear_signals)
            tasks.start_soon(self._print)
            tasks.start_soon(self._tick)
            with self._work:
                verdict = await work()
                self._view.end(self._closing(verdict), time.monotonic())
                code = verdict.code
            if self._work.cancelled_caught:
                self._view.say(self._farewell, time.monotonic())
            with self._parting:  # a pager that is not scrolled may hold this up, until a signal
                await self._printer.drain()
            tasks.cancel_scope.cancel()
        return code if self._stopped is None else self._stopped

    def _stop(self, code: int) -> None:
        self._stopped = code
        self._work.cancel()
        self._parting.deadline = anyio.current_time() + FAREWELL_SECONDS

    async def _hear_signals(self, *, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            task_status.started()
            async for number in signals:
                self._stop(SIGNALLED + number)

    async def _print(self) -> None:
        self._stop(exit_code(await self._printer.run()))

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(TICK_SECONDS)
            if not self._printer.behind:
                self._view.tick(time.monotonic())
