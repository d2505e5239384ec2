"""What every adapter of a client does, whatever way it talks to it: the seat's chat, kept and resumed (§6.6).

1. The chat's id is kept once a turn has succeeded. A chat that is missing fails the turn; there is no silent
   new beginning.
2. One turn at a time, and one wrapper at a time in a seat's folder.
3. What we put into the client's folder is put back before every turn, whatever the client made of it.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from consilium.errors import AdapterFault, UserError
from consilium.messages import Fault, PromptSent
from wrapper import sandbox
from wrapper.adapters import chats
from wrapper.adapters.base import Answer, ParticipantAdapter
from wrapper.adapters.belongings import Undo, belongings
from wrapper.adapters.hiding import Keys
from wrapper.adapters.invocation import Invocation, derive, program
from wrapper.adapters.keeping import KeptChat, fingerprint, keep_chat, kept_chat, lock_folder
from wrapper.clean import clean_line, decode_output
from wrapper.isolation.confinement import PLAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wrapper.adapters.parts import Counter, Derived, ProfileName
    from wrapper.adapters.presets import Preset
    from wrapper.isolation.confinement import Confinement

VERSION_BOUNDS = sandbox.Bounds(overall=30, output_bytes=64 * 1024)
_VERSION = re.compile(r"(?=.{1,80}\Z)[0-9]+(\.[0-9]+)*")

TERMINAL_VARIABLES = ("TERM", "COLORTERM")
"""What says which terminal a person sits at. A turn has none, and is told of none."""

DERIVED_BOUNDS = sandbox.Bounds(overall=60)


class ClientAdapter(ParticipantAdapter):
    """One seat's client. Our state is in ``folder``, the client's in its `belongings`."""

    stays = False
    """Whether the client runs on between its turns."""

    def __init__(
        self,
        preset: Preset,
        settings: Mapping[str, str],
        folder: Path,
        *,
        environment: Mapping[str, str],
        bounds: sandbox.Bounds,
        profile: ProfileName = "restricted",
        cwd: Path | None = None,
        passed: Sequence[str] = (),
        confinement: Confinement = PLAIN,
    ) -> None:
        """Raises `UserError` for what cannot be carried out as it is configured.

        ``environment`` is the wrapper's: the client gets of it what the preset passes, and the names in
        ``passed``. ``cwd`` is an operator's project for the native harness; without it, an empty folder.
        """
        self._preset = preset
        self._profile = profile
        changed = self._changed_by_a_turn()  # a preset that cannot be used in this way is refused first
        self._folder = folder
        self._confinement = confinement
        self._theirs = belongings(folder, confinement, beside=self.stays)
        self._home = self._theirs.home
        self._cwd = cwd or self._theirs.work
        self._bounds = bounds
        if cwd is not None and not cwd.is_dir():
            raise UserError(f"{cwd} is not a folder in which a client could work")
        self._call = Invocation(preset, profile, settings, self._home, apart=confinement.client is not None)
        self._undone = () if self._call.is_the_users else changed
        self._env = self._environment(environment, passed)
        self._keys = Keys(preset, passed, self._env)
        self._program = program(preset, self._env["PATH"])
        self._turn = anyio.Lock()
        self._lock: int | None = None
        self._system_prompt = ""
        self._derived: dict[str, str] = {}
        self._id: str | None = None
        self._counters: Mapping[Counter, float] = {}
        self._succeeded: str | None = None
        self._memory_lost = False

    @property
    def memory_lost(self) -> bool:
        """See `ParticipantAdapter`."""
        return self._memory_lost

    async def version(self) -> str:
        """The client's version. Raises `UserError` if it is not there, or too old to be understood."""
        preset = self._preset
        command = self._command(preset.version.argv)
        try:
            await anyio.to_thread.run_sync(self._make_folders)
            if files := self._call.lasting_files:
                await anyio.to_thread.run_sync(self._theirs.prepare, files)
            done = await self._run(command, VERSION_BOUNDS)
        except AdapterFault as fault:
            raise UserError(fault.detail, hint=preset.install) from None
        except OSError as error:
            raise UserError(
                f"{self._folder} cannot be used for a seat's state: {error.strerror or error}"
            ) from None
        said = decode_output(done.stdout + done.stderr)
        found = re.search(preset.version.pattern, said)
        version = found[1] if found and _VERSION.fullmatch(found[1]) else None
        if version is None:
            raise UserError(
                f"{' '.join(command.argv)} says no version: {clean_line(said, 200) or 'nothing'}",
                hint=preset.install,
            )
        if preset.version.is_older(version):
            oldest = preset.version.minimum
            raise UserError(
                f"{preset.executable} {version} is too old; it has to be {oldest} at least",
                hint=preset.install,
            )
        return version

    async def ask(self, arguments: Sequence[str], bounds: sandbox.Bounds) -> sandbox.Completed:
        """Run the client for what is no turn. Raises `AdapterFault` if it cannot be started."""
        await anyio.to_thread.run_sync(self._make_folders)
        return await self._run(self._command(arguments), bounds)

    def attended(self, arguments: Sequence[str]) -> int:
        """Run the client for the person at this terminal, as its seat runs it; return its exit code.

        Blocks until it ends. Raises `AdapterFault`.
        """
        self._make_folders()
        command = self._command(arguments)
        terminal = {name: os.environ[name] for name in TERMINAL_VARIABLES if name in os.environ}
        # A turn of the same seat may be running beside it.
        return sandbox.run_attended(replace(command, env={**command.env, **terminal}, alone=False))

    @property
    def environment(self) -> Mapping[str, str]:
        """What the client finds in its environment."""
        return self._env

    def keeps(self, pattern: str) -> bool:
        """Whether a file that fits ``pattern`` stands below the client's HOME."""
        if self._call.is_the_users:
            return any(Path(self._env.get("HOME", "/")).glob(pattern))
        return self._theirs.holds(pattern)

    async def _printed(self, name: str, rule: Derived) -> str:
        """A file of the client's that it prints itself. Raises `AdapterFault`."""
        command = self._command(rule.argv)
        done = await self._run(command, DERIVED_BOUNDS)
        try:
            return derive(done.stdout, rule)
        except ValueError as error:
            said = clean_line(decode_output(done.stderr), 300)
            why = f"{' '.join(command.argv)} does not print what {name} is made of: {error}: {said}"
            raise unusable(why) from None

    def _environment(self, ours: Mapping[str, str], passed: Sequence[str]) -> dict[str, str]:
        """What the client finds in its environment, of ``ours`` what it may."""
        return self._call.environment(ours, passed)

    def _changed_by_a_turn(self) -> tuple[str, ...]:
        """Patterns of the client's files that are put back after a turn that did not succeed."""
        return self._preset.state.chat

    # --- the chat ------------------------------------------------------------------------------------

    async def open(self, system_prompt: str) -> None:
        """See `ParticipantAdapter`."""
        if self._lock is None:
            await anyio.to_thread.run_sync(self._open, system_prompt)
            try:
                for name, rule in self._preset.state.derived.items():
                    self._derived[name] = await self._printed(name, rule)
            except BaseException:
                await self.close()
                raise

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
            answer = await self._take_turn(text)
            refused = tuple(map(self._keys.hide, answer.refused))
            return replace(answer, text=self._keys.hide(answer.text), refused=refused)
        except AdapterFault as fault:
            fault.detail = self._keys.hide(fault.detail)
            fault.args = (fault.detail,)
            fault.refused = tuple(map(self._keys.hide, fault.refused))
            raise
        finally:
            self._turn.release()

    @abstractmethod
    async def _take_turn(self, text: str) -> Answer:
        """Have the chat answer ``text``; nobody else is asking. Raises `AdapterFault`."""

    def _check_open(self) -> None:
        if self._lock is None:
            raise RuntimeError("the adapter is not open")

    async def _run(self, command: sandbox.Command, bounds: sandbox.Bounds) -> sandbox.Completed:
        """Run ``command`` to its end; the keys that it was given are hidden in what it printed."""
        done = await sandbox.run(command, bounds)
        hide = self._keys.hide_bytes
        return replace(done, stdout=hide(done.stdout), stderr=hide(done.stderr))

    def _command(self, arguments: Sequence[str], stdin: bytes = b"") -> sandbox.Command:
        return sandbox.Command(
            argv=(*self._program, *arguments),
            env=self._env,
            cwd=self._cwd,
            stdin=stdin,
            confinement=self._confinement,
        )

    # --- files; in a thread --------------------------------------------------------------------------

    def _open(self, system_prompt: str) -> None:
        try:
            self._make_folders()
            lock = lock_folder(self._folder)
        except BlockingIOError:
            raise unusable(f"another wrapper is using {self._folder}") from None
        except OSError as error:
            raise unusable(f"{self._folder} cannot be used for a seat's state: {error}") from None
        try:
            kept = kept_chat(self._folder)
            self._succeeded = None if kept is None else kept.turn
            if self._undone:
                self._theirs.prepare({}, Undo(self._undone, self._succeeded))
            self._resume(kept, system_prompt)
            self._write_files(system_prompt)
        except OSError as error:
            os.close(lock)
            raise unusable(f"a seat's state cannot be kept: {error}") from None
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
            raise unusable(
                f"the chat kept in {self._folder} was begun with another system prompt; "
                "give back that role, or begin with an empty folder"
            )
        if self._preset.chat.model == "fixed" and chat.model != self._call.model:
            raise unusable(
                f"the chat kept in {self._folder} was held with the model {chat.model}, and the client does "
                "not go on with another; give back that model, or begin with an empty folder"
            )
        self._id, self._counters = chat.id, chat.counters

    def _exists(self, chat: str) -> bool:
        if not chats.is_id(self._preset.chat, chat):
            return False
        # In the folders of a person we do not look: there the client itself says with the next turn what is
        # gone.
        return self._call.is_the_users or self._theirs.holds(self._call.proof(chat))

    def _begin_anew(self, system_prompt: str) -> None:
        given_up = KeptChat(
            preset=self._preset.name,
            id=None,
            system_prompt=fingerprint(system_prompt),
            turn=self._succeeded,
        )
        try:
            keep_chat(self._folder, given_up)
            self._write_files(system_prompt)
        except OSError as error:
            raise unusable(f"a seat's state cannot be kept: {error}") from None
        self._id, self._counters, self._memory_lost = None, {}, True

    def _adopt(self, chat: str, counters: Mapping[Counter, float], turn: str | None) -> None:
        """Make ``chat`` the seat's, on disk first: what is not kept has not succeeded."""
        kept = KeptChat(
            preset=self._preset.name,
            id=chat,
            system_prompt=fingerprint(self._system_prompt),
            counters=dict(counters),
            model=self._call.model,
            turn=turn,
        )
        try:
            if (chat, counters, turn) != (self._id, self._counters, self._succeeded):
                keep_chat(self._folder, kept)
        except OSError as error:
            why = f"the chat's id could not be kept: {error}"
            raise AdapterFault(Fault.INTERNAL, PromptSent.YES, why) from None
        self._id, self._counters, self._succeeded = chat, counters, turn

    def _make_folders(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        self._theirs.make_folders()

    def _put_back(self, turn: str | None, chat: str | None = None) -> None:
        """Put the client's folder in order for the ``turn`` that comes; what no success claimed is undone.

        A ``chat`` has to be there then: some clients begin another in the place of one that is gone, with the
        same id and without a word.
        """
        undo = Undo(self._undone, self._succeeded, turn) if self._undone else None
        proof = self._call.proof(chat) if chat is not None and not self._call.is_the_users else ""
        try:
            found = self._write_files(self._system_prompt, undo, proof)
        except OSError as error:
            raise unusable(f"the client's own files cannot be put in order: {error}") from None
        if proof and not found:
            why = f"the chat {chat} is not in the folder of {self._preset.executable} any more"
            raise AdapterFault(Fault.SESSION_MISMATCH, PromptSent.NO, why)

    def _write_files(self, system_prompt: str, undo: Undo | None = None, proof: str = "") -> bool:
        self._system_prompt = system_prompt
        return self._theirs.prepare({**self._call.files(system_prompt), **self._derived}, undo, proof)


def unusable(why: str) -> AdapterFault:
    """The client cannot be used, and was told nothing."""
    return AdapterFault(Fault.START_FAILED, PromptSent.NO, why)
