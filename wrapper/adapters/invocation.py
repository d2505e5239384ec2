"""How a preset's client is called in one seat: its arguments, its environment, the files that it finds."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from consilium.errors import UserError
from wrapper import bridges
from wrapper.adapters import templates
from wrapper.adapters.belongings import TEMPORARY
from wrapper.adapters.gaps import HARNESS, ID_GAP, NEW_ID_GAP, OPTIONS, PROMPT_GAP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from wrapper.adapters.parts import Derived, ProfileName
    from wrapper.adapters.presets import Preset
    from wrapper.adapters.screens import Terminal

USERS_HOME = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
"""Where a person's own programs find what is theirs."""


class Invocation:
    """One seat's way of calling its client; ``home`` is the folder of the client's state.

    ``apart``: the client has a user of its own, to whom the folders of the wrapper's user are closed.
    """

    def __init__(
        self,
        preset: Preset,
        profile: ProfileName,
        settings: Mapping[str, str],
        home: Path,
        *,
        apart: bool = False,
    ) -> None:
        """Raises `UserError` for settings that do not fit, or a profile that the preset has not."""
        self._preset = preset
        self._profile = preset.profile(profile)
        self._profile_name = profile
        self._home = home
        self._apart = apart
        own = {"home": str(home), "system_file": str(home / self._profile.system_file)}
        self._values = {**preset.complete(settings), **own}

    @property
    def is_the_users(self) -> bool:
        """Whether the client keeps its chats with everything else of the person who runs the wrapper."""
        return self._profile.home == "user" and not self._apart

    @property
    def model(self) -> str | None:
        """The model that the client is asked to use, if it is asked for one."""
        return self._values.get("model")

    def arguments(self, chat: str | None, new: str | None) -> tuple[str, ...]:
        """The arguments of a turn in ``chat``, None for the first; ``new`` is the chat's id after it."""
        preset = self._preset
        arguments = preset.run.first if chat is None else preset.run.next
        values = {**self._values, ID_GAP: chat or "", NEW_ID_GAP: new or ""}
        return tuple(self._filled(arguments, self._profile.arguments, values))

    def in_terminal(self, terminal: Terminal, chat: str | None, new: str | None) -> tuple[str, ...]:
        """The arguments that start the client in a terminal: in ``chat``, or in a new one called ``new``."""
        arguments = terminal.first if chat is None else terminal.next
        values = {**self._values, ID_GAP: chat or "", NEW_ID_GAP: new or ""}
        return tuple(self._filled(arguments, terminal.harness[self._profile_name], values))

    def filled(self, templates_by_name: Mapping[str, str], *, quoted: bool = False) -> dict[str, str]:
        """Variables or, ``quoted``, files of this seat, out of their templates."""
        fill = templates.fill_quoted if quoted else templates.fill
        return {name: fill(value, self._values) for name, value in templates_by_name.items()}

    def prompt(self, text: str, system_prompt: str, *, first: bool) -> bytes:
        """What the client reads for a turn that asks ``text``."""
        if first and self._profile.instructions == "prompt":
            text = f"{system_prompt}\n\n{text}"
        for piece, instead in self._profile.replace.items():
            text = text.replace(piece, instead)
        text = self._preset.run.lead + text
        if self._preset.run.form is not None:
            text = templates.fill_quoted(self._preset.run.form, {PROMPT_GAP: text})
        return text.encode("utf-8", "replace")

    def environment(self, ours: Mapping[str, str], passed: Sequence[str]) -> dict[str, str]:
        """The client's whole environment: of ``ours`` what the preset passes, and the names in ``passed``."""
        if refused := [name for name in passed if name.startswith("CONSILIUM_")]:
            raise UserError(f"{refused[0]} is the wrapper's own and is not passed to a client")
        preset = self._preset
        named = (*preset.env.passed, *passed)
        given = (setting for name, setting in preset.settings.items() if name in self._values)
        fixed = {**preset.env.set, **self._profile.set}
        fixed |= {name: value for setting in given for name, value in setting.set.items()}
        env = {name: ours[name] for name in preset.env.passed if name in ours}
        env |= self.filled(fixed)
        env |= {name: ours[name] for name in passed if name in ours}
        if self.is_the_users:
            own = (*USERS_HOME, *preset.state.variables, *named)
            env |= {name: ours[name] for name in own if name in ours}
        else:
            env |= dict.fromkeys(preset.state.variables, str(self._home))
        # A client that was installed with us is found even where our environment is not activated.
        env["PATH"] = os.pathsep.join((env.get("PATH", os.defpath), str(Path(sys.executable).parent)))
        env["TMPDIR"] = str(self._home / TEMPORARY)
        return env

    def files(self, system_prompt: str) -> dict[str, str]:
        """What stands in the folder of the client's state before a turn, by name."""
        own = {self._profile.system_file: self._profile.system_head + system_prompt}
        return own | self.lasting_files

    @property
    def lasting_files(self) -> dict[str, str]:
        """What of it is the same for every chat."""
        return self.filled({**self._preset.state.files, **self._profile.files}, quoted=True)

    def proof(self, chat: str) -> str:
        """The pattern of a file that exists as long as ``chat`` does."""
        return templates.fill(self._preset.state.proof, {**self._values, ID_GAP: chat})

    def _filled(
        self, arguments: Sequence[str], harness: Sequence[str], values: Mapping[str, str]
    ) -> Iterator[str]:
        for argument in arguments:
            if argument == HARNESS:
                yield from self._filled(harness, (), values)
            elif argument == OPTIONS:
                for name, setting in self._preset.settings.items():
                    yield from self._filled(setting.arguments if name in values else (), (), values)
            else:
                yield templates.fill(argument, values)


def program(preset: Preset, path: str) -> tuple[str, ...]:
    """What to start for ``preset`` with this ``PATH``: what is behind a launcher, where that is known."""
    found = shutil.which(preset.executable, path=path)
    folder = Path(found).resolve().parent if found is not None else None
    behind = (file for pattern in preset.behind if folder for file in sorted(folder.glob(pattern)))
    needed = os.R_OK if preset.interpreter else os.X_OK
    file = next((file for file in behind if os.access(file, needed)), None)
    return (preset.executable,) if file is None else (*preset.interpreter, str(file.resolve()))


def bridge(preset: Preset) -> tuple[str, ...]:
    """What stands before the program and its arguments, where a bridge of ours speaks with the client."""
    name = preset.run.bridge
    # By its path: it is the client's place in which it starts a process, never ours.
    return (sys.executable, "-I", "-S", str(Path(bridges.__file__).parent / f"{name}.py")) if name else ()


def derive(printed: bytes, rule: Derived) -> str:
    """What the client ``printed``, changed as ``rule`` says. Raises `ValueError` for another form."""
    document = json.loads(printed)
    members = document
    for step in rule.each.split("/")[1:]:
        members = members.get(step) if isinstance(members, dict) else None
    if not isinstance(members, list) or not all(isinstance(member, dict) for member in members):
        raise ValueError(f"there is no list at {rule.each}")
    for member in members:
        for key in rule.drop:
            member.pop(key, None)
        member.update(rule.set)
    return json.dumps(document)
