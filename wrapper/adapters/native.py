"""A client that runs once a turn and resumes the seat's chat by its exact id (§6.6).

1. The id is read back on the first turn, kept once that turn has succeeded, and compared on every later one.
   A chat that is missing or another one fails the turn; there is no silent new beginning.
2. A turn is tried once. Whether it may be tried again is the operator's decision, and what an `AdapterFault`
   says of the prompt is what there is to decide on.
3. Nothing of the client's outlives its turn; `wrapper.sandbox` sees to that. What we put into its folder is
   put back before every turn, whatever the client made of it.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from consilium.errors import AdapterFault, UserError
from consilium.messages import Fault, PromptSent
from wrapper import sandbox
from wrapper.adapters import templates
from wrapper.adapters.base import Answer, ParticipantAdapter
from wrapper.adapters.belongings import TEMPORARY, belongings
from wrapper.adapters.faults import fault_of
from wrapper.adapters.keeping import KeptChat, fingerprint, keep_chat, kept_chat, lock_folder
from wrapper.adapters.presets import ID_GAP
from wrapper.adapters.reading import Unreadable, read_answer
from wrapper.clean import clean_line, decode_output
from wrapper.isolation.confinement import PLAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wrapper.adapters.presets import Preset
    from wrapper.adapters.reading import Reading
    from wrapper.isolation.confinement import Confinement

VERSION_BOUNDS = sandbox.Bounds(overall=30, output_bytes=64 * 1024)

SYSTEM_FILE = "system-prompt.txt"

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
"""An id that can stand in an argument list and in a file's name without being anything else there."""


