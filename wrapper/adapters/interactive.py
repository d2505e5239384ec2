"""A client that is talked to in a terminal, and stays there from turn to turn (§6.5).

1. The process is the chat. Where the client can be told the chat's id, it is started again in that chat,
   after our own restart as well as after a turn that failed; where it cannot, the chat ends with its process,
   and this is said (§6.6): no other one is begun unless the operator orders it.
2. A turn that failed, or that somebody withdrew, ends the process: nobody knows what it would say next. Where
   the chat would end with it, a client that told the failure itself and takes the next prompt is left alone.
3. The model is asked to end every answer with a token, since a screen has no other end (§12). The token and
   nothing before it is a pass; no token in time is a fault, and no part of the text is given out.
4. One thread starts the client, reads it and ends it, off the event loop.
"""

from __future__ import annotations

import secrets
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent, Usage
from wrapper import sandbox
from wrapper.adapters.base import Answer
from wrapper.adapters.client import ClientAdapter, unusable
from wrapper.adapters.keeping import KeptChat, fingerprint, keep_chat
from wrapper.prompts import PASS
from wrapper.terminal.console import Console, Withdrawn
from wrapper.terminal.emulator import COLUMNS, ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wrapper.adapters.screens import Terminal

ENVIRONMENT = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
"""What a client finds in every terminal, unless preset or wrapper say otherwise."""

T = TypeVar("T")


class PexpectAdapter(ClientAdapter):
    """One seat's client, in a terminal."""

    stays = True

    _owner: ThreadPoolExecutor | None = None
    _console: Console | None = None
    _running: str | None = None
    """The id of the chat that is in the terminal, where it has one."""
    _begun = False
    """Whether the chat has answered once."""

    @cached_property
    def _terminal(self) -> Terminal:
        """Raises `UserError` for a preset that says nothing of a terminal: no adapter is made of it."""
        return self._preset.in_terminal(self._profile)

    def _environment(self, ours: Mapping[str, str], passed: Sequence[str]) -> dict[str, str]:
        env = super()._environment(ours, passed)
        return {**ENVIRONMENT, **env, **self._call.filled(self._terminal.set)}

    async def open(self, system_prompt: str) -> None:
        """See `ParticipantAdapter`. The client is started, so that what it asks first is seen at once."""
        if self._lock is not None:
            return
        await super().open(system_prompt)
        self._begun = self._id is not None
        try:
            await self._start()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.close()
            raise

    async def restart(self, system_prompt: str) -> None:
        """See `ParticipantAdapter`."""
        self._check_open()
        async with self._turn:
            await self._end()
            await anyio.to_thread.run_sync(self._begin_anew, system_prompt)
            self._begun = False
            await self._start()

    async def close(self) -> None:
        """See `ParticipantAdapter`."""
        console = self._console
        try:
            if console is not None:
                await self._in_owner(lambda _: console.leave())
        finally:
            with anyio.CancelScope(shield=True), suppress(AdapterFault):
                await self._end()
            await super().close()

    # --- a turn --------------------------------------------------------------------------------------

    async def _take_turn(self, text: str) -> Answer:
        turn = uuid.uuid4().hex if self._undone else None
        if self._console is None and self._begun and self._id is None:
            what = f"the chat ended with {self._preset.executable}, which cannot go on in it; begin a new one"
            raise AdapterFault(Fault.SESSION_MISMATCH, PromptSent.NO, what)
        await anyio.to_thread.run_sync(self._put_back, turn)
        if self._console is None:
            await self._start()
        console = self._console
        assert console is not None
        # It names the turn where the client shows what it was asked, and begins no command.
        mark = f"(turn {secrets.token_hex(4)})"
        prompt = self._call.prompt(text, self._system_prompt, first=not self._begun).decode()
        ask = partial(console.ask, f"{mark}\n{prompt.lstrip()}", mark, self._bounds)
        try:
            told = await self._in_owner(ask)
        except BaseException as ended:
            told_by_itself = isinstance(ended, AdapterFault) and console.at_rest
            if self._terminal.next or not told_by_itself:
                with anyio.CancelScope(shield=True):
                    await self._end()
            raise
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._keep, turn)
        first_byte = None if told.first_byte is None else round(told.first_byte * 1000)
        return Answer(told.text.strip() or PASS, Usage(first_byte_ms=first_byte), told.refused)

    def _keep(self, turn: str | None) -> None:
        """Keep that the chat has answered: its id, or that there was one which ends with its process."""
        if self._running is not None:
            self._adopt(self._running, {}, turn)
        elif not self._begun:
            there_was = KeptChat(
                preset=self._preset.name, id=None, system_prompt=fingerprint(self._system_prompt)
            )
            try:
                keep_chat(self._folder, there_was)
            except OSError as error:
                why = f"the seat's state could not be kept: {error}"
                raise AdapterFault(Fault.INTERNAL, PromptSent.YES, why) from None
        self._begun = True

    def _exists(self, chat: str) -> bool:
        return bool(self._terminal.next) and super()._exists(chat)

    def _changed_by_a_turn(self) -> tuple[str, ...]:
        return self._terminal.restore

    # --- the process ---------------------------------------------------------------------------------

    async def _start(self) -> None:
        """Start the client in the seat's chat, or in a new one, and wait until it takes a prompt."""
        await anyio.to_thread.run_sync(self._put_files)
        chosen = bool(self._terminal.next) and self._id is None
        new = str(uuid.uuid4()) if chosen else None
        command = self._command(self._call.in_terminal(self._terminal, self._id, new))
        self._running = self._id or new
        self._owner = ThreadPoolExecutor(1, thread_name_prefix=f"terminal of {self._preset.name}")
        try:
            await self._in_owner(partial(self._begin, command))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._end()
            raise

    def _begin(self, command: sandbox.Command, alarm: int) -> None:
        running = sandbox.start_in_terminal(command, columns=COLUMNS, rows=ROWS)
        try:
            self._console = Console(running, self._preset, self._terminal, self._profile)
        except OSError as error:
            running.end()
            raise unusable(f"{self._preset.executable} cannot be watched in its terminal: {error}") from None
        self._console.get_ready(alarm)

    async def _end(self) -> None:
        """End the client. Raises `AdapterFault` if something of it cannot be ended."""
        console, self._console = self._console, None
        owner, self._owner = self._owner, None
        if owner is None:
            return
        left = await anyio.to_thread.run_sync(owner.submit(console.end).result) if console is not None else ()
        owner.shutdown(wait=False)
        if left:
            numbers = ", ".join(map(str, left))
            what = f"{self._preset.executable} left processes that cannot be ended ({numbers})"
            raise AdapterFault(Fault.INTERNAL, PromptSent.MAYBE, what)

    async def _in_owner(self, work: Callable[[int], T]) -> T:
        """What ``work`` comes to in the thread that has the client. Raises what it raises."""
        owner = self._owner
        assert owner is not None

        def attempt(alarm: int) -> tuple[T] | AdapterFault | None:
            try:
                return (owner.submit(work, alarm).result(),)
            except AdapterFault as fault:
                return fault
            except Withdrawn:
                return None

        outcome = await sandbox.attended(attempt)
        assert outcome is not None, "only who was cancelled withdraws"
        return outcome[0]

    def _put_files(self) -> None:
        try:
            self._theirs.prepare({**self._derived, **self._call.filled(self._terminal.files, quoted=True)})
        except OSError as error:
            raise unusable(f"the client's own files cannot be put in order: {error}") from None
