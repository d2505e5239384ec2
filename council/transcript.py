"""`consilium transcript`: read a debate's record, or check that it is whole (§5.6, §5.7).

1. `show` shows what can be read, also of a debate that is still being written or of a damaged file, and says
   when something is wrong; of a folder, which transcripts it holds. `verify` says what is wrong, and what is
   not proved.
2. Exit codes: 0 the file is whole, 1 it is damaged, 2 the command cannot be carried out. To `show`, the file
   of a debate that is still being written is whole.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilium.console import Console, Style, json_text, printable
from consilium.errors import TranscriptError, UserError
from consilium.findings import FindingKind
from consilium.inspection import inspect
from consilium.records import unseal
from consilium.transcript import read_head, read_lines
from council.render import render, shown
from council.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from consilium.findings import Inspection
    from consilium.records import Head, Stored

WHOLE, DAMAGED = 0, 1


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="consilium transcript",
        description="Read a debate's record, or check that it is whole.",
        epilog="`consilium transcript FILE` is short for `consilium transcript show FILE`.",
    )
    commands = top.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="show where the debate got to, and what was said")
    show.add_argument("--events", action="store_true", help="every event, not only those a reader needs")
    show.add_argument("--no-color", action="store_true", help="no colours (as with NO_COLOR=1)")
    verify = commands.add_parser("verify", help="check that nothing was cut off, edited, spliced or removed")
    verify.add_argument(
        "--ca", type=Path, metavar="PEM", help="the authority that must vouch for the Arbiter"
    )
    for command, of in (
        (show, "the transcript, a .jsonl file; of a folder, those in it are listed"),
        (verify, "the transcript, a .jsonl file"),
    ):
        command.add_argument("file", type=Path, metavar="FILE", help=of)
        command.add_argument("--json", action="store_true", help="JSON, for programs")
    return top


def main(argv: Sequence[str]) -> int:
    """Show a transcript or verify it. Raises `UserError` when there is nothing to show or to verify."""
    if argv and argv[0] not in ("show", "verify") and not argv[0].startswith("-"):
        argv = ["show", *argv]
    options = parser().parse_args(argv)
    if options.command == "show":
        if options.file.is_dir():
            return _list(options.file, as_json=options.json)
        return show(options.file, as_json=options.json, no_color=options.no_color, events=options.events)
    from council.verification import verify  # noqa: PLC0415 - loads `cryptography`, which `show` does without

    return verify(options.file, authority=options.ca, as_json=options.json)


def _list(folder: Path, *, as_json: bool) -> int:
    """Print the names of the transcripts in ``folder``."""
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.suffix == ".jsonl")
    except OSError as error:
        raise UserError(f"{folder} cannot be read: {error.strerror}") from error
    if as_json:
        sys.stdout.write(json_text({"transcripts": names}) + "\n")
    elif names:
        sys.stdout.writelines(printable(name).replace("\n", " ") + "\n" for name in names)
    else:
        raise UserError(f"{folder.absolute()} holds no .jsonl file")
    return WHOLE


def show(path: Path, *, as_json: bool, no_color: bool, events: bool) -> int:
    """Print the debate at ``path``; return the exit code."""
    head, problem = _head(path)
    lines = list(read_lines(path))
    inspection = inspect(lines, head)
    records = list(_readable(lines))
    if not records:
        hint = "consilium transcript verify says what is wrong with it"
        raise UserError(f"{path} holds no record of a debate", hint=hint)
    unknown = 0 if not inspection.sound else inspection.count - len(records)
    notices = _notices(path, inspection, problem, unknown)
    summary = summarise(records)
    if as_json:
        wanted = [_fields(record) for record in records if shown(record, events=events)]
        document = {"status": asdict(summary), "notices": notices, "records": wanted}
        sys.stdout.write(json_text(document) + "\n")
    else:
        console = Console.on(sys.stdout, os.environ, no_color=no_color)
        for notice in notices:
            console.line((notice, Style.RED))  # not wrapped: it may name a file, to be copied
        render(records, summary, console, events=events)
    return WHOLE if inspection.sound and problem is None else DAMAGED


def _head(path: Path) -> tuple[Head | None, str | None]:
    """The head, or what is wrong with it. It is read before the records: see `consilium.transcript`."""
    try:
        return read_head(path), None
    except TranscriptError as error:
        return None, str(error)


def _readable(lines: Sequence[bytes]) -> Iterator[Stored]:
    for line in lines:
        if line.endswith(b"\n"):
            try:
                yield unseal(line)
            except TranscriptError:
                continue


def _notices(path: Path, inspection: Inspection, problem: str | None, unknown: int) -> list[str]:
    notices = []
    if not inspection.sound:
        notices.append(
            f"This record is not whole. What is wrong: consilium transcript verify {shlex.quote(str(path))}"
        )
    if problem is not None:
        notices.append(problem)
    if unknown:
        notices.append(f"{unknown} of the records are of a kind that this version does not know; left out.")
    if any(finding.kind is FindingKind.TORN for finding in inspection.findings):
        notices.append("The last line is incomplete: it is being written, or its Arbiter was killed.")
    return notices


def _fields(record: Stored) -> dict[str, Any]:
    return {"seq": record.seq, "ts": record.ts, **record.entry.model_dump(mode="json")}
