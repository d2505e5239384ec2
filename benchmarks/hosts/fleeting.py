"""The record of a debate that does not wait for a disk: sealed as ever, appended by one write a step.

This is what "without sync" means here, as in the references: the writer thread and the journal around it are
a part of what durability costs, and are measured as that (P3, P4).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from consilium.records import GENESIS, digest, seal, timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from consilium.records import AnyEntry


class Fleeting:
    """As much of `arbiter.journal.Journal` as the owner of a debate uses."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        self._clock = clock
        self._count = 0
        self._last = GENESIS

    async def append_durably(self, entries: Sequence[AnyEntry]) -> list[bytes]:
        """Append ``entries``; nothing durable about it."""
        ts = timestamp(self._clock())
        lines = []
        for entry in entries:
            lines.append(seal(entry, seq=self._count, prev=self._last, ts=ts))
            self._count += 1
            self._last = digest(lines[-1])
        os.write(self._descriptor, b"\n".join(lines) + b"\n")
        return lines
