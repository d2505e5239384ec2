"""A front without a terminal: a test enters, and reads what was shown."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import anyio

from consilium.console import Console
from wrapper.human.front import Entered, Input, Mood

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TextIO

PATIENCE = 20.0


class FrontDouble:
    def __init__(self, *, waits: bool = False) -> None:
        self.waits = waits
        self.owns_stdout = True
        self.touched = float("-inf")
        self.draft = ""
        self.written = io.StringIO()
        self.screen: TextIO = self.written
        self.mood = Mood.WAITING
        self.begun = ""
        self.open_now = False
        self._send, self._receive = anyio.create_memory_object_stream[Input](8)

    def open(self) -> None:
        self.open_now = True

    async def serve(self, take: Callable[[Input], Awaitable[None]]) -> None:
        async for entered in self._receive:
            await take(entered)

    def show(self, page: Callable[[Console], None]) -> None:
        page(Console(self.written, width=100))

    def invite(self, mood: Mood) -> None:
        self.mood = mood

    def give_back(self, text: str) -> None:
        self.draft = f"{text}\n{self.draft}" if self.draft else text

    def begin(self, text: str) -> None:
        self.begun = text

    def close(self) -> None:
        self.open_now = False
        self._send.close()
        self._receive.close()

    # --- what a test does -----------------------------------------------------------------------------

    async def enter(self, text: str) -> None:
        self.draft = ""
        await self.bring(Entered(text))

    async def bring(self, entered: Input) -> None:
        await self._send.send(entered)

    async def shows(self, words: str) -> str:
        """Wait until ``words`` can be read; return everything that can."""
        with anyio.fail_after(PATIENCE):
            while words not in self.written.getvalue():  # noqa: ASYNC110 - nobody tells
                await anyio.sleep(0.005)
        return self.written.getvalue()
