"""`consilium health`: is a process of this machine well? For people, and for HEALTHCHECK.

Exit codes: 0 it is well; 1 it is not; 2 that cannot be told.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from consilium.errors import UserError
from consilium.health import VARIABLE, Report, judge, place

if TYPE_CHECKING:
    from collections.abc import Sequence

WHO = ("arbiter", "wrapper", "moderator")

EXAMPLES = """\
examples:
  consilium health arbiter --file /run/consilium/health
  CONSILIUM_HEALTH_FILE=/run/consilium/health consilium health wrapper
  consilium health arbiter --json

The process writes the file if it is started with --health-file, or with CONSILIUM_HEALTH_FILE.
Exit codes: 0 it is well, 1 it is not, 2 there is no telling."""


def parser() -> argparse.ArgumentParser:
    """The command line of ``consilium health``."""
    made = argparse.ArgumentParser(
        prog="consilium health",
        description="Say whether a process of this machine is well, by what it wrote last.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("who", choices=WHO, help="whose report it is")
    made.add_argument("--file", type=Path, metavar="FILE", help=f"where it reports (default: {VARIABLE})")
    made.add_argument("--json", action="store_true", help="JSON, for programs")
    return made


def main(argv: Sequence[str]) -> int:
    """Judge one report; return the exit code. Raises `UserError`."""
    options = parser().parse_args(argv)
    path = place(options.file)
    if path is None:
        raise UserError("nothing says where the report is", hint=f"give --file FILE, or set {VARIABLE}")
    report = Report.read(path)
    opinion = judge(report, options.who, time.monotonic())
    if options.json:
        told = {
            "healthy": opinion.healthy,
            "sentence": opinion.sentence,
            "report": asdict(report) if report is not None else None,
        }
        sys.stdout.write(json.dumps(told) + "\n")
    else:
        sys.stdout.write(f"{opinion.sentence}\n")
    return 0 if opinion.healthy else 1
