"""A transcript's files: the records, one a line, and the head beside them (§5.6).

1. Reading is bounded by `MAX_RECORD_BYTES` a line, and stops at what is no regular file: anybody may have
   sent it.
2. Whoever reads both reads the head first. The Arbiter writes it after the records that it vouches for, so
   an older head is merely behind, while a newer one would seem to show a cut tail.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, BinaryIO

from pydantic import ValidationError

from consilium import records
from consilium.console import printable
from consilium.errors import TranscriptError, UserError
from consilium.findings import FindingKind
from consilium.inspection import inspect
from consilium.records import Head, HeaderRecord, Stored, unseal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAX_HEAD_BYTES = 1024 * 1024


def head_path(path: Path) -> Path:
    """Where the head of the transcript at ``path`` is kept."""
    return path.parent / f"{path.name}.head"


def read_head(path: Path) -> Head | None:
    """The head of the transcript at ``path``; None when there is none.

    Raises `TranscriptError` when there is one but it is no head, and `UserError` when it cannot be opened.
    """
    where = head_path(path)
    if not os.path.lexists(where):
        return None
    with _open(where) as file:
        try:
            return Head.model_validate_json(file.read(_MAX_HEAD_BYTES))
        except ValidationError:
            raise TranscriptError(f"{where} is not the head of a transcript") from None


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of the file, each with its newline; the last without, if it is torn.

    Raises `UserError` when the file cannot be read, `TranscriptError` at a line that no record is as long as.
    """
    with _open(path) as file:
        number = 0
        while line := file.readline(records.MAX_RECORD_BYTES + 1):
            number += 1
            if len(line) > records.MAX_RECORD_BYTES and not line.endswith(b"\n"):
                raise TranscriptError(
                    f"{path}: line {number} is longer than any record: this is no transcript"
                )
            yield line


def read_records(path: Path, head: Head | None = None) -> tuple[list[Stored], bytes | None]:
    """Every record of the file, and the bytes of a torn last line if there is one (a kill leaves such).

    Raises `TranscriptError` when anything else is wrong: with the chain, with the file held against ``head``
    if that is given (records after it are in order: it is written behind them), or with a record's content.
    An empty file holds no records and is not damaged.
    """
    lines = list(read_lines(path))
    torn = lines.pop() if lines and not lines[-1].endswith(b"\n") else None
    if lines or head:
        damage = [f.message for f in inspect(lines, head).findings if f.kind is not FindingKind.TRAILING]
        if damage:
            raise TranscriptError(f"{path} is damaged: {'; '.join(damage[:5])}")
    stored = [_read(path, number, line) for number, line in enumerate(lines, 1)]
    if stored and not isinstance(stored[0].entry, HeaderRecord):
        raise TranscriptError(f"{path}: the first record is not a header")
    return stored, torn


def _read(path: Path, number: int, line: bytes) -> Stored:
    try:
        return unseal(line)
    except TranscriptError as error:
        raise TranscriptError(f"{path}: line {number}: {error}") from None


def _open(path: Path) -> BinaryIO:
    """Open a regular file to read. Without O_NONBLOCK, a FIFO would hold whoever asks for ever."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", hint=_hint(path)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"{path} is not a regular file", hint=_hint(path))
    return os.fdopen(descriptor, "rb")


def _hint(path: Path) -> str:
    """The way out: the transcripts that are there, if ``path`` is a folder or names one that is not."""
    folder = (path if path.is_dir() else path.parent).absolute()
    try:
        near = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".jsonl"))
    except OSError:
        return "give the path of a transcript, a .jsonl file"
    names = printable(", ".join(near[:8])).replace("\n", " ")
    return f"transcripts in {folder}: {names}" if near else f"{folder} holds no .jsonl file"
