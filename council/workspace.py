"""The folder of one debate: what it was made of, what came out, and everything thrown away with it.

debates/<time>-<slug>/
council.yaml, roles/   what was used, to be read or run again
presets/               the council's own, if it has some
transcript.jsonl       the record
logs/                  one file a process
certs/                 throw-away credentials, valid for a day
state/<seat>/          what a seat keeps
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from consilium.errors import UserError
from consilium.naming import debate_name
from consilium.strict_yaml import dump_tree
from wrapper.adapters.presets import OWN_PRESETS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from consilium.config import Council

PRIVATE = 0o700

_HEADING = """\
# The council of this debate, as it was held. To hold it again: consilium up -f council.yaml
"""


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder of one debate, and the places in it."""

    folder: Path

    @property
    def council(self) -> Path:
        """The council file that every process reads."""
        return self.folder / "council.yaml"

    @property
    def transcript(self) -> Path:
        """The record."""
        return self.folder / "transcript.jsonl"

    @property
    def logs(self) -> Path:
        """What processes say on standard error."""
        return self.folder / "logs"

    @property
    def certs(self) -> Path:
        """The authority of this debate, and what it issued."""
        return self.folder / "certs"

    def state(self, seat: str) -> Path:
        """What the wrapper of ``seat`` keeps."""
        return self.folder / "state" / seat

    @classmethod
    def create(
        cls, folder: Path, council: Council, roles: Iterable[Path], presets: Path | None = None
    ) -> Self:
        """Make ``folder``, with the council, its role files and the files of its own ``presets`` in it.

        Raises `UserError` when it is there and not empty, or cannot be written.
        """
        space = cls(folder.absolute())
        try:
            folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise UserError(f"{folder} is not empty", hint="give --dir a folder that is new or empty")
            for place in (space.logs, space.folder / "roles", *map(space.state, _names(council))):
                place.mkdir(mode=PRIVATE, parents=True)
            for role in roles:
                shutil.copyfile(role, space.folder / "roles" / role.name)
            if presets is not None:
                (space.folder / OWN_PRESETS).mkdir(mode=PRIVATE)
                for preset in presets.glob("*.toml"):
                    shutil.copyfile(preset, space.folder / OWN_PRESETS / preset.name)
            space.council.write_text(_HEADING + _dump(council), encoding="utf-8")
        except OSError as error:
            raise UserError(f"{folder} cannot be used: {error.strerror}") from None
        return space


def default_folder(parent: Path, *, time: str, topic: str) -> Path:
    """Make a folder in ``parent`` for a debate that begins at ``time``, which nobody else has.

    Raises `UserError` when it cannot be made.
    """
    folder = parent / debate_name(time, topic)
    number = 1
    try:
        parent.mkdir(parents=True, exist_ok=True)
        while not _is_new(folder):
            number += 1
            folder = parent / debate_name(time, topic, number)
    except OSError as error:
        raise UserError(f"{folder} cannot be used: {error.strerror}") from None
    return folder


def _is_new(folder: Path) -> bool:
    """Whether ``folder`` was not there; now it is."""
    try:
        folder.mkdir(mode=PRIVATE)
    except FileExistsError:
        return False
    return True


def _names(council: Council) -> Iterable[str]:
    return (seat.name for seat in council.participants)


def _dump(council: Council) -> str:
    return dump_tree(council.model_dump(mode="json", exclude_none=True))
