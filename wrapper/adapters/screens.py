"""The part of a preset that says how its client is used in a terminal (§6.5).

Without it, `adapter: pexpect` cannot use the client.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from wrapper.adapters.parts import FileName, Part, PatternBelow, ProfileName, Text, Variable
from wrapper.terminal.keys import Key
from wrapper.terminal.reading import Signs

if TYPE_CHECKING:
    from collections.abc import Iterator


class Dialog(Part):
    """A question of the client's own: a ``pattern`` of what the screen shows then, and the ``keys`` to press.

    ``profiles`` are those in which we may answer; in another, the person has to.
    """

    pattern: Text
    keys: tuple[Key, ...]
    profiles: tuple[ProfileName, ...] = ("restricted", "native")


class Terminal(Part):
    """How the client is started in a terminal, what its screen shows, and which keys it takes.

    ``first`` and ``next`` are the arguments that begin a chat and that go on in the chat ``{id}``; without
    ``next`` a chat ends with its process. ``harness`` are the arguments of each profile; a profile that is
    not there is refused. ``set`` and ``files`` come on top of those of the preset; the files are put there
    whenever the client is started, where its home is the seat's. ``restore`` are patterns of the files that
    are put back after a turn that failed, before the client is started again.

    ``ready``, ``asked``, ``said``, ``working``, ``done``, ``aside``: see `wrapper.terminal.reading.Signs`.

    ``dialogs`` may come up before the client is ready, ``questions`` while it answers. ``submit`` sends what
    was pasted, ``leave`` ends the client.
    """

    first: tuple[str, ...]
    next: tuple[str, ...] = ()
    harness: dict[ProfileName, tuple[str, ...]]
    set: dict[Variable, str] = Field(default_factory=dict)
    files: dict[FileName, str] = Field(default_factory=dict)
    restore: tuple[PatternBelow, ...] = ()
    ready: Text
    asked: Text
    said: Text
    working: Text | None = None
    done: Text | None = None
    aside: tuple[Text, ...] = ()
    dialogs: tuple[Dialog, ...] = ()
    questions: tuple[Dialog, ...] = ()
    submit: tuple[Key, ...] = ("enter",)
    leave: tuple[Key, ...] = ("ctrl-c", "ctrl-c")

    @model_validator(mode="after")
    def _patterns_compile(self) -> Self:
        for where, pattern in self._patterns():
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{where}: {error}") from None
        return self

    @model_validator(mode="after")
    def _it_can_be_used(self) -> Self:
        if not self.harness:
            raise ValueError("harness: restricted, native or both")
        if self.restore and not self.next:
            raise ValueError("restore: without `next`, nobody goes on in the chat that is put back")
        return self

    def signs(self) -> Signs:
        """How the screen is read."""
        return Signs(
            ready=re.compile(self.ready, re.MULTILINE),
            asked=re.compile(self.asked),
            said=re.compile(self.said),
            working=None if self.working is None else re.compile(self.working),
            done=None if self.done is None else re.compile(self.done),
            aside=tuple(map(re.compile, self.aside)),
        )

    def _patterns(self) -> Iterator[tuple[str, str]]:
        for key in ("ready", "asked", "said", "working", "done"):
            if (pattern := getattr(self, key)) is not None:
                yield key, pattern
        for number, pattern in enumerate(self.aside):
            yield f"aside[{number}]", pattern
        for key in ("dialogs", "questions"):
            for number, dialog in enumerate(getattr(self, key)):
                yield f"{key}[{number}].pattern", dialog.pattern
