"""How a long-lived process says that it is well, and how another one believes it.

The process writes a small file again and again; `consilium health` reads it. Its age is told by the machine's
monotonic clock, which all its processes share: a clock that is set makes nobody ill, and a file from before
the last start is old. Standard library only: it is read every few seconds.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from consilium.errors import UserError

VARIABLE = "CONSILIUM_HEALTH_FILE"

EVERY = 2.0
"""Seconds between two reports."""

STALE = 10.0
"""A report that is older, or a loop that is busy with one thing for longer, is a process that hangs."""

MOST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Report:
    """What one process says of itself.

    ``at`` and ``busy_since`` are seconds of the monotonic clock: when this was written, and since when the
    loop that owns everything has been at work on one thing, or None where it waits for something to do.
    ``state`` is a sentence for a person. ``problems`` make it ill; ``warnings`` are said.
    """

    who: str
    at: float
    state: str
    pid: int = field(default_factory=os.getpid)
    busy_since: float | None = None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """Put this in the place of the last report, all at once. Raises `OSError`."""
        fresh = path.with_name(f".{path.name}.{self.pid}")
        try:
            fresh.write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")
            fresh.replace(path)
        except OSError:
            with suppress(OSError):
                fresh.unlink()
            raise

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The report at ``path``; None where there is none yet. Raises `UserError` for what is none."""
        try:
            with path.open("rb") as file:
                tree = json.loads(file.read(MOST_BYTES))
            return cls(
                who=_text(tree["who"]),
                at=float(tree["at"]),
                state=_text(tree["state"]),
                pid=int(tree["pid"]),
                busy_since=None if tree["busy_since"] is None else float(tree["busy_since"]),
                problems=tuple(map(_text, tree["problems"])),
                warnings=tuple(map(_text, tree["warnings"])),
            )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{path} is no report on health", hint=f"is it what {VARIABLE} names?") from None


@dataclass(frozen=True, slots=True)
class Opinion:
    """Whether a process is well, and why, in a sentence."""

    healthy: bool
    sentence: str


def judge(report: Report | None, who: str, now: float) -> Opinion:
    """Judge the report that ``who`` should have written lately. ``now`` is of the monotonic clock. Pure."""
    if report is None:
        return Opinion(healthy=False, sentence=f"the {who} has not reported yet")
    if report.who != who:
        return Opinion(healthy=False, sentence=f"this is a report of the {report.who}, not of the {who}")
    age = now - report.at
    if not 0 <= age <= STALE:
        told = "of another life" if age < 0 else f"{age:.0f} s old"
        return Opinion(healthy=False, sentence=f"the {who}'s last report is {told}: {report.state}")
    if report.busy_since is not None and report.at - report.busy_since > STALE:
        busy = report.at - report.busy_since
        return Opinion(healthy=False, sentence=f"the {who} hangs: at work on one thing for {busy:.0f} s")
    if report.problems:
        return Opinion(healthy=False, sentence=f"the {who} is not well: {'; '.join(report.problems)}")
    return Opinion(healthy=True, sentence="; ".join([f"the {who} is well: {report.state}", *report.warnings]))


def place(given: Path | None) -> Path | None:
    """Where reports go: as the command line says, or the environment; None is nowhere."""
    return given or (Path(value) if (value := os.environ.get(VARIABLE)) else None)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
