"""Journals for tests, on a disk that fails when it is told to and remembers who asked it for what."""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import seals
import transcripts

from arbiter.disk import RealDisk
from arbiter.journal import Journal
from consilium.errors import TranscriptError
from consilium.inspection import inspect
from consilium.transcript import read_head, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from arbiter.head import Signer
    from arbiter.recovery import Recovered
    from consilium.findings import Inspection


def fails(number: int) -> Exception:
    return OSError(number, os.strerror(number))


NO_SPACE = fails(errno.ENOSPC)
BROKEN = fails(errno.EIO)


@dataclass
class FaultyDisk(RealDisk):
    """Passes everything on to the real disk, except what the test set. Faults last until they are cleared.

    Heads pass through the same disk; ``only`` limits the faults to descriptors that it approves.
    """

    short: int | None = None
    on_write: Exception | None = None
    on_sync: Exception | None = None
    on_truncate: Exception | None = None
    gate: threading.Event | None = None
    only: Callable[[int], bool] = lambda _: True
    threads: set[int] = field(default_factory=set)
    writes: list[bytes] = field(default_factory=list)

    def write(self, descriptor: int, data: bytes) -> int:
        self.threads.add(threading.get_ident())
        if not self.only(descriptor):
            return super().write(descriptor, data)
        self.writes.append(data)
        if self.short is not None:
            return super().write(descriptor, data[: self.short])
        if self.on_write is not None:
            raise self.on_write
        return super().write(descriptor, data)

    def fdatasync(self, descriptor: int) -> None:
        self.threads.add(threading.get_ident())
        if self.only(descriptor):
            if self.gate is not None:
                self.gate.wait()
            if self.on_sync is not None:
                raise self.on_sync
        super().fdatasync(descriptor)

    def ftruncate(self, descriptor: int, length: int) -> None:
        self.threads.add(threading.get_ident())
        if self.on_truncate is not None:
            raise self.on_truncate
        super().ftruncate(descriptor, length)


def is_head(descriptor: int) -> bool:
    return Path(f"/proc/self/fd/{descriptor}").readlink().name.endswith(".head.new")


def is_transcript(descriptor: int) -> bool:
    return not is_head(descriptor)


def start(
    path: Path, disk: FaultyDisk | None = None, *, sync: bool = True, signer: Signer | None = None
) -> Journal:
    """A journal of which every append is one second later than the one before."""
    clock = iter(range(10**6))
    return Journal.create(
        path,
        signer=signer or seals.arbiter().signer,
        clock=lambda: transcripts.START + next(clock),
        sync=sync,
        disk=disk,
    )


def again(
    path: Path, disk: FaultyDisk | None = None, *, sync: bool = True, signer: Signer | None = None
) -> tuple[Journal, Recovered]:
    """The journal of `start`, taken up by the next Arbiter an hour later, and what it found."""
    clock = iter(range(3600, 10**6))
    return Journal.reopen(
        path,
        signer=signer or seals.arbiter().signer,
        clock=lambda: transcripts.START + next(clock),
        sync=sync,
        disk=disk,
    )


async def close_failed(journal: Journal) -> None:
    """Close a journal of which the test has already seen that it failed."""
    with pytest.raises(TranscriptError):
        await journal.close()


def content(path: Path) -> bytes:
    return path.read_bytes()


def inspected(path: Path) -> Inspection:
    head = read_head(path)
    return inspect(read_lines(path), head)