class NativeAdapter(ParticipantAdapter):
    """One seat's client. Our state is in ``folder``, the client's in its `belongings`."""

    def __init__(
        self,
        preset: Preset,
        settings: Mapping[str, str],
        folder: Path,
        *,
        environment: Mapping[str, str],
        bounds: sandbox.Bounds,
        cwd: Path | None = None,
        passed: Sequence[str] = (),
        confinement: Confinement = PLAIN,
    ) -> None:
        """Raises `UserError` for what cannot be carried out as it is configured.

        ``environment`` is the wrapper's: the client gets of it what the preset passes, and the names in
        ``passed``. ``cwd`` is an operator's project for the native harness; without it, an empty folder.
        """
        self._preset = preset
        self._folder = folder
        self._confinement = confinement
        self._theirs = belongings(folder, confinement)
        self._home = self._theirs.home
        self._cwd = cwd or self._theirs.work
        self._bounds = (
            bounds if preset.run.output == "streamed" else replace(bounds, first_byte=None, stall=None)
        )
        if cwd is not None and not cwd.is_dir():
            raise UserError(f"{cwd} is not a folder in which a client could work")
        own = {"home": str(self._home), "system_file": str(self._home / SYSTEM_FILE)}
        self._values = {**preset.complete(settings), **own}
        self._env = self._environment(environment, passed)
        self._turn = anyio.Lock()
        self._lock: int | None = None
        self._system_prompt = ""
        self._id: str | None = None
        self._kept = False
        self._memory_lost = False

    @property
    def memory_lost(self) -> bool:
        """See `ParticipantAdapter`."""
        return self._memory_lost

    async def version(self) -> str:
        """The client's version. Raises `UserError` if it is not there, or too old to be understood."""
        preset = self._preset
        command = self._command((preset.executable, *preset.version.argv))
        try:
            await anyio.to_thread.run_sync(self._make_folders)
            done = await sandbox.run(command, VERSION_BOUNDS)
        except AdapterFault as fault:
            raise UserError(fault.detail, hint=preset.install) from None
        except OSError as error:
            raise UserError(
                f"{self._folder} cannot be used for a seat's state: {error.strerror or error}"
            ) from None
        said = decode_output(done.stdout + done.stderr)
        found = re.search(preset.version.pattern, said)
        if found is None:
            raise UserError(
                f"{' '.join(command.argv)} says no version: {clean_line(said, 200) or 'nothing'}",
                hint=preset.install,
            )
        number, oldest = found[1], preset.version.minimum
        if _numbers(number) < _numbers(oldest):
            raise UserError(
                f"{preset.executable} {number} is too old; it has to be {oldest} at least",
                hint=preset.install,
            )
        return number

    # --- the chat ------------------------------------------------------------------------------------

    async def open(self, system_prompt: str) -> None:
        """See `ParticipantAdapter`."""
        if self._lock is None:
            await anyio.to_thread.run_sync(self._open, system_prompt)

    async def restart(self, system_prompt: str) -> None:
        """See `ParticipantAdapter`. The chat that is given up stays where the client keeps it."""
        self._check_open()
        async with self._turn:
            await anyio.to_thread.run_sync(self._begin_anew, system_prompt)

    async def close(self) -> None:
        """See `ParticipantAdapter`."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    async def send_turn(self, text: str) -> Answer:
        """See `ParticipantAdapter`."""
        self._check_open()
        try:
            self._turn.acquire_nowait()
        except anyio.WouldBlock:
            raise AdapterFault(Fault.INTERNAL, PromptSent.NO, "a turn is running in this chat") from None
        try:
            return await self._take_turn(text)
        finally:
            self._turn.release()

    def _check_open(self) -> None:
        if self._lock is None:
            raise RuntimeError("the adapter is not open")

    async def _take_turn(self, text: str) -> Answer:
        await anyio.to_thread.run_sync(self._put_back)
        done = await sandbox.run(self._command(self._argv(), text.encode("utf-8", "replace")), self._bounds)
        fault = fault_of(done, self._preset, self._bounds)
        if fault is not None:
            raise fault
        reading = self._read(done.stdout)
        chat = self._chat_of(reading, len(done.stdout))
        if not reading.text.strip():
            raise self._answered(Fault.EMPTY_ANSWER, "gave an empty answer", len(done.stdout))
        self._id = chat
        if not self._kept:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._keep, chat)
        usage = reading.usage
        if self._preset.run.output == "streamed" and done.first_byte is not None:
            usage = usage.model_copy(update={"first_byte_ms": round(done.first_byte * 1000)})
        return Answer(reading.text, usage)

    def _read(self, output: bytes) -> Reading:
        try:
            return read_answer(output, self._preset.answer)
        except Unreadable as error:
            shown = clean_line(decode_output(output[:2000]), 300)
            what = f"cannot be understood: {error}: {shown}"
            raise self._answered(Fault.UNREADABLE_ANSWER, what, len(output)) from None

    def _chat_of(self, reading: Reading, seen: int) -> str:
        """The id of the chat that answered. §3.3.B: a missing or a changed one fails the turn."""
        chat = reading.id
        if chat is None or not _ID.fullmatch(chat):
            raise self._answered(Fault.SESSION_MISMATCH, "does not say in which chat it answered", seen)
        if self._id is not None and chat != self._id:
            what = f"answered in the chat {chat}, not in {self._id}"
            raise self._answered(Fault.SESSION_MISMATCH, what, seen)
        return chat

    def _answered(self, fault: Fault, what: str, seen: int) -> AdapterFault:
        """A fault of a turn that was answered, if one may call it so: the prompt is in the chat."""
        detail = f"{self._preset.executable} {what}"
        return AdapterFault(fault, PromptSent.YES, detail, partial_bytes=seen)

    # --- the client's call ---------------------------------------------------------------------------

    def _argv(self) -> tuple[str, ...]:
        run, values = self._preset.run, self._values
        if self._id is None:
            return (self._preset.executable, *(templates.fill(part, values) for part in run.first))
        values = {**values, ID_GAP: self._id}
        return (self._preset.executable, *(templates.fill(part, values) for part in run.next))

    def _command(self, argv: tuple[str, ...], stdin: bytes = b"") -> sandbox.Command:
        return sandbox.Command(
            argv=argv, env=self._env, cwd=self._cwd, stdin=stdin, confinement=self._confinement
        )

    def _environment(self, ours: Mapping[str, str], passed: Sequence[str]) -> dict[str, str]:
        if refused := [name for name in passed if name.startswith("CONSILIUM_")]:
            raise UserError(f"{refused[0]} is the wrapper's own and is not passed to a client")
        preset = self._preset
        env = {name: ours[name] for name in preset.env.passed if name in ours}
        env |= {name: templates.fill(value, self._values) for name, value in preset.env.set.items()}
        env |= {name: ours[name] for name in passed if name in ours}
        env |= dict.fromkeys(preset.state.variables, str(self._home))
        # A client that was installed with us is found even where our environment is not activated.
        env["PATH"] = os.pathsep.join((env.get("PATH", os.defpath), str(Path(sys.executable).parent)))
        env["TMPDIR"] = str(self._home / TEMPORARY)
        return env

    # --- files; in a thread --------------------------------------------------------------------------

    def _open(self, system_prompt: str) -> None:
        try:
            self._make_folders()
            lock = lock_folder(self._folder)
        except BlockingIOError:
            raise _unusable(f"another wrapper is using {self._folder}") from None
        except OSError as error:
            raise _unusable(f"{self._folder} cannot be used for a seat's state: {error}") from None
        try:
            self._resume(kept_chat(self._folder), system_prompt)
            self._write_files(system_prompt)
        except OSError as error:
            os.close(lock)
            raise _unusable(f"a seat's state cannot be kept: {error}") from None
        except AdapterFault:
            os.close(lock)
            raise
        self._lock = lock

    def _resume(self, chat: KeptChat | None, system_prompt: str) -> None:
        """Decide what this seat remembers."""
        if chat is None:
            return
        if chat.id is None or chat.preset != self._preset.name or not self._exists(chat.id):
            # Said once more on every start until the new chat has answered; then the file tells of that one.
            self._memory_lost = True
            return
        if chat.system_prompt != fingerprint(system_prompt):
            # The client would go on with the old one, and the record would name a role that nobody took.
            raise _unusable(
                f"the chat kept in {self._folder} was begun with another system prompt; "
                "give back that role, or begin with an empty folder"
            )
        self._id, self._kept = chat.id, True

    def _exists(self, chat: str) -> bool:
        if not _ID.fullmatch(chat):
            return False
        return self._theirs.holds(templates.fill(self._preset.state.proof, {**self._values, ID_GAP: chat}))

    def _begin_anew(self, system_prompt: str) -> None:
        given_up = KeptChat(preset=self._preset.name, id=None, system_prompt=fingerprint(system_prompt))
        try:
            keep_chat(self._folder, given_up)
            self._write_files(system_prompt)
        except OSError as error:
            raise _unusable(f"a seat's state cannot be kept: {error}") from None
        self._id, self._kept, self._memory_lost = None, False, True

    def _keep(self, chat: str) -> None:
        prompt = fingerprint(self._system_prompt)
        try:
            keep_chat(self._folder, KeptChat(preset=self._preset.name, id=chat, system_prompt=prompt))
        except OSError as error:
            why = f"the chat's id could not be kept: {error}"
            raise AdapterFault(Fault.INTERNAL, PromptSent.YES, why) from None
        self._kept = True

    def _make_folders(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        self._theirs.make_folders()

    def _put_back(self) -> None:
        try:
            self._write_files(self._system_prompt)
        except OSError as error:
            raise _unusable(f"the client's own files cannot be put in order: {error}") from None

    def _write_files(self, system_prompt: str) -> None:
        self._system_prompt = system_prompt
        files = self._preset.state.files.items()
        self._theirs.put(
            {SYSTEM_FILE: system_prompt}
            | {name: templates.fill_quoted(content, self._values) for name, content in files}
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _unusable(why: str) -> AdapterFault:
    return AdapterFault(Fault.START_FAILED, PromptSent.NO, why)
