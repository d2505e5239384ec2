"""The folder of an Arbiter's transcripts: which one goes on, or how the next one is called (§15.3).

A debate that has ended is never touched again; at most one that has not is waited for, the newest. Names sort
by age (`consilium.naming`).
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from consilium.errors import TranscriptError, UserError
from consilium.naming import debate_name
from consilium.records import EventName, EventRecord, unseal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUFFIX = ".jsonl"

TAIL_BYTES = 256 * 1024
"""In so many of its last bytes the end of a debate is looked for; only the seats' leaving follows it."""

MODE = 0o700


def transcript_in(folder: Path, *, moment: str, topic: str) -> Path:
    """The newest transcript in ``folder`` whose debate has not ended, or a new path for one that begins now.

    Makes ``folder`` if it is not there. Raises `UserError` when it cannot be made or read.
    """
    try:
        folder.mkdir(mode=MODE, parents=True, exist_ok=True)
        for path in sorted(folder.glob(f"*{SUFFIX}"), reverse=True):
            if not _has_ended(path):
                return path
    except OSError as error:
        raise UserError(
            f"{folder} cannot hold transcripts: {error.strerror}",
            hint="give --transcripts a folder that the Arbiter's user may write to",
        ) from error
    return _unused(folder, moment, topic)


def _unused(folder: Path, moment: str, topic: str) -> Path:
    number = 1
    while os.path.lexists(path := folder / (debate_name(moment, topic, number) + SUFFIX)):
        number += 1
    return path


def _has_ended(path: Path) -> bool:
    """Whether the debate in ``path`` has its outcome. What cannot be told has not: opening it says more."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    there = os.fstat(descriptor)
    if not stat.S_ISREG(there.st_mode):
        os.close(descriptor)
        return False
    with os.fdopen(descriptor, "rb") as file:
        start = max(0, there.st_size - TAIL_BYTES)
        file.seek(start)
        lines = file.read().split(b"\n")
    return any(_is_end(line) for line in _whole(lines, cut=start > 0))


def _whole(lines: list[bytes], *, cut: bool) -> Iterator[bytes]:
    """The lines that are whole, the last first: the piece after the last newline is none."""
    yield from reversed(lines[1 if cut else 0 : -1])


def _is_end(line: bytes) -> bool:
    if EventName.DEBATE_ENDED.encode() not in line:  # nearly every line: it need not be read
        return False
    try:
        entry = unseal(line).entry
    except TranscriptError:
        return False
    return isinstance(entry, EventRecord) and entry.event is EventName.DEBATE_ENDED
