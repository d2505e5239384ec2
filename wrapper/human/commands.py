"""What a line that a person sends means: a contribution, a skip, or a command to the wrapper (§10). Pure.

A line that begins with ``/`` is a command, and never goes to the Arbiter: what is mistyped is not sent. A
contribution that begins so is written with ``//``, or with a blank ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MAX_SECONDS = 7 * 24 * 3600


class Command(StrEnum):
    """What a person can ask of the wrapper. Each is a word after ``/``; those of `BOUND` are keys as well."""

    AWAY = "away"
    BACK = "back"
    STATUS = "status"
    QUIT = "quit"
    TIMEOUT = "timeout"
    SKIP = "skip"
    HELP = "help"


@dataclass(frozen=True, slots=True)
class Say:
    """This is the turn."""

    text: str


@dataclass(frozen=True, slots=True)
class Order:
    """A command, and what was written behind it."""

    command: Command
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Misspelt:
    """It begins like a command, and is none."""

    word: str


Meaning = Say | Order | Misspelt


def meaning(text: str) -> Meaning:
    """What ``text``, sent with Enter, means. Nothing at all is a skip (§6.2)."""
    if not text.strip():
        return Order(Command.SKIP)
    if text.startswith("//"):
        return Say(text[1:].strip())
    if not text.startswith("/"):
        return Say(text.strip())
    word, _, rest = text[1:].strip().partition(" ")
    if word in list(Command) and "\n" not in rest:
        return Order(Command(word), rest.strip())
    return Misspelt(f"/{word.splitlines()[0]}" if word else "/")


def seconds(argument: str) -> float | None:
    """How long ``/timeout`` waits; None for ever. Raises `ValueError`."""
    if argument.lower() in {"off", "none", "0"}:
        return None
    number = float(argument.removesuffix("s"))
    if not 1 <= number <= MAX_SECONDS:
        raise ValueError(argument)
    return number


def continues(line: str) -> tuple[str, bool]:
    """A line, and whether the next one belongs to it: it ends with a backslash, of which two mean one."""
    bare = line.rstrip("\\")
    slashes = len(line) - len(bare)
    return bare + "\\" * (slashes // 2), bool(slashes % 2)
