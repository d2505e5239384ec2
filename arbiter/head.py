"""The head beside a transcript: how much of the file the Arbiter vouches for (§5.6).

It is replaced as a whole, so that a reader and a crash find the old one or the new one, and never before the
records that it vouches for are on disk.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from arbiter.disk import sync_folder
from consilium.errors import UserError
from consilium.transcript import head_path

if TYPE_CHECKING:
    from pathlib import Path

    from arbiter.disk import Disk
    from consilium.records import Head


class Signer(Protocol):
    """Signs heads with the Arbiter's key: `consilium.headseal.HeadSigner`."""

    def sign(self, head: Head) -> Head:
        """``head`` with certificate and signature."""
        ...


class HeadFile:
    """Writes the head of ``transcript``. Raises `UserError` when that of a lost one stands in its place."""

    def __init__(self, transcript: Path, signer: Signer, disk: Disk, *, sync: bool) -> None:
        self._path = head_path(transcript)
        self._draft = self._path.with_name(self._path.name + ".new")
        self._signer = signer
        self._disk = disk
        self._sync = sync
        if os.path.lexists(self._path) and not os.path.lexists(transcript):
            raise UserError(
                f"{self._path} is the head of a transcript that is not there any more",
                hint="move it away, or give another path: it proves how long that transcript was",
            )

    def write(self, head: Head, *, lasting: bool) -> None:
        """Sign ``head`` and put it in place of the one before. Blocks; raises `OSError`.

        With ``lasting``, it is certain to be found after a power failure; without, perhaps the one before.
        """
        data = self._signer.sign(head).model_dump_json().encode() + b"\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._draft, flags, 0o600)
        try:
            if self._disk.write(descriptor, data) != len(data):
                raise OSError("only a part of it was written")
            if self._sync:
                self._disk.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        self._draft.replace(self._path)
        if self._sync and lasting:
            sync_folder(self._path)
