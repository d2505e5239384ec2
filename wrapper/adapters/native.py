"""A client that runs once a turn and resumes the seat's chat by its exact id (§6.6).

1. The chat's id is chosen by us or read back, and compared on every later turn. Where a client would remember
   a failed turn, each turn is taken in a copy of the chat, which only success makes the seat's, or what the
   client keeps is put back before the next one.
2. A turn is tried once. Whether it may be tried again is the operator's decision, and what an `AdapterFault`
   says of the prompt is what there is to decide on.
3. Nothing of the client's outlives its turn; `wrapper.sandbox` sees to that.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper.adapters import chats
from wrapper.adapters.base import Answer
from wrapper.adapters.client import ClientAdapter
from wrapper.adapters.faults import fault_of, told
from wrapper.adapters.invocation import bridge
from wrapper.adapters.reading import Unreadable, read_answer
from wrapper.clean import clean_line, decode_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wrapper import sandbox
    from wrapper.adapters.reading import Reading
    from wrapper.sandbox import Bounds, Completed

DETAIL_CHARS = 900
"""What is kept of the sentence about a fault."""


class NativeAdapter(ClientAdapter):
    """One seat's client, by its non-interactive mode."""

    async def _take_turn(self, text: str) -> Answer:
        turn = uuid.uuid4().hex if self._undone else None
        await anyio.to_thread.run_sync(self._put_back, turn, self._id)
        preset, had = self._preset, self._id
        new = self._new_id()
        # Silence says nothing of a client that prints when it is done.
        silent = preset.run.output == "at_end"
        bounds = replace(self._bounds, first_byte=None, stall=None) if silent else self._bounds
        command = self._turn_command(self._call.arguments(had, new), self._prompt(text))
        done = await self._run(command, bounds)
        del command  # and the prompt with it: a megabyte would stand beside the answer
        with anyio.CancelScope(shield=True):
            # In a thread: what a client says may be long, and a seat has a heart that must not stop for it.
            reading, chat = await anyio.to_thread.run_sync(self._understand, done, new, bounds)
            cumulative = preset.answer.cumulative
            usage = chats.usage_of(reading, cumulative, None if had is None else self._counters)
            counted = {name: reading.counters[name] for name in cumulative if name in reading.counters}
            counters = {**self._counters, **counted}
            await anyio.to_thread.run_sync(self._adopt, chat, counters, turn)
        if preset.run.output == "streamed" and done.first_byte is not None:
            usage = usage.model_copy(update={"first_byte_ms": round(done.first_byte * 1000)})
        return Answer(reading.text, usage, reading.refused)

    def _new_id(self) -> str | None:
        """The id of the chat after this turn, where it is ours to choose and not settled yet."""
        chat = self._preset.chat
        return (
            str(uuid.uuid4()) if chat.id == "chosen" and (self._id is None or chat.turn == "fork") else None
        )

    def _understand(self, done: Completed, new: str | None, bounds: Bounds) -> tuple[Reading, str]:
        """What a run says, and the chat that says it. Raises `AdapterFault`."""
        fault = fault_of(done, self._preset, bounds)
        if fault is not None:
            raise fault
        reading = self._read(done.stdout)
        return reading, self._check(reading, done, new)

    def _read(self, output: bytes) -> Reading:
        try:
            return read_answer(output, self._preset.answer)
        except Unreadable as error:
            shown = clean_line(decode_output(output[:2000]), 300)
            what = f"cannot be understood: {error}: {shown}"
            raise self._answered(Fault.UNREADABLE_ANSWER, what, len(output)) from None

    def _check(self, reading: Reading, done: Completed, new: str | None) -> str:
        """The chat that answered. §3.3.B: a missing or a changed one fails the turn; so does no answer."""
        preset, seen = self._preset, len(done.stdout)
        try:
            chat = chats.answered_in(preset.chat, reading.id, had=self._id, chosen=new)
        except chats.Mismatch as wrong:
            raise self._answered(Fault.SESSION_MISMATCH, str(wrong), seen) from None
        if chats.began_anew(preset.chat, preset.answer.cumulative, reading.counters, self._counters):
            raise self._answered(Fault.SESSION_MISMATCH, "answered in a chat that counts anew", seen)
        if reading.calls == 0:
            # Taken for a command, or stopped before it went anywhere: the text is the client's own.
            raise told(done, preset, f"{preset.executable} asked no model", reading.text, PromptSent.NO)
        if not reading.text.strip():
            raise self._answered(Fault.EMPTY_ANSWER, "gave an empty answer", seen, reading.refused)
        return chat

    def _answered(self, fault: Fault, what: str, seen: int, refused: tuple[str, ...] = ()) -> AdapterFault:
        """A fault of a turn that was answered, if one may call it so: the prompt reached the client."""
        detail = clean_line(f"{self._preset.executable} {what}", DETAIL_CHARS)
        return AdapterFault(fault, PromptSent.YES, detail, partial_bytes=seen, refused=refused)

    def _prompt(self, text: str) -> bytes:
        preset = self._preset
        prompt = self._call.prompt(text, self._system_prompt, first=self._id is None)
        longest = preset.run.longest
        if longest is not None and len(prompt) > longest:
            why = f"{preset.executable} is given {longest} bytes at most, and this prompt has {len(prompt)}"
            raise AdapterFault(Fault.CLIENT_ERROR, PromptSent.NO, why)
        return prompt

    def _turn_command(self, arguments: Sequence[str], prompt: bytes) -> sandbox.Command:
        command, front = self._command(arguments, prompt), bridge(self._preset)
        return replace(command, argv=(*front, *command.argv), bridged=bool(front))
