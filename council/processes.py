"""The processes of a council on one machine: started, listened to, and stopped without a trace.

1. A process lives as long as its standard input: only we hold the other end, so even `kill -9` on us ends it.
2. Each is the leader of its own session. Ctrl-C reaches us alone, and what it started ends with it.
3. Standard output is JSON lines, and they are its news; standard error is its log file.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import orjson

from consilium.errors import PeerError, UserError
from consilium.framing import LineFramer
from council.causes import first_cause

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from anyio.abc import Process, TaskGroup
    from anyio.streams.memory import MemoryObjectSendStream

GRACE_SECONDS = 3.0
"""How long a process may take to end in good order once its lifeline is cut."""

TERM_SECONDS = 1.0
"""How long after SIGTERM the kill comes."""

KILL_SECONDS = 5.0
"""How long a killed process may stay: it is then stuck in the kernel, and nobody can end it."""

DRAIN_SECONDS = 0.5
"""How long the last lines of a process are waited for: a descendant may hold its output open for ever."""

NEWS_BYTES = 64 * 1024
"""Longest line of news; a longer one is nothing that we wrote."""

LAST_WORDS_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Said:
    """A process wrote a JSON line about itself."""

    process: str
    event: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """A process is gone. ``code`` is its exit code, or minus the number of the signal that killed it."""

    process: str
    code: int

    @property
    def how(self) -> str:
        """The end, in words."""
        if self.code < 0:
            return f"was killed by {signal.Signals(-self.code).name}"
        return f"ended with exit code {self.code}"


News = Said | Ended


class Child:
    """One process of ours. ``stage`` orders the end: what has the highest stage goes first."""

    def __init__(self, name: str, process: Process, log: Path, stage: int) -> None:
        self.name = name
        self.log = log
        self.process = process
        self.stage = stage
        self.ended: Ended | None = None
        self._heard: dict[str, dict[str, Any]] = {}
        self._changed = anyio.Event()

    async def says(self, event: str) -> dict[str, Any]:
        """Wait for the line ``{"event": event, ...}`` and return it.

        Raises `UserError` when the process ends first, with the last line of its log.
        """
        while event not in self._heard:
            if self.ended is not None:
                raise UserError(
                    f"{self.name} {self.ended.how}: {self.last_words() or 'it gave no reason'}",
                    hint=f"its log is {self.log}",
                )
            await self._changed.wait()
        return self._heard[event]

    def last_words(self) -> str:
        """The last line of the log that says anything; a hint with the sentence that it belongs to."""
        lines: list[str] = []
        with suppress(OSError), self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LAST_WORDS_BYTES))
            lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
        words = lines[-1].strip() if lines else ""
        if len(lines) > 1 and lines[-1].startswith("  "):
            words = f"{lines[-2].strip()}; {words}"
        return words.removeprefix("consilium: ")

    def note(self, news: News) -> None:
        """Keep what was said, and wake whoever waits for it."""
        if isinstance(news, Said):
            self._heard[news.event] = news.fields
        else:
            self.ended = news
        self._changed.set()
        self._changed = anyio.Event()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and to everything in its group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


class Processes:
    """The processes that were started. Make one with `processes`."""

    def __init__(self, logs: Path, news: MemoryObjectSendStream[News], tasks: TaskGroup) -> None:
        self._logs = logs
        self._news = news
        self._tasks = tasks
        self._children: list[Child] = []
        self._hurry = anyio.Event()

    async def start(self, name: str, module: str, *arguments: str, stage: int) -> Child:
        """Run ``python -m module arguments --lifeline`` as ``name``, with its log in ``name.log``."""
        # -P: the folder in which somebody runs a council may hold modules of any name.
        return await self.start_command(
            name, [sys.executable, "-P", "-m", module, *arguments, "--lifeline"], stage=stage
        )

    async def start_command(self, name: str, command: Sequence[str], *, stage: int) -> Child:
        """Run ``command`` with a lifeline. Raises `UserError` when it or its log cannot be opened."""
        path = self._logs / f"{name}.log"
        try:
            log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UserError(f"{path} cannot be written: {error.strerror}") from None
        try:
            process = await anyio.open_process(command, stderr=log, start_new_session=True)
        except OSError as error:
            raise UserError(f"{name} cannot be started: {error.strerror}") from None
        finally:
            os.close(log)
        child = Child(name, process, path, stage)
        self._children.append(child)
        self._tasks.start_soon(self._follow, child)
        return child

    def hurry(self) -> None:
        """Grant no grace from here on."""
        self._hurry.set()

    def running(self) -> list[Child]:
        """Those that have not ended."""
        return [child for child in self._children if child.process.returncode is None]

    async def until_gone(self, seconds: float, *, above: int = -1) -> None:
        """Wait until all of a stage ``above`` have ended by themselves, at most ``seconds``."""
        await self._gone([child for child in self.running() if child.stage > above], seconds)

    def last_words(self, name: str) -> str:
        """The last line in the log of the process called ``name``."""
        return next((child.last_words() for child in self._children if child.name == name), "")

    async def stop(self) -> None:
        """End every process, the highest stage first. Bounded; returns when none is left."""
        with anyio.CancelScope(shield=True):
            for stage in sorted({child.stage for child in self.running()}, reverse=True):
                await self._end([child for child in self.running() if child.stage == stage])
            for child in self._children:
                await child.process.aclose()

    async def _end(self, children: list[Child]) -> None:
        for child in children:
            assert child.process.stdin is not None
            await child.process.stdin.aclose()
        await self._gone(children, GRACE_SECONDS)
        self._signal(children, signal.SIGTERM)
        await self._gone(children, TERM_SECONDS)
        self._signal(children, signal.SIGKILL)
        with anyio.move_on_after(KILL_SECONDS):
            for child in children:
                await child.process.wait()

    def _signal(self, children: list[Child], number: signal.Signals) -> None:
        for child in children:
            if child.process.returncode is None:
                child.signal(number)

    async def _gone(self, children: list[Child], seconds: float) -> None:
        """Wait until ``children`` have ended; give up after ``seconds``, or when there is a hurry."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cancel_in_a_hurry, tasks.cancel_scope)
            with anyio.move_on_after(seconds):
                for child in children:
                    await child.process.wait()
            tasks.cancel_scope.cancel()

    async def _cancel_in_a_hurry(self, scope: anyio.CancelScope) -> None:
        await self._hurry.wait()
        scope.cancel()

    async def _follow(self, child: Child) -> None:
        """Tell what a process says, and then that it ended."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen, child)
            code = await child.process.wait()
            # Nothing that it started may stay. At once: its number is not anybody else's yet.
            child.signal(signal.SIGKILL)
            tasks.cancel_scope.deadline = anyio.current_time() + DRAIN_SECONDS
        await self._tell(child, Ended(child.name, code))

    async def _listen(self, child: Child) -> None:
        framer = LineFramer(NEWS_BYTES)
        assert child.process.stdout is not None
        with suppress(anyio.ClosedResourceError):  # stopped, and a descendant holds the other end
            async for chunk in child.process.stdout:
                try:
                    lines = framer.feed(chunk)
                except PeerError:  # no news is that long
                    framer, lines = LineFramer(NEWS_BYTES), []
                for line in lines:
                    if (said := _said(child.name, line)) is not None:
                        await self._tell(child, said)

    async def _tell(self, child: Child, news: News) -> None:
        child.note(news)
        with suppress(anyio.BrokenResourceError):  # whoever listened has left
            await self._news.send(news)


@asynccontextmanager
async def processes(logs: Path, news: MemoryObjectSendStream[News]) -> AsyncIterator[Processes]:
    """Hold processes; when the body is left, in whatever way, none of them is left."""
    with first_cause():
        async with anyio.create_task_group() as tasks:
            held = Processes(logs, news, tasks)
            try:
                yield held
            finally:
                await held.stop()
                tasks.cancel_scope.cancel()


def _said(name: str, line: bytes) -> Said | None:
    """Read a line of a process about itself; None for anything else, which is nobody's news."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict) or not isinstance(fields.get("event"), str):
        return None
    return Said(name, fields["event"], fields)
