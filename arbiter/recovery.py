"""A transcript as its next Arbiter finds it: read, proved, and made fit to go on in (§5.6).

1. Nothing is written into a file that is not proved: its chain holds, and its head, if it has one, is ours
   and vouches for no more than is there. An older head is merely behind.
2. What a kill or a power failure leaves after the last newline was never acknowledged: that is cut off, and
   said. It may hold NUL bytes, where the file had grown and its content was not on disk yet. NUL bytes with a
   newline after them are damage: what stood there may have been acknowledged.
3. What was read is on disk before anything follows from it: the Arbiter before may have been killed between
   the write and the sync.
"""

from __future__ import annotations

import os
import shlex
from array import array
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from arbiter.disk import sync_folder
from arbiter.head import read_own_head
from consilium import records
from consilium.errors import TranscriptError, UserError
from consilium.findings import FindingKind
from consilium.inspection import inspect
from consilium.records import GENESIS, HeaderRecord, unseal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from arbiter.disk import Disk
    from arbiter.head import Signer
    from consilium.records import AnyEntry

MOST_FINDINGS = 5
"""How much of what is wrong is said here; `consilium transcript verify` says all of it."""


@dataclass(frozen=True, slots=True)
class Tail:
    """Where a transcript goes on.

    ``ends[seq]`` is where the record before ``seq`` ends, in bytes; ``last`` is the last hash; ``vouched`` is
    how many records the head knows.
    """

    ends: array[int] = field(default_factory=lambda: array("Q", [0]))
    last: str = GENESIS
    vouched: int = 0
    debate_id: str = ""

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(self.ends) - 1

    @property
    def size(self) -> int:
        """How many bytes they take."""
        return self.ends[-1]


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a transcript tells: its header, and what follows it as (seconds since the epoch, entry).

    ``header`` is None when not even that was written; then the file is as new. The seconds never go back, and
    ``until`` is when the last record was written. ``dropped`` says what was cut off, ``doubt`` what the file
    does not prove, each in a sentence and only if there is any.
    """

    header: HeaderRecord | None
    told: list[tuple[float, AnyEntry]]
    until: float
    dropped: str | None
    doubt: str | None


def recover(path: Path, descriptor: int, signer: Signer, disk: Disk, *, sync: bool) -> tuple[Tail, Recovered]:
    """Read the transcript at ``path``, open as ``descriptor``, and make it fit to go on in.

    Raises `UserError` when it is damaged, is no transcript, or has another's head than ``signer``'s, and has
    changed nothing then; also when the disk refuses.
    """
    head = read_own_head(path, signer)
    reading = _Reading()
    try:
        with os.fdopen(os.dup(descriptor), "rb") as file:
            inspection = inspect(reading.read(file), head)
    except (OSError, TranscriptError) as error:
        raise _unfit(path, [str(error)]) from error
    problems = [f.message for f in inspection.findings if f.kind is not FindingKind.TRAILING]
    if head is None and reading.ends[-1] == 0:
        problems = []  # The Arbiter was killed before it had written anything.
    if problems := problems or reading.problems:
        raise _unfit(path, problems)
    tail = Tail(reading.ends, inspection.last, head.count if head else 0, reading.debate_id)
    dropped = _dropped(path, tail, reading.torn) if reading.torn else None
    _settle(path, descriptor, tail, disk, torn=dropped is not None, sync=sync)
    doubt = None
    if head is None and tail.count:
        doubt = f"{path} has no head beside it: whether records were cut off its end cannot be known"
    return tail, Recovered(reading.header, reading.told, reading.until, dropped, doubt)


class _Reading:
    """Reads a file's lines, once, and keeps what they tell. Memory: what they tell, and one line."""

    def __init__(self) -> None:
        self.ends = array("Q", [0])
        self.header: HeaderRecord | None = None
        self.told: list[tuple[float, AnyEntry]] = []
        self.until = 0.0
        self.torn = b""
        self.problems: list[str] = []

    @property
    def debate_id(self) -> str:
        return self.header.debate_id if self.header else ""

    def read(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield each whole line with its newline. Raises `TranscriptError` at one that is too long."""
        limit = records.MAX_RECORD_BYTES + 1
        while line := file.readline(limit):
            if line.endswith(b"\n"):
                self._keep(line)
                yield line
            elif len(line) == limit:
                raise TranscriptError(f"line {len(self.ends)} is longer than any record")
            else:
                self.torn = line

    def _keep(self, line: bytes) -> None:
        seq = len(self.ends) - 1
        self.ends.append(self.ends[-1] + len(line))
        if self.problems:
            return
        try:
            stored = unseal(line)
            self.until = max(self.until, _seconds(stored.ts))  # A clock may be set back: time is not.
        except TranscriptError as error:
            self.problems.append(f"record {seq} cannot be read: {error}")
            return
        if seq:
            self.told.append((self.until, stored.entry))
        elif isinstance(stored.entry, HeaderRecord):
            self.header = stored.entry
        else:
            self.problems.append("record 0 is not a header")


def _seconds(ts: str) -> float:
    try:
        moment = datetime.fromisoformat(ts)
    except ValueError:
        raise TranscriptError("its time is none") from None
    if moment.tzinfo is None:
        raise TranscriptError("its time has no zone")
    return moment.timestamp()


def _dropped(path: Path, tail: Tail, torn: bytes) -> str:
    """Say what is cut off. Raises `UserError` when it is not what a record begins with.

    Such bytes nobody was writing here when the Arbiter was killed: the file is another one, or was added to.
    """
    opening = b'{"seq":%d,"prev":"%s","ts":"' % (tail.count, tail.last.encode())
    if any(byte not in (0, due) for byte, due in zip(torn, opening, strict=False)):
        raise _unfit(path, [f"what follows its last newline is not the beginning of record {tail.count}"])
    return (
        f"the last line of {path} was torn, and is dropped: {len(torn)} bytes of record {tail.count}, which "
        "was being written when the Arbiter was stopped, and of which nobody has heard"
    )


def _settle(path: Path, descriptor: int, tail: Tail, disk: Disk, *, torn: bool, sync: bool) -> None:
    """Cut off what is torn; have the rest on disk."""
    try:
        if torn:
            disk.ftruncate(descriptor, tail.size)
        if sync:
            disk.fdatasync(descriptor)
            sync_folder(path)
    except OSError as error:
        message = f"{path} cannot be made fit to go on in: {error.strerror}"
        raise UserError(message, hint="nothing is lost: try again once the disk takes it") from error


def _unfit(path: Path, problems: Sequence[str]) -> UserError:
    words = "; ".join(problems[:MOST_FINDINGS])
    hint = f"consilium transcript verify {shlex.quote(str(path))}"
    return UserError(f"no debate can go on in {path}: {words}", hint=hint)
