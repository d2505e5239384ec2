"""The folder that belongs to a client: what is put there for it, and what there proves that a chat exists.

Where the client has a user of its own, all of that is done as that user (`wrapper.isolation.keeper`): the
wrapper could not, and must not, follow what the client left there. Otherwise it is done directly. Blocking;
for a thread.
"""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from consilium.errors import AdapterFault
from wrapper import sandbox
from wrapper.clean import clean_line, decode_output
from wrapper.isolation import keeper

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Protocol

    from wrapper.isolation.confinement import Confinement

    class Belongings(Protocol):
        """The client's folder. Each raises `OSError` for what cannot be done there."""

        home: Path
        work: Path
        """An empty folder to work in, where there is no project."""

        def make_folders(self) -> None:
            """Make what has to be there before a client starts."""

        def prepare(self, files: Mapping[str, str], undo: Undo | None = None) -> None:
            """Put files there, by name; each is there whole or not at all, and not written again if it is.

            Before that ``undo`` is carried out.
            """

        def holds(self, pattern: str) -> bool:
            """Whether there is a file that ``pattern`` fits."""


@dataclass(frozen=True, slots=True)
class Undo:
    """Turns that did not succeed, undone: the files that fit ``patterns`` are put back as they were.

    A copy that is called ``claimed`` belongs to a turn that did succeed, and is dropped. ``copy`` is what the
    copy for the turn that comes is called; None if none comes.
    """

    patterns: tuple[str, ...]
    claimed: str | None
    copy: str | None = None


KEEPER_BOUNDS = sandbox.Bounds(overall=30, output_bytes=64 * 1024)

TEMPORARY = "tmp"


def belongings(folder: Path, confinement: Confinement, *, beside: bool = False) -> Belongings:
    """The client's part of the seat's state, which is in ``folder``.

    ``beside``: the client may be at work meanwhile, and is left alone.
    """
    if confinement.client is None:
        return _Ours(folder)
    return _Theirs(confinement, beside=beside)


class _Kept(ABC):
    """A client's folder, and what its keeper is asked for."""

    home: Path
    work: Path

    @abstractmethod
    def _ask(self, request: dict[str, Any]) -> bool:
        """Have the keeper do what ``request`` says."""

    def prepare(self, files: Mapping[str, str], undo: Undo | None = None) -> None:
        request: dict[str, Any] = {"files": dict(files)}
        if undo is not None:
            request["rewind"] = {"patterns": undo.patterns, "claimed": undo.claimed}
            if undo.copy is not None:
                request["copy"] = {"patterns": undo.patterns, "name": undo.copy}
        self._ask(request)

    def holds(self, pattern: str) -> bool:
        return self._ask({"proof": pattern})


class _Ours(_Kept):
    """The client has our user: its folder is ours."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.work = folder / "work"

    def make_folders(self) -> None:
        for folder in (self.home, self.home / TEMPORARY, self.work):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)

    def _ask(self, request: dict[str, Any]) -> bool:
        return keeper.perform(self.home, request)


class _Theirs(_Kept):
    """The client has a user of its own, and so has its folder."""

    def __init__(self, confinement: Confinement, *, beside: bool) -> None:
        assert confinement.client is not None
        self._beside = beside
        self._confinement = confinement
        self.home = confinement.client.home
        self.work = self.home / "work"

    def make_folders(self) -> None:
        self._ask({"folders": (TEMPORARY, self.work.name)})

    def _ask(self, request: dict[str, Any]) -> bool:
        command = sandbox.Command(
            argv=(sys.executable, "-I", "-S", keeper.__file__, str(self.home)),
            env={"PATH": os.defpath},
            cwd=self.home,
            stdin=json.dumps(request).encode(),
            confinement=self._confinement,
            alone=not self._beside,
        )
        try:
            done = sandbox.run_blocking(command, KEEPER_BOUNDS)
        except AdapterFault as fault:
            raise OSError(fault.detail) from None
        if done.returncode != 0 or done.stdout not in (b'{"found": true}', b'{"found": false}'):
            why = clean_line(decode_output(done.stderr), 300) or f"the keeper ended with {done.returncode}"
            raise OSError(why)
        return done.stdout == b'{"found": true}'
